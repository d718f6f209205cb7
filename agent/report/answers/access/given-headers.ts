// The headers of a request as HAProxy sees them when it looks for its rule: it drops names that only proxies may set, and sets its own
// (templates/haproxy/http.mustache). Pure.

import { addressesOf, hasAddress } from '../../../base/address-set.ts';
import type { Listener } from '../../../model/load-balancer.ts';
import type { AskedRequest } from './asked-request.ts';
import type { Client } from './client.ts';

/** Names that members believe; `-` and `_` are one character for many of them. */
const OF_PROXIES = /^(x[-_]forwarded|forwarded$|x-real-ip$|(x[-_])?ssl[-_]client)/;
const OF_UPGRADES = /^(h2|http\/|tls\/)/i;

export function withHeaders(request: AskedRequest, client: Client, listener: Listener): AskedRequest {
  const { headers: given, method = 'GET' } = client;
  if (given === undefined) return { ...request, method };
  const isProxy = isTrusted(listener, client);
  const headers = new Map(request.headers);
  const upgrades = given.get('upgrade')?.some((value) => OF_UPGRADES.test(value)) === true;
  for (const [name, values] of given) {
    if (OF_PROXIES.test(name) && !(isProxy && name.includes('-') && !name.includes('_'))) continue;
    if (name === 'http2-settings' || (upgrades && ['connection', 'upgrade'].includes(name))) continue;
    headers.set(name, values.map(bytesOf));
  }
  if (isProxy) headers.set('x-forwarded-proto', protoOf(given.get('x-forwarded-proto'), request));
  const [host] = given.get('host') ?? [];
  return host === undefined
    ? { ...request, method, headers }
    : { ...request, method, headers, ...hostOf(host) };
}

/** The client is a proxy that names its own clients. */
function isTrusted({ trustedProxies = [], family }: Listener, { from }: Client): boolean {
  return from?.family === family && hasAddress(addressesOf(trustedProxies, family), from.address);
}

/** The last value counts, if it is one. */
function protoOf(values: readonly string[] = [], request: AskedRequest): readonly string[] {
  const last = values.at(-1)?.split(',').at(-1)?.trim().toLowerCase() ?? '';
  return ['http', 'https'].includes(last) ? [last] : (request.headers.get('x-forwarded-proto') ?? []);
}

function hostOf(text: string): Pick<AskedRequest, 'host'> {
  const lower = text.toLowerCase();
  const [, host = ''] = /^(\[[^\]]*\]|[^:]*)/.exec(lower) ?? [];
  return { host: host.replace(/\.$/, '') };
}

/** As HAProxy compares them. */
function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1');
}
