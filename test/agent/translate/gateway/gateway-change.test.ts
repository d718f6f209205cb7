// Changes of single objects around a Gateway: what they cost, what keeps its identity, and that the result is the same as that of
// an agent that reads all objects at once.

import { deepStrictEqual } from 'node:assert/strict';
import test from 'ava';
import fc from 'fast-check';
import { planLoadBalancer } from '../../../../agent/haproxy/plan.ts';
import { Running } from '../../../../agent/haproxy/running.ts';
import type { HttpRoute } from '../../../../agent/kubernetes/gateway/route-objects.ts';
import type { HttpRouting } from '../../../../agent/model/routes.ts';
import { processorTime } from '../../../support/measure/processor-time.ts';
import { service, slice } from '../../../support/values/build.ts';
import { API, secret, WEB } from '../../../support/values/certificates.ts';
import { GatewayWorld } from '../../../support/values/gateway-world.ts';
import { gatewayJson, parsed, routeJson } from '../../../support/values/gateways.ts';

type Json = Readonly<Record<string, unknown>>;

const EDGE = [{ name: 'edge' }];

function routeOf(name: string, hostname: string, path = '/', to = 'web'): Json {
  const rules = [{ matches: [{ path: { value: path } }], backendRefs: [{ name: to, port: 80 }] }];
  return routeJson(name, EDGE, { hostnames: [hostname], rules });
}

function hostsOf(world: GatewayWorld) {
  const { sections } = world.listener().routing as HttpRouting;
  return new Map(sections[0]?.hosts.map((each) => [each.host.suffix, each]));
}

test('A change of one route keeps the routes of other hosts, and the statuses of other routes', (t) => {
  const world = new GatewayWorld([gatewayJson(), routeOf('a', 'a.org'), routeOf('b', 'b.org')]);
  const before = hostsOf(world);
  const status = world.status('HTTPRoute', 'default/b');
  const gateway = world.status('Gateway', 'default/edge');
  world.apply([routeOf('a', 'a.org', '/new')]);
  const after = hostsOf(world);
  t.not(after.get('a.org'), before.get('a.org'));
  t.is(after.get('b.org'), before.get('b.org'));
  t.is(world.status('HTTPRoute', 'default/b'), status);
  t.is(world.status('Gateway', 'default/edge'), gateway);
});

test('A change of a Service that routes do not read keeps everything', (t) => {
  const world = new GatewayWorld([gatewayJson(), routeOf('a', 'a.org')]);
  const before = world.loadBalancer();
  t.deepEqual([...world.apply([service({ name: 'other', type: 'ClusterIP' })])], []);
  t.is(world.loadBalancer(), before);
});

test.serial(
  'A change of one route among 5,000 of a Gateway takes a small part of the time of the first translation',
  (t) => {
    const routes = Array.from({ length: 5_000 }, (_, at) => routeOf(`r${at}`, `h${at}.org`));
    const world = new GatewayWorld();
    const timeOf = (changes: readonly Json[]) => {
      const before = processorTime();
      world.apply(changes);
      return processorTime() - before;
    };
    const first = timeOf([gatewayJson(), ...routes]);
    world.apply([routeOf('r7', 'h7.org', '/warm')]);
    const times = Array.from({ length: 9 }, (_, at) => timeOf([routeOf('r7', 'h7.org', `/p${at}`)]));
    const median = times.toSorted((a, b) => a - b)[4] ?? Number.POSITIVE_INFINITY;
    t.log(`first ${first.toFixed(0)} ms, a change ${median.toFixed(1)} ms`);
    t.true(median < first / 5, `first ${first} ms, a change ${median} ms`);
  },
);

const TLS = { name: 'https', port: 443, protocol: 'HTTPS' };

test('A renewed certificate attaches no route again, and keeps all other certificates', (t) => {
  const names = ['a-tls', 'b-tls', 'c-tls'];
  const listeners = [{ ...TLS, tls: { certificateRefs: names.map((name) => ({ name })) } }];
  const world = new GatewayWorld([gatewayJson('edge', { listeners }), ...names.map((name) => secret(name))]);
  const route = parsed(routeOf('a', 'a.org')) as HttpRoute;
  let reads = 0;
  const { parents } = route;
  const counting = Object.defineProperty({ ...route }, 'parents', {
    enumerable: true,
    get: () => {
      reads++;
      return parents;
    },
  });
  world.apply([counting]);
  t.true(reads > 0);
  const before = world.listener(443);
  reads = 0;
  t.deepEqual([...world.apply([secret('b-tls', API)])], ['gateway:default/edge']);
  const after = world.listener(443);
  t.is(reads, 0);
  t.deepEqual(
    after.tls?.certificates.map((each, at) => each === before.tls?.certificates[at]),
    [true, false, true],
  );
});

