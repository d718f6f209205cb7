// With the setting `hostsOfOneNamespace` a host of an Ingress class belongs to the namespace whose Ingress had a rule for it
// first: another namespace has no part in it, be it by a rule, an alias, a certificate, an authority of clients, a canary, or
// as the wider host that gets what the owner's paths do not match. Pure.

import type { Ingress, IngressTls } from '../../kubernetes/ingress/ingress-objects.ts';
import type { Problem } from '../../model/load-balancer.ts';
import { wildcardOf } from '../routes/host-pattern.ts';
import type { ReadIngress } from './ingress-rules.ts';

export interface OwnedIngress {
  readonly ingress: Ingress;
  readonly read: ReadIngress;
  /** The entries of its `tls`, with the hosts that it may have. */
  readonly tls: readonly IngressTls[];
}

export interface OwnedHosts {
  readonly ingresses: readonly OwnedIngress[];
  /** The namespace that a host belongs to; undefined without the setting, and for hosts that no namespace has. */
  readonly ownerOf: (host: string) => string | undefined;
}

type OnClass = Omit<OwnedIngress, 'tls'>;

export function sharedHosts(all: readonly OnClass[]): OwnedHosts {
  return {
    ingresses: all.map((each) => ({ ...each, tls: each.ingress.tls })),
    ownerOf: () => undefined,
  };
}

/** `all`: the oldest one first. */
export function ownedHosts(all: readonly OnClass[], problems: Problem[]): OwnedHosts {
  const owners = new Map<string, string>();
  const claim = (host: string, { ingress: { namespace } }: OnClass): void => {
    if (!owners.has(host)) owners.set(host, namespace);
  };
  // A certificate for a host that another namespace serves is no claim, however old it is.
  for (const each of all) for (const { host } of each.read.hosts) claim(host, each);
  for (const each of all) if (each.read.fallback !== undefined) claim('', each);
  for (const each of all) for (const host of certifiedHosts(each)) claim(host, each);
  const ingresses = all.map((each) => {
    const { ingress, read } = each;
    const lost = new Set<string>();
    const has = (host: string): boolean => {
      const isOwn = owners.get(host) === ingress.namespace;
      if (!isOwn) lost.add(host);
      return isOwn;
    };
    const hosts = read.hosts.filter(({ host }) => has(host));
    const canaries = read.canaries.filter(({ host }) => !owners.has(host) || has(host));
    const fallback = read.fallback !== undefined && has('') ? read.fallback : undefined;
    const tls = ingress.tls.flatMap((entry) => {
      // Without hosts its certificate is for all names that no other entry has.
      if (entry.hosts.length === 0) return has('') ? [entry] : [];
      const own = entry.hosts.filter(has);
      return own.length === 0 ? [] : [{ ...entry, hosts: own }];
    });
    for (const host of lost)
      problems.push({
        object: `Ingress ${ingress.key}`,
        reason: 'RouteShadowed',
        message: `Cannot serve host "${host || '*'}": an older Ingress of namespace "${owners.get(host)}" has it, and each host belongs to one namespace (setting hostsOfOneNamespace)`,
      });
    return { ...each, tls, read: lost.size === 0 ? read : { ...read, hosts, canaries, fallback } };
  });
  return { ingresses, ownerOf: (host) => owners.get(host) };
}

function certifiedHosts({ ingress: { tls } }: OnClass): readonly string[] {
  return tls.flatMap(({ hosts }) => (hosts.length === 0 ? [''] : hosts));
}

/** The next wider hosts of a host, the narrowest first. */
export function widerHosts(host: string): readonly string[] {
  if (host === '') return [];
  return host.startsWith('*.') ? [''] : [wildcardOf(host), ''];
}
