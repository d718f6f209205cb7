// Hosts of Ingresses whose TLS is passed through: the members end it, so that nothing of their requests is known here. The HTTP
// rules of such an Ingress answer 403; only a connection by its host's name gets to its Service. Pure.

import type { Problem } from '../../model/load-balancer.ts';
import type { TlsHost, TlsRouting } from '../../model/routes.ts';
import { ANY_HOST, hostPattern, wildcardOf } from '../routes/host-pattern.ts';
import type { OwnedIngress } from './owned-hosts.ts';

/** By host: the pool that its TLS goes to. Of the Ingresses of a host the oldest decides; `all`: the oldest first. */
export function passedHosts(all: readonly OwnedIngress[], problems: Problem[]): ReadonlyMap<string, string> {
  const deciding = new Map<string, string>();
  const passed = new Map<string, string>();
  for (const { ingress, read } of all) {
    const hosts = new Set([...read.hosts, ...read.canaries].map(({ host }) => host));
    for (const host of hosts) {
      const pool = read.passed.get(host);
      const first = deciding.get(host);
      if (first === undefined) {
        deciding.set(host, ingress.key);
        if (pool !== undefined) passed.set(host, pool);
      } else if ((pool === undefined) === passed.has(host)) {
        const effect = passed.has(host) ? 'whose TLS is passed through' : 'whose TLS ends here';
        const message = `Nothing of host "${host}" is served by https: it belongs to the older Ingress "${first}", ${effect}`;
        problems.push({ object: `Ingress ${ingress.key}`, reason: 'RouteShadowed', message });
      }
    }
  }
  return passed;
}

/** `ended`: hosts whose TLS ends here; undefined if none does. Without a passed host there is nothing to choose. */
export function passthroughOf(
  passed: ReadonlyMap<string, string>,
  ended: readonly string[] | undefined,
): TlsRouting | undefined {
  if (passed.size === 0) return undefined;
  const hosts = Array.from(
    passed,
    ([host, pool]): TlsHost => ({
      host: hostPattern(host, 'one-label'),
      backends: [{ pool, weight: 1, requestHeaders: undefined, responseHeaders: undefined }],
    }),
  );
  const narrower = (ended ?? []).filter((host) => !passed.has(host) && passed.has(wildcardOf(host)));
  const endedHosts =
    ended === undefined
      ? []
      : [...narrower.map((host) => hostPattern(host, 'one-label')), ANY_HOST].map(
          (host): TlsHost => ({ host, backends: [], isEnded: true }),
        );
  return { kind: 'tls', hosts: [...hosts, ...endedHosts] };
}