test.serial(
  'Of thousands of certificates a renewed one is planned in a time that they do not multiply',
  (t) => {
    const timeOf = (count: number): number => {
      const names = Array.from({ length: count }, (_, at) => `tls-${at}`);
      const listeners = Array.from({ length: count / 64 }, (_, at) => ({
        ...TLS,
        name: `l${at}`,
        hostname: `h${at}.org`,
        tls: { certificateRefs: names.slice(at * 64, at * 64 + 64).map((name) => ({ name })) },
      }));
      const first = secret('tls-0');
      const world = new GatewayWorld([
        gatewayJson('edge', { listeners }),
        ...names.map((name) => ({ ...first, name, key: `default/${name}`, pair: { ...first.pair } })),
      ]);
      const key = 'gateway:default/edge';
      const running = Running.booted([world.loadBalancer(key)], () => 1);
      const renewed = [secret('tls-7', API), secret('tls-7', WEB)];
      const times = Array.from({ length: 10 }, (_, at) => {
        const began = processorTime();
        world.apply(renewed.slice(at % 2, (at % 2) + 1));
        const now = world.loadBalancer(key);
        const { commands, reload } = planLoadBalancer({ key, running, before: now, after: now });
        const time = processorTime() - began;
        t.deepEqual(
          [commands.map(({ kind }) => kind), reload],
          [['StageCertificate', 'CommitCertificate'], undefined],
        );
        for (const command of commands) running.fold(command);
        return time;
      });
      return times.toSorted((a, b) => a - b)[4] ?? Number.POSITIVE_INFINITY;
    };
    timeOf(384);
    const [few, many] = [timeOf(384), timeOf(3_840)];
    t.log(`384: ${few.toFixed(2)} ms, 3,840: ${many.toFixed(2)} ms`);
    // Ten times as many certificates: the square would be a hundred times the time.
    t.true(many < 50 * few, `${few} ms, ${many} ms`);
  },
);

/** Objects that depend on one another in many ways. */
const objects = fc.oneof(
  fc
    .record({
      name: fc.constantFrom('a', 'b', 'c'),
      hostname: fc.constantFrom('a.org', '*.a.org', 'b.a.org'),
      path: fc.constantFrom('/', '/x'),
      to: fc.constantFrom('web', 'other', 'gone'),
      section: fc.constantFrom('http', 'more', ''),
    })
    .map(({ name, hostname, path, to, section }) => ({
      ...routeOf(name, hostname, path, to),
      spec: {
        ...(routeOf(name, hostname, path, to).spec as Json),
        parentRefs: [{ name: 'edge', ...(section && { sectionName: section }) }],
      },
    })),
  fc
    .record({ more: fc.constantFrom('', 'b.a.org', '*.a.org'), port: fc.constantFrom(80, 8080) })
    .map(({ more, port }) =>
      gatewayJson('edge', {
        listeners: [
          { name: 'http', port: 80, protocol: 'HTTP' },
          { name: 'more', port, protocol: 'HTTP', ...(more && { hostname: more }) },
        ],
      }),
    ),
  fc.constantFrom(80, 81).map((port) => service({ name: 'other', type: 'ClusterIP', ports: [{ port }] })),
  fc
    .constantFrom('10.0.0.1', '10.0.0.2')
    .map((address) => slice({ serviceName: 'other', endpoints: [address] })),
);

test('Changes one by one give the same as all objects at once', (t) => {
  const resultOf = ({ state: { desired } }: GatewayWorld) => ({
    loadBalancers: [...desired.loadBalancers].sort(([a], [b]) => (a < b ? -1 : 1)),
    statuses: [
      'HTTPRoute default/a',
      'HTTPRoute default/b',
      'HTTPRoute default/c',
      'Gateway default/edge',
    ].map((name) => desired.statuses.partsOf(name)),
  });
  const keyOf = (object: Json | { readonly kind: string; readonly key: string }) =>
    'key' in object ? `${object.kind} ${object.key}` : `${object.kind} ${(object.metadata as Json).name}`;
  fc.assert(
    fc.property(fc.array(objects, { minLength: 1, maxLength: 8 }), (changes) => {
      const world = new GatewayWorld([gatewayJson()]);
      for (const change of changes) world.apply([change]);
      const last = new Map(changes.map((change) => [keyOf(change), change]));
      // Routes are the same age and sorted by name, so that their order in the store does not matter.
      const fresh = new GatewayWorld([gatewayJson(), ...last.values()]);
      deepStrictEqual(sorted(resultOf(world)), sorted(resultOf(fresh)));
    }),
    { numRuns: 200 },
  );
  t.pass();
});

/** Hosts of a section are unordered. */
function sorted(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, each) =>
      key === 'hosts' && Array.isArray(each)
        ? each.toSorted((a, b) => (JSON.stringify(a.host) < JSON.stringify(b.host) ? -1 : 1))
        : each,
    ),
  );
}
