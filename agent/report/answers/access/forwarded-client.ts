// The client that trusted proxies name in X-Forwarded-For, as templates/haproxy/http.mustache looks for it. Pure.

import { addressesOf, hasAddress } from '../../../base/address-set.ts';
import { parseAddress } from '../../../base/ip.ts';
import type { Listener } from '../../../model/load-balancer.ts';
import type { Client } from './client.ts';

const MOST_PROXIES = 3;
/** HAProxy reads them, too; which part is the address is its choice. */
const WITH_PORT = /^[\d.]+:|^\[/;

/** undefined if it is not known, because the client is a proxy, or may be one, and its header is not given. */
export function forwardedClient(listener: Listener, { from, headers }: Client): Client['from'] {
  if (from === undefined || !isProxy(listener, from)) return from;
  const given = headers?.get('x-forwarded-for');
  if (given === undefined) return undefined;
  const named = given
    .join(',')
    .split(',')
    .map((each) => each.trim())
    .reverse();
  let client = from;
  for (const text of named.slice(0, MOST_PROXIES)) {
    if (!isProxy(listener, client)) break;
    if (WITH_PORT.test(text)) return undefined;
    const next = parseAddress(text);
    if (next === undefined) break;
    client = next;
  }
  return client;
}

function isProxy(
  { trustedProxies = [] }: Listener,
  { address, family }: NonNullable<Client['from']>,
): boolean {
  return hasAddress(addressesOf(trustedProxies, family), address);
}
