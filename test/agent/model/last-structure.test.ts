import test from 'ava';
import { withStructureOf } from '../../../agent/model/last-structure.ts';
import type { Listener, LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { entryOf, gatewayOf, patternOf, poolOf, sectionOf } from '../../support/values/routes.ts';

const PLACE = { address: '192.0.2.1', port: 80 };
const listenerOf = ({ listeners: [listener] }: LoadBalancer): Listener => listener as Listener;

function gateway(to: string, changes: Partial<Listener> = {}, detectMisdirected = false): Listener {
  const sections = [sectionOf('http', '*', { 'a.example': [entryOf('/', to)] })];
  return listenerOf(gatewayOf(PLACE, { kind: 'http', sections, detectMisdirected }, changes));
}

test("withStructureOf() takes today's members, clients and routes, and no limits", (t) => {
  const before = gateway('web', { connectionLimit: 1 });
  const today = gateway('api', { connectionLimit: 2, allowedCidrs: ['192.0.2.0/24'] });
  const made = withStructureOf(before, today);
  t.is(made.routing, today.routing);
  t.deepEqual([made.connectionLimit, made.allowedCidrs], [1, ['192.0.2.0/24']]);
  const [one, two] = [poolOf('web', ['10.0.0.1:80']), poolOf('web', ['10.0.0.2:80'], { connectionLimit: 3 })];
  const pool = withStructureOf(listenerOf(one), listenerOf(two));
  t.deepEqual([pool.connectionLimit, pool.pool.members], [0, listenerOf(two).pool.members]);
});

test('withStructureOf() keeps the kind of routing, and whether misdirected requests are detected', (t) => {
  const before = gateway('web', {}, true);
  const today = gateway('api');
  t.deepEqual(withStructureOf(before, today).routing, { ...today.routing, detectMisdirected: true });
  const tls = listenerOf(gatewayOf(PLACE, { kind: 'tls', hosts: [] }));
  t.is(withStructureOf(before, tls).routing, before.routing);
  t.is(withStructureOf(before, { ...today, routing: undefined }).routing, before.routing);
});

test('withStructureOf() keeps the certificates of before with their contents of today', (t) => {
  const certificate = (name: string, fingerprint: string) => ({
    name,
    fingerprint,
    sha1: fingerprint,
    chainLength: 0,
    bytes: 1,
    expires: 0,
  });
  const tls = (...certificates: readonly ReturnType<typeof certificate>[]): Listener['tls'] => ({
    certificates,
    minVersion: '1.2',
    ciphers: [],
    clients: undefined,
    alpn: [],
  });
  const before = gateway('web', { tls: tls(certificate('default/a', 'old'), certificate('default/b', 'b')) });
  const today = gateway('web', { tls: tls(certificate('default/c', 'c'), certificate('default/a', 'new')) });
  t.deepEqual(
    withStructureOf(before, today).tls?.certificates.map(({ name, fingerprint }) => `${name} ${fingerprint}`),
    ['default/a new', 'default/b b'],
  );
});

test('withStructureOf() opens no host that only the TLS of today guards by client certificates', (t) => {
  const guard = { verify: 'required', authority: { name: 'secret default/ca', fingerprint: 'a' } } as const;
  const tls = (clients: typeof guard | undefined): Listener['tls'] => ({
    certificates: [],
    minVersion: '1.2',
    ciphers: [],
    clients: undefined,
    alpn: [],
    sections: [
      {
        hostname: patternOf('a.example'),
        certificates: [],
        clients,
      },
    ],
  });
  const routed = (to: string, clients: typeof guard | undefined, names: readonly string[]): Listener => {
    const sections = names.map((name) =>
      sectionOf(name, name, { [name]: [entryOf('/', name === 'a.example' ? to : `${to}-b`)] }),
    );
    const routing = { kind: 'http', sections, detectMisdirected: true } as const;
    return listenerOf(gatewayOf(PLACE, routing, { tls: tls(clients) }));
  };
  const both = ['a.example', 'b.example'];
  const shown = (before: Listener, today: Listener) => {
    const { routing } = withStructureOf(before, today);
    return routing?.kind === 'http' ? routing.sections : [];
  };
  const [closed, open] = [routed('closed', undefined, both), routed('open', guard, both)];
  const sectionsOf = ({ routing }: Listener) => (routing?.kind === 'http' ? routing.sections : []);
  t.deepEqual(shown(closed, open), [sectionsOf(closed)[0], sectionsOf(open)[1]] as never);
  t.deepEqual(
    shown(routed('closed', undefined, ['b.example']), open).map(({ hosts }) => hosts.length),
    [0, 1],
  );
  t.deepEqual(shown(closed, routed('open', guard, ['b.example'])), sectionsOf(closed));
  t.deepEqual(shown(open, routed('later', guard, both)), sectionsOf(routed('later', guard, both)));
});
