// The hosts of an Ingress class as sections of a port, by the client certificates that they ask for. Pure.

import type { HostRoutes, HttpRouting, RouteSection } from '../../model/routes.ts';
import { ANY_HOST, hostText, wildcardOf } from '../routes/host-pattern.ts';
import type { IngressGuards } from './ingress-guards.ts';

const SECTION = 'all';

/** `guards`: by host; without one the port asks for no certificates. */
export function classRouting(
  hosts: readonly HostRoutes[],
  guards: IngressGuards['hosts'] = new Map(),
): HttpRouting {
  const sections = sectionsOf(hosts, guards);
  return { kind: 'http', sections, detectMisdirected: sections.some(({ name }) => name !== SECTION) };
}

/**
 * A host whose clients need a certificate is a section of its own: a client that names another host in its handshake does not
 * get there. Each of the others is a section if all hosts are guarded, or its wildcard, which would take its requests.
 */
function sectionsOf(hosts: readonly HostRoutes[], guards: IngressGuards['hosts']): readonly RouteSection[] {
  const isAsked = (host: string): boolean => guards.has(host) && guards.get(host) !== 'closed';
  const isAlone = ({ host }: HostRoutes): boolean =>
    isAsked('') || (host.kind !== 'any' && [hostText(host), wildcardOf(hostText(host))].some(isAsked));
  const alone = hosts.filter(isAlone).map((each) => ({
    name: hostText(each.host),
    hostname: each.host,
    hosts: [each],
  }));
  if (isAsked('')) return alone;
  return [{ name: SECTION, hostname: ANY_HOST, hosts: hosts.filter((each) => !isAlone(each)) }, ...alone];
}
