// The labels of metrics as text, made from the labels of listeners and from members. Names of Kubernetes need no
// escaping.

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

/** V8 keeps a concatenated text as its parts, and joins them again at each use: this one is a single piece. */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}
