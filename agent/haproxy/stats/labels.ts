// The labels of metrics, made from the names under which HAProxy has listeners and members, and from the model.
// The only file that takes such a name apart for metrics.

import type { Member } from '../../model/load-balancer.ts';

const LISTENER = /^[^:,]+:[^:,]+:[a-z]+:\d+:v[46]$/;

/** False for frontends and backends that are not a listener of the agent's: HAProxy's own, tables, another's. */
export function isListenerName(name: string): boolean {
  return LISTENER.test(name);
}

/** Key of the load balancer that a listener belongs to: `namespace/name`. */
export function loadBalancerKey(listenerName: string): string {
  const [namespace, service] = listenerName.split(':', 2);
  return `${namespace}/${service}`;
}

/** From `namespace/name`. Names of Kubernetes need no escaping. */
export function loadBalancerLabels(key: string): string {
  const [namespace, service] = key.split('/', 2);
  return `namespace="${namespace}",service="${service}"`;
}

export function listenerLabels(listenerName: string): string {
  return flat(`${portLabels(listenerName)},family="${listenerName.split(':')[4]}"`);
}

/** `address` is the server's name. `member`: undefined for a server that the model does not have. */
export function memberLabels(listenerName: string, address: string, member: Member | undefined): string {
  const [kind = '', target = ''] = member?.target.split('/', 2) ?? [];
  const behind = kind === 'Node' ? `,node="${target}"` : target === '' ? '' : `,pod="${target}"`;
  return flat(`${portLabels(listenerName)}${behind},address="${address}"`);
}

function portLabels(listenerName: string): string {
  const [, , protocol = '', port] = listenerName.split(':');
  const service = loadBalancerLabels(loadBalancerKey(listenerName));
  return `${service},port="${port}",protocol="${protocol.toUpperCase()}"`;
}

/** V8 keeps a concatenated text as its parts, and joins them again at each use: this one is a single piece. */
function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}
