// Translating changes step by step must give the same desired state as an agent that starts after them, which reads all
// objects at once and remembers who has which port.

import { deepStrictEqual } from 'node:assert/strict';
import test from 'ava';
import fc from 'fast-check';
import { Cluster } from '../../../agent/kubernetes/cluster.ts';
import type { KubernetesObject } from '../../../agent/kubernetes/objects.ts';
import type { DesiredState } from '../../../agent/model/desired-state.ts';
import { endpoint, node, service, slice } from '../../support/values/build.ts';
import { FollowedState } from '../../support/values/translated.ts';

interface Change {
  readonly object: KubernetesObject;
  readonly isRemoved: boolean;
}

const names = fc.constantFrom('a', 'b', 'c');
/** 10.0.0.1 and 8080 are also an endpoint's, so that members become VIPs. */
const ports = fc.uniqueArray(fc.constantFrom(80, 81, 8080), { minLength: 1 });

const services = fc
  .record({
    name: names,
    created: fc.constantFrom(1, 2, Number.POSITIVE_INFINITY),
    type: fc.constantFrom('LoadBalancer', 'LoadBalancer', 'ClusterIP'),
    loadBalancerClass: fc.constantFrom('headgate.io/agent', 'headgate.io/agent', undefined),
    loadBalancerIP: fc.constantFrom('192.0.2.1', '10.0.0.1', '2001:db8::1', undefined),
    statusIPs: fc.constantFrom([], ['192.0.2.1']),
    externalTrafficPolicy: fc.constantFrom('Cluster', 'Local'),
    annotations: fc.constantFrom(
      {},
      { 'headgate.io/members': 'nodes' },
      { 'headgate.io/health-monitor': 'tcp' },
      { 'headgate.io/load-balancer-ips': '192.0.2.1,2001:db8::1' },
    ),
    ports: ports.map((list) => list.map((port) => ({ name: `p${port}`, port, nodePort: 30_000 + port }))),
  })
  .map((given) => service(given as Parameters<typeof service>[0]));

const slices = fc
  .record({
    serviceName: names,
    which: fc.constantFrom(1, 2),
    endpoints: fc.array(
      fc.record({
        host: fc.integer({ min: 1, max: 4 }),
        terminating: fc.boolean(),
        nodeName: fc.constantFrom('n1', 'n2'),
      }),
      { maxLength: 3 },
    ),
    port: fc.constantFrom(8080, 8081),
  })
  .map(({ serviceName, which, endpoints, port }) =>
    slice({
      serviceName,
      name: `${serviceName}-${which}`,
      endpoints: endpoints.map(({ host, ...rest }) => endpoint(`10.0.0.${host}`, rest)),
      ports: [80, 81, 8080].map((each) => ({ name: `p${each}`, port })),
    }),
  );

const nodes = fc
  .record({
    name: fc.constantFrom('n1', 'n2'),
    host: fc.integer({ min: 1, max: 3 }),
    deleting: fc.boolean(),
    labels: fc.constantFrom({}, { 'node.kubernetes.io/exclude-from-external-load-balancers': '' }),
  })
  .map(({ host, ...given }) => node({ ...given, internalIPs: [`198.51.100.${host}`] }));

const changes: fc.Arbitrary<Change> = fc.record({
  object: fc.oneof(services, slices, nodes),
  isRemoved: fc.boolean(),
});

function shown({ loadBalancers, ignored, dependents }: DesiredState) {
  const byKey = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1);
  return {
    loadBalancers: [...loadBalancers].sort(byKey),
    ignored: [...ignored].sort(byKey),
    onNodes: [...dependents.of(['nodes'])].sort(),
  };
}

/** Bounds that nearly every state of these objects exceeds. */
const narrow = { maxServersPerNamespace: 14, maxChecksPerNamespace: 3 };

for (const bounds of [undefined, narrow]) {
  const within = bounds === undefined ? '' : ', also with narrow bounds of a namespace';
  test(`Translating changes step by step gives the same desired state as a restart after them${within}`, (t) => {
    const rounds = fc.array(fc.array(changes, { minLength: 1, maxLength: 4 }), { maxLength: 12 });
    const property = fc.property(rounds, (all) => {
      const state = new FollowedState(new Cluster(), {}, undefined, bounds);
      const { desired } = state;
      for (const round of all) {
        const before = new Map(desired.loadBalancers);
        const told = state.apply({
          upserted: round.filter(({ isRemoved }) => !isRemoved).map(({ object }) => object),
          removed: round.filter(({ isRemoved }) => isRemoved).map(({ object }) => object),
        });
        const again = new FollowedState(state.cluster, {}, undefined, bounds);
        for (const owner of desired.loadBalancers.keys())
          for (const port of desired.portOwners.portsOf(owner))
            again.desired.portOwners.remember(owner, port);
        again.translate([...state.cluster.services()].map(({ key }) => key));
        deepStrictEqual(shown(desired), shown(again.desired));
        const differing = [...new Set([...before.keys(), ...desired.loadBalancers.keys()])].filter(
          (key) => before.get(key) !== desired.loadBalancers.get(key),
        );
        deepStrictEqual([...told].sort(), differing.sort(), 'what was told has changed and nothing else');
      }
    });
    t.notThrows(() => fc.assert(property, { numRuns: 300 }));
  });
}
