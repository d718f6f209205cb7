// The labels of metrics as text, from the labels of listeners and from members. Names in Kubernetes need no escaping.

import type { Listener, ListenerLabels, Member, OwnerKey } from '../model/load-balancer.ts';
import { ownerOf, ownerOfListener } from '../model/names.ts';

export function loadBalancerSeries(key: OwnerKey): string {
  const { namespace, name } = ownerOf(key);
  return `namespace="${namespace}",service="${name}"${ownerText(key)}`;
}

export function listenerSeries({ name, labels }: Labelled): string {
  return flat(`${portText(labels)},family="${labels.family}"${ownerText(ownerOfListener(name))}`);
}

/** `address` is the server's name; `member` is undefined for a server that the model does not have. */
export function memberSeries(
  { name, labels }: Labelled,
  address: string,
  member: Member | undefined,
): string {
  const [kind = '', target = ''] = member?.target.split('/', 2) ?? [];
  const behind = kind === 'Node' ? `,node="${target}"` : target === '' ? '' : `,pod="${target}"`;
  return flat(`${portText(labels)}${behind},address="${address}"${ownerText(ownerOfListener(name))}`);
}

type Labelled = Pick<Listener, 'name' | 'labels'>;

/**
 * '' for a Service. Another owner may have the name of a Service, and a pool has that of its Service, which can have a listener
 * of its own on the same port.
 */
function ownerText(key: OwnerKey): string {
  const { kind, name } = ownerOf(key);
  if (kind === 'Service') return '';
  const [, profile] = kind === 'Pool' ? name.split('.', 2) : [];
  return `,owner="${kind.toLowerCase()}"${profile === undefined ? '' : `,profile="${profile}"`}`;
}

function portText({ namespace, service, port, protocol }: ListenerLabels): string {
  return `namespace="${namespace}",service="${service}",port="${port}",protocol="${protocol}"`;
}

/** Copies a concatenated text into one piece, because V8 keeps concatenated parts and joins them at each use. */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}
