// The labels of metrics as text, from the labels of listeners and from members. Names in Kubernetes need no escaping.

import type { ListenerLabels, Member, OwnerKey } from '../model/load-balancer.ts';
import { ownerOf } from '../model/names.ts';

export function loadBalancerSeries(key: OwnerKey): string {
  const { namespace, name } = ownerOf(key);
  return `namespace="${namespace}",service="${name}"`;
}

export function listenerSeries(labels: ListenerLabels): string {
  return flat(`${portText(labels)},family="${labels.family}"`);
}

/** `address` is the server's name; `member` is undefined for a server that the model does not have. */
export function memberSeries(labels: ListenerLabels, address: string, member: Member | undefined): string {
  const [kind = '', target = ''] = member?.target.split('/', 2) ?? [];
  const behind = kind === 'Node' ? `,node="${target}"` : target === '' ? '' : `,pod="${target}"`;
  return flat(`${portText(labels)}${behind},address="${address}"`);
}

function portText({ namespace, service, port, protocol }: ListenerLabels): string {
  return `namespace="${namespace}",service="${service}",port="${port}",protocol="${protocol}"`;
}

/** Copies a concatenated text into one piece, because V8 keeps concatenated parts and joins them at each use. */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}
