// The hosts of an Ingress class with their routes, on port 80 and on port 443: what the guards of a host leave of the paths of all its
// Ingresses, with the parts of canaries. Pure; the lists of hosts keep what does not change.

import type { HostRoutes } from '../../model/routes.ts';
import { isStrict } from '../../model/strict-hosts.ts';
import { hostKey, hostPattern } from '../routes/host-pattern.ts';
import type { RouteEntries } from '../routes/host-routes.ts';
import { nothingElse } from '../routes/nothing-else.ts';
import type { SectionHosts } from '../routes/section-hosts.ts';
import { withCanaries } from './canaries.ts';
import { withName } from './certificate-names.ts';
import type { IngressGuards } from './ingress-guards.ts';
import type { Canary, HostEntries } from './ingress-rules.ts';
import { type OwnedHosts, type OwnedIngress, widerHosts } from './owned-hosts.ts';
import { redirected, refusedAll, refusedInClear, withoutContent } from './plain-http.ts';

/** `isHttps`: a certificate is served for the host. */
export function plainHosts(
  hosts: OwnedHosts,
  section: SectionHosts,
  guards: IngressGuards,
  isHttps: (host: string) => boolean,
): readonly HostRoutes[] {
  return hostRoutes(
    hosts,
    section,
    (entries, by) => plainRoutes(entries, by, guards, isHttps),
    ({ forcesTls }) => !forcesTls,
  );
}

export function secureHosts(
  hosts: OwnedHosts,
  section: SectionHosts,
  guards: IngressGuards,
): readonly HostRoutes[] {
  return hostRoutes(hosts, section, (entries, by) => secureRoutes(entries, by, guards));
}

type ByHost = Pick<OwnedIngress, 'ingress'>;

function secureRoutes({ host, entries }: HostEntries, by: ByHost, guards: IngressGuards): RouteEntries {
  return isClosed(host, by, guards) ? refusedAll(entries) : withName(entries, guards.names.get(host));
}

function plainRoutes(
  { host, entries, toHttps }: HostEntries,
  by: ByHost,
  guards: IngressGuards,
  isHttps: (host: string) => boolean,
): RouteEntries {
  if (isClosed(host, by, guards)) return refusedInClear(entries);
  const leads = toHttps === 'always' || (toHttps === 'if-served' && isHttps(host));
  const routes = leads ? redirected(entries) : withName(entries, guards.names.get(host));
  const guard = guards.hosts.get(host);
  return guard !== undefined && guard !== 'closed' && guard.verify === 'required'
    ? withoutContent(routes)
    : routes;
}

function isClosed(host: string, { ingress }: ByHost, { hosts, isRefused }: IngressGuards): boolean {
  return hosts.get(host) === 'closed' || isRefused(ingress.key, host);
}

function hostRoutes(
  { ingresses, ownerOf }: OwnedHosts,
  section: SectionHosts,
  side: (entries: HostEntries, by: ByHost) => RouteEntries,
  isShared: (canary: Canary) => boolean = () => true,
): readonly HostRoutes[] {
  const canaries = Map.groupBy(
    ingresses.flatMap(({ read }) => read.canaries).filter(isShared),
    ({ host }) => host,
  );
  const own = new Map<string, (readonly [HostEntries, OwnedIngress])[]>();
  const add = (entries: HostEntries, by: OwnedIngress): void => {
    const found = own.get(entries.host);
    if (found === undefined) own.set(entries.host, [[entries, by]]);
    else found.push([entries, by]);
  };
  for (const each of ingresses) for (const entries of each.read.hosts) add(entries, each);
  for (const each of ingresses) if (each.read.fallback !== undefined) add(each.read.fallback, each);
  const byHost = new Map<string, RouteEntries[]>();
  for (const [host, all] of own) {
    const plain = all.map(([entries, by]) => side(entries, by));
    // A guarded path in another spelling would get an open rule of the host, or of a wider one.
    const needsSpellings =
      all.some(([{ hasExpressions }]) => hasExpressions) && isStrict(plain.flatMap(({ entries }) => entries));
    const routes = needsSpellings
      ? all.map(([entries, by]) => side({ ...entries, entries: entries.inEverySpelling }, by))
      : plain;
    byHost.set(
      host,
      routes.map((each, at) => withCanaries(each, canaries.get(host) ?? [], all[at]?.[1].read)),
    );
  }
  for (const [host, entries] of byHost) {
    const wider = widerHosts(host).find((each) => byHost.has(each));
    const [first] = entries;
    if (wider !== undefined && first !== undefined && ownerOf(wider) !== ownerOf(host))
      entries.push(
        nothingElse(first, first.entries[0]?.rule.route ?? `Ingress ${first.key.replace(/^~/, '')}`),
      );
  }
  const routes = [...byHost].flatMap(([text, all]) => {
    const host = hostPattern(text, 'one-label');
    const hosts = [{ host, key: hostKey(host) }];
    return all.map((entries) => ({ entries, hosts }));
  });
  return section.update(routes);
}
