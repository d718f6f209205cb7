// The inside of a listener with routes, for the status page: its hosts with their routes, and its certificates. Pure.

import type { PageCertificate, PageHost, PageListener } from '../../../health/page-model.ts';
import { memoByIdentity } from '../../base/memo.ts';
import type { Listener } from '../../model/load-balancer.ts';
import type { HostPattern, HostRoutes, Routing } from '../../model/routes.ts';
import { cut } from './overview-row.ts';

/** The most of one listener, which counts the rest. */
const MAX_HOSTS = 50;
const MAX_CERTIFICATES = 20;
/** The most of one host. */
const MAX_ROUTES = 10;

type Inside = Pick<PageListener, 'hosts' | 'moreHosts' | 'certificates' | 'moreCertificates'>;

/** undefined: the listener is gone. */
export function insideOf(listener: Listener | undefined): Inside {
  const hosts = listener?.routing === undefined ? [] : hostsOf(listener.routing);
  const certificates = listener === undefined ? [] : certificatesOf(listener);
  return {
    hosts: hosts.slice(0, MAX_HOSTS),
    moreHosts: Math.max(0, hosts.length - MAX_HOSTS),
    certificates: certificates.slice(0, MAX_CERTIFICATES),
    moreCertificates: Math.max(0, certificates.length - MAX_CERTIFICATES),
  };
}

/** In the order of their names; a host of several sections once for each. */
const hostsOf = memoByIdentity((routing: Routing): readonly PageHost[] => {
  switch (routing.kind) {
    case 'http':
      return routing.sections
        .flatMap(({ hosts }) => hosts.map(hostOf))
        .sort((a, b) => (a.host < b.host ? -1 : 1));
    case 'tls':
      return routing.hosts.map(({ host }) => ({ host: nameOf(host), routes: [], moreRoutes: 0 }));
    case 'tcp':
      return [];
  }
});

const hostOf = memoByIdentity(({ host, entries }: HostRoutes): PageHost => {
  const routes = [...new Set(entries.map(({ rule }) => rule.route))];
  const shown = routes.slice(0, MAX_ROUTES).map(cut);
  return { host: nameOf(host), routes: shown, moreRoutes: routes.length - shown.length };
});

function nameOf({ kind, suffix }: HostPattern): string {
  if (kind === 'any') return '*';
  return kind === 'exact' ? suffix : `*.${suffix}`;
}

/** Certificates that expire first before others, each once. */
function certificatesOf({ tls }: Listener): readonly PageCertificate[] {
  const all = [...(tls?.certificates ?? []), ...(tls?.sections ?? []).flatMap((each) => each.certificates)];
  return [...new Map(all.map(({ name, expires }) => [name, expires]))]
    .sort(([, a], [, b]) => a - b)
    .map(([name, expires]) => ({ name, expires: new Date(expires).toISOString() }));
}
