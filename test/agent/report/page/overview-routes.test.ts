import test from 'ava';
import type { Listener } from '../../../../agent/model/load-balancer.ts';
import type { HostPattern, RouteEntry } from '../../../../agent/model/routes.ts';
import { insideOf } from '../../../../agent/report/page/overview-routes.ts';

const entry = (route: string): RouteEntry => ({ rule: { route } }) as unknown as RouteEntry;
const exact = (suffix: string): HostPattern => ({ kind: 'exact', suffix });

function listener(hosts: readonly { host: HostPattern; entries: readonly RouteEntry[] }[]): Listener {
  const routing = { kind: 'http', detectMisdirected: false, sections: [{ name: 'web', hosts }] };
  return { routing, tls: undefined } as unknown as Listener;
}

test('insideOf() names each host with its routes, each route once', (t) => {
  const route = 'HTTPRoute shop/web';
  const { hosts, moreHosts } = insideOf(
    listener([
      { host: { kind: 'labels', suffix: 'example.org' }, entries: [entry(route), entry(route)] },
      { host: exact('a.example.org'), entries: [entry(route), entry('HTTPRoute shop/api')] },
      { host: { kind: 'any', suffix: '' }, entries: [] },
    ]),
  );
  t.deepEqual(hosts, [
    { host: '*', routes: [], moreRoutes: 0 },
    { host: '*.example.org', routes: [route], moreRoutes: 0 },
    { host: 'a.example.org', routes: [route, 'HTTPRoute shop/api'], moreRoutes: 0 },
  ]);
  t.is(moreHosts, 0);
});

test('insideOf() shows the first of thousands, and counts the rest', (t) => {
  const routes = Array.from({ length: 300 }, (_, at) => entry(`HTTPRoute shop/route-${at}`));
  const hosts = Array.from({ length: 2_000 }, (_, at) => ({
    host: exact(`h${at}.example.org`),
    entries: routes,
  }));
  const inside = insideOf(listener(hosts));
  t.deepEqual([inside.hosts.length, inside.moreHosts], [50, 1_950]);
  t.deepEqual([inside.hosts[0]?.routes.length, inside.hosts[0]?.moreRoutes], [10, 290]);
});

test('insideOf() names each certificate once, the first that expires first', (t) => {
  const certificate = (name: string, expires: number) => ({ name, expires });
  const tls = {
    certificates: [certificate('shop/b', Date.UTC(2027, 0, 2)), certificate('shop/a', Date.UTC(2027, 0, 1))],
    sections: [{ certificates: [certificate('shop/b', Date.UTC(2027, 0, 2))] }],
  };
  t.deepEqual(insideOf({ routing: undefined, tls } as unknown as Listener).certificates, [
    { name: 'shop/a', expires: '2027-01-01T00:00:00.000Z' },
    { name: 'shop/b', expires: '2027-01-02T00:00:00.000Z' },
  ]);
  t.deepEqual(insideOf(undefined), { hosts: [], moreHosts: 0, certificates: [], moreCertificates: 0 });
});
