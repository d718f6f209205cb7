// What a member gets of a request besides itself, and which member a client keeps, for the command `why`. No value of a header or
// cookie is shown. Reads the parts of the agent; changes nothing.

import { quote } from '../../base/quote.ts';
import type { Listener } from '../../model/load-balancer.ts';
import { ownerOfListener } from '../../model/names.ts';
import type { RouteRule } from '../../model/routes.ts';
import type { Client } from './access/client.ts';
import { cookiesIn } from './access/cookies.ts';
import { poolName } from './route-words.ts';
import type { StatusSources } from './status.ts';

/** `asksForCertificates`: in the handshake of the request. */
export function memberNotes(
  { action, auth, jwt }: RouteRule,
  client: Client,
  asksForCertificates: boolean,
  sources: StatusSources,
): readonly string[] {
  if (action.kind !== 'forward') return [];
  const notes: string[] = [];
  const [own] = client.certificates ?? [];
  if (asksForCertificates && own !== undefined) {
    const subject = quote(own.subject.replaceAll('\n', ', '));
    notes.push(`members get the certificate's names in X-SSL-Client-* and ssl-client-*: ${subject}`);
    if (action.passesCertificate) notes.push('members get the certificate itself in ssl-client-cert');
  }
  if (auth?.removesHeader) notes.push('members do not get the password');
  const claims = jwt?.headers.map(({ name, claim }) => `${name} (claim ${quote(claim)})`) ?? [];
  if (claims.length > 0) notes.push(`members get headers of the token: ${claims.join(', ')}`);
  for (const backend of action.backends) {
    const listener = backend.weight > 0 ? listenerOf(backend.pool, sources) : undefined;
    if (listener === undefined || listener.pool.cookie === '') continue;
    const cookie = action.cookie?.name ?? listener.pool.cookie;
    notes.push(`${poolName(backend)}: ${keptMember(listener, cookie, client, sources)}`);
  }
  return notes;
}

function keptMember(listener: Listener, cookie: string, { headers }: Client, sources: StatusSources): string {
  const [value] = cookiesIn(headers?.get('cookie') ?? [], cookie);
  if (value === undefined)
    return `a client keeps its member by the cookie ${quote(cookie)}, which it does not send`;
  const member = sources.stickyMember(listener, value);
  if (member === undefined)
    return `the cookie ${quote(cookie)} is of none of its members: the client gets a new one`;
  const target = member.target === '' ? '' : ` (${member.target})`;
  return `by the cookie ${quote(cookie)} the client keeps ${member.name}${target}`;
}

function listenerOf(pool: string | undefined, { desired }: StatusSources): Listener | undefined {
  if (pool === undefined) return undefined;
  const loadBalancer = desired.loadBalancers.get(ownerOfListener(pool));
  return loadBalancer?.listeners.find(({ name }) => name === pool);
}
