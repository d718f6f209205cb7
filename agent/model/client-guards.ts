// Where clients must show a certificate, and routes that stay closed until the TLS that asks for it is there. Pure.

import type { Authority, Tls } from './load-balancer.ts';
import type { HostPattern, HttpRouting, RouteSection } from './routes.ts';

/** True if any of its clients must, or may, show a certificate. */
export function asksForCertificates({ clients, sections = [] }: Tls): boolean {
  return clients !== undefined || sections.some((each) => each.clients !== undefined);
}

/** True if the handshake of every client needs one, whatever name it asks for. */
export function needsCertificates({ clients, sections = [] }: Tls): boolean {
  const all = [clients, ...sections.map((each) => each.clients)];
  return all.every((each) => each?.verify === 'required' && each.errorPage === undefined);
}

/** True if handshakes continue without a certificate that is accepted, because requests are answered. */
export function hasErrorPage({ clients, sections = [] }: Tls): boolean {
  return [clients, ...sections.map((each) => each.clients)].some((each) => each?.errorPage !== undefined);
}

/** As a word: what HAProxy trusts. */
export function contentOf({ fingerprint, depth }: Authority): string {
  return depth === undefined ? fingerprint : `${fingerprint}-${depth}`;
}

/** What clients must prove, as one word: the value of a section in the map `guarded`. */
export function guardWord({ verify, authority, crl }: NonNullable<Tls['clients']>): string {
  return [verify, contentOf(authority), ...(crl === undefined ? [] : [crl.fingerprint])].join('.');
}

/** All names of a listener. */
const ALL = '*';

/** True if clients must show a certificate for a name for which they need none by `before`. */
export function guardsMore(tls: Tls | undefined, before: Tls | undefined): boolean {
  return newlyGuarded(tls, before).size > 0;
}

/**
 * `today` for a listener whose TLS is `before`: the hosts for which only today's TLS asks for certificates keep their routes
 * of before, or have none.
 */
export function closedRoutes(
  { routing: before, tls }: { readonly routing: HttpRouting; readonly tls: Tls | undefined },
  { routing: today, tls: tlsToday }: { readonly routing: HttpRouting; readonly tls: Tls | undefined },
): HttpRouting {
  const guarded = newlyGuarded(tlsToday, tls);
  if (guarded.size === 0) return today;
  const names = new Set(today.sections.map(({ hostname }) => nameOf(hostname)));
  // Routes that cannot be found by their section stay as they were, with all others.
  if (guarded.has(ALL) || [...guarded].some((name) => !names.has(name))) return before;
  const sections = today.sections.map((section): RouteSection => {
    if (!guarded.has(nameOf(section.hostname))) return section;
    return before.sections.find(({ name }) => name === section.name) ?? { ...section, hosts: [] };
  });
  return { ...today, sections };
}

function newlyGuarded(tls: Tls | undefined, before: Tls | undefined): ReadonlySet<string> {
  const guardedBefore = guardedNames(before);
  return new Set([...guardedNames(tls)].filter((name) => !guardedBefore.has(name)));
}

function guardedNames(tls: Tls | undefined): ReadonlySet<string> {
  if (tls === undefined) return new Set();
  return new Set([...(tls.clients?.verify === 'required' ? [ALL] : []), ...guardedSections(tls)]);
}

/** The hosts whose clients must show a certificate, in order; not those of the section for all others. */
export function guardedSections({ sections = [] }: Tls): readonly string[] {
  return sections
    .filter(({ clients }) => clients?.verify === 'required')
    .map(({ hostname }) => nameOf(hostname))
    .sort();
}

function nameOf({ kind, suffix }: HostPattern): string {
  return `${kind} ${suffix}`;
}
