import test from 'ava';
import fc from 'fast-check';
import {
  Cluster,
  type Differences,
  type ObjectRef,
  type ObjectSource,
} from '../../../agent/kubernetes/cluster.ts';
import type { Endpoints, KubernetesObject, Service } from '../../../agent/kubernetes/objects.ts';
import { claim as claimOf, pool } from '../../support/values/address-requests.ts';
import { node, service, slice } from '../../support/values/build.ts';
import {
  gateway,
  gatewayClass,
  ingress,
  ingressClass,
  parsed,
  routeJson,
} from '../../support/values/gateways.ts';

// No slice has an address in 10.0.9.0/24, so that the two always differ.
function endpoints(name = 'web', address = '10.0.9.9'): Endpoints {
  const key = `default/${name}`;
  const slices = [slice({ name, serviceName: name, endpoints: [address] })];
  return { kind: 'Endpoints', key, namespace: 'default', name, uid: '', slices };
}

function apply(
  cluster: Cluster,
  { upserted = [], removed = [] }: { upserted?: readonly KubernetesObject[]; removed?: readonly ObjectRef[] },
  source: ObjectSource = 'manifests',
) {
  const differences = cluster.apply({ upserted, removed }, source);
  return { keys: [...keysOf(differences)].sort(), nodesChanged: differences.dependencies.has('nodes') };
}

/** Keys of Services that differ, or whose endpoints do. */
function keysOf({ dependencies }: Differences): ReadonlySet<string> {
  return new Set([...dependencies].flatMap((each) => (each === 'nodes' ? [] : (each.split(' ')[1] ?? []))));
}

const addressesOf = (cluster: Cluster, key = 'default/web') =>
  cluster.slices(key).flatMap((each) => each.endpoints.map(({ address }) => address));

test("apply() reports changed pools and claims; the cluster's claim counts", (t) => {
  const cluster = new Cluster();
  const claimed = (service: string) => {
    const claim = claimOf('192-0-2-1', { address: '192.0.2.1', service });
    return { kind: 'AddressClaim', key: claim.name, uid: '', resourceVersion: '', claim } as const;
  };
  const apply = (upserted: readonly KubernetesObject[], source: ObjectSource) => {
    const { poolsChanged, claims } = cluster.apply({ upserted, removed: [] }, source);
    return { poolsChanged, claims: [...claims] };
  };
  t.deepEqual(apply([pool('a', ['192.0.2.0/24'])], 'api'), { poolsChanged: true, claims: [] });
  t.deepEqual(apply([pool('a', ['192.0.2.0/24'])], 'api'), { poolsChanged: false, claims: [] });
  t.deepEqual(apply([claimed('default/api')], 'api'), { poolsChanged: false, claims: ['192-0-2-1'] });
  t.deepEqual(apply([claimed('default/file')], 'manifests').claims, []);
  t.is(cluster.claim('192-0-2-1')?.claim.service, 'default/api');
  t.deepEqual(
    [...cluster.pools()].map(({ name }) => name),
    ['a'],
  );
});

test('apply() reports a Service, but not if it is unchanged', (t) => {
  const cluster = new Cluster();
  t.deepEqual(apply(cluster, { upserted: [service()] }).keys, ['default/web']);
  t.deepEqual(apply(cluster, { upserted: [service()] }).keys, []);
  t.deepEqual(apply(cluster, { upserted: [service({ ports: [81] })] }).keys, ['default/web']);
  t.is(cluster.service('default/web')?.ports[0]?.port, 81);
  t.deepEqual(apply(cluster, { removed: [{ kind: 'Service', key: 'default/web' }] }).keys, ['default/web']);
  t.is(cluster.service('default/web'), undefined);
  t.deepEqual(apply(cluster, { removed: [{ kind: 'Service', key: 'default/web' }] }).keys, []);
});

test('apply() reports changes of a Service of the API that a manifest shadows', (t) => {
  const cluster = new Cluster();
  const ofApi = service({ uid: 'u1', type: 'ClusterIP' });
  apply(cluster, { upserted: [service()] });
  t.is(cluster.shadowed('default/web'), undefined);
  t.deepEqual(apply(cluster, { upserted: [ofApi] }, 'api').keys, ['default/web']);
  t.is(cluster.shadowed('default/web')?.uid, 'u1');
  t.is(cluster.service('default/web')?.uid, '');
  t.deepEqual(apply(cluster, { upserted: [{ ...ofApi }] }, 'api').keys, []);
  t.deepEqual(apply(cluster, { upserted: [{ ...ofApi, type: 'LoadBalancer' }] }, 'api').keys, [
    'default/web',
  ]);
  t.deepEqual(apply(cluster, { removed: [ofApi] }, 'api').keys, ['default/web']);
  t.is(cluster.shadowed('default/web'), undefined);
  apply(cluster, { upserted: [ofApi] }, 'api');
  apply(cluster, { removed: [service()] });
  t.is(cluster.shadowed('default/web'), undefined);
  t.is(cluster.service('default/web')?.uid, 'u1');
});

test("A manifest's Service that the agent does not serve shadows none of the API", (t) => {
  let ours: string = 'LoadBalancer';
  const cluster = new Cluster(({ type }) => type === ours);
  const seen = () => [
    cluster.service('default/web')?.uid,
    cluster.isOfFolder('default/web'),
    cluster.shadowed('default/web')?.uid,
  ];
  const ofFolder = service({ uid: 'folder', type: 'ClusterIP' });
  const ofApi = service({ uid: 'api', type: 'LoadBalancer' });
  apply(cluster, { upserted: [ofFolder] });
  t.deepEqual(seen(), ['folder', true, undefined]);
  t.deepEqual(apply(cluster, { upserted: [ofApi] }, 'api').keys, ['default/web']);
  t.deepEqual(seen(), ['api', false, undefined]);
  t.deepEqual(apply(cluster, { upserted: [{ ...ofFolder, type: 'LoadBalancer' }] }).keys, ['default/web']);
  t.deepEqual(seen(), ['folder', true, 'api']);
  ours = 'none';
  cluster.reclassify();
  t.deepEqual(seen(), ['api', false, undefined]);
  t.deepEqual(apply(cluster, { removed: [ofApi] }, 'api').keys, ['default/web']);
  t.deepEqual(seen(), ['folder', true, undefined]);
});

// Conformance: label kubernetes.io/service-name
test('apply() reports both Services if a slice moves', (t) => {
  const cluster = new Cluster();
  t.deepEqual(apply(cluster, { upserted: [slice({ name: 's', serviceName: 'a' })] }).keys, ['default/a']);
  t.deepEqual(apply(cluster, { upserted: [slice({ name: 's', serviceName: 'b' })] }).keys, [
    'default/a',
    'default/b',
  ]);
  t.deepEqual(cluster.slices('default/a'), []);
  t.deepEqual(addressesOf(cluster, 'default/b'), ['10.0.0.1']);
});

// Conformance: label kubernetes.io/service-name
test('apply() reports no Service for a slice without one', (t) => {
  const cluster = new Cluster();
  t.deepEqual(apply(cluster, { upserted: [slice({ name: 's', serviceName: '' })] }).keys, []);
  t.is(cluster.counts().EndpointSlice, 1);
  t.deepEqual(apply(cluster, { removed: [{ kind: 'EndpointSlice', key: 'default/s' }] }).keys, []);
  t.is(cluster.counts().EndpointSlice, 0);
});

test('slices() sorts by name, and gives the same list until a slice changes', (t) => {
  const cluster = new Cluster();
  apply(cluster, { upserted: ['c', 'a', 'b'].map((name) => slice({ name })) });
  const before = cluster.slices('default/web');
  t.deepEqual(
    before.map(({ name }) => name),
    ['a', 'b', 'c'],
  );
  apply(cluster, { upserted: [slice({ name: 'b' }), service()] });
  t.is(cluster.slices('default/web'), before);
  apply(cluster, { upserted: [slice({ name: 'b', endpoints: ['10.0.0.2'] })] });
  t.deepEqual(addressesOf(cluster), ['10.0.0.1', '10.0.0.2', '10.0.0.1']);
});

// Conformance: Endpoints, the old kind
// Conformance: label service.kubernetes.io/headless
test('slices() leaves out a slice that says that it is of a headless Service; headlessSlices() has it', (t) => {
  const cluster = new Cluster();
  const headless = slice({ name: 'a', headless: true });
  t.deepEqual(apply(cluster, { upserted: [headless] }).keys, ['default/web']);
  t.deepEqual(cluster.slices('default/web'), []);
  t.deepEqual(cluster.headlessSlices('default/web'), [headless]);
  apply(cluster, { removed: [{ kind: 'EndpointSlice', key: headless.key }] });
  t.deepEqual(cluster.headlessSlices('default/web'), []);
});

test('slices() uses Endpoints only if the Service has no EndpointSlice', (t) => {
  const cluster = new Cluster();
  t.deepEqual(apply(cluster, { upserted: [endpoints()] }).keys, ['default/web']);
  t.deepEqual(addressesOf(cluster), ['10.0.9.9']);
  apply(cluster, { upserted: [slice({ name: 'a', endpoints: [] })] });
  t.deepEqual(addressesOf(cluster), []);
  t.deepEqual(apply(cluster, { upserted: [endpoints('web', '10.0.9.8')] }).keys, []);
  t.deepEqual(apply(cluster, { removed: [{ kind: 'EndpointSlice', key: 'default/a' }] }).keys, [
    'default/web',
  ]);
  t.deepEqual(addressesOf(cluster), ['10.0.9.8']);
  t.deepEqual(apply(cluster, { upserted: [endpoints('web', '10.0.9.7')] }).keys, ['default/web']);
  t.deepEqual(addressesOf(cluster), ['10.0.9.7']);
});

test('apply() reports Nodes as one dependency', (t) => {
  const cluster = new Cluster();
  t.deepEqual(apply(cluster, { upserted: [node({ name: 'b' }), node({ name: 'a' })] }), {
    keys: [],
    nodesChanged: true,
  });
  const nodes = cluster.nodes();
  t.deepEqual(
    nodes.map(({ name }) => name),
    ['a', 'b'],
  );
  t.false(apply(cluster, { upserted: [node({ name: 'a' }), service()] }).nodesChanged);
  t.is(cluster.nodes(), nodes);
  t.true(apply(cluster, { upserted: [node({ name: 'a', deleting: true })] }).nodesChanged);
  t.true(cluster.nodes()[0]?.deleting);
  t.true(apply(cluster, { removed: [{ kind: 'Node', key: 'a' }] }).nodesChanged);
});

test("apply() removes only the source's own objects, and manifests have precedence", (t) => {
  const cluster = new Cluster();
  const removed = [{ kind: 'Service', key: 'default/web' }] as const;
  apply(cluster, { upserted: [service({ ports: [1] })] }, 'api');
  t.deepEqual(apply(cluster, { removed }, 'manifests').keys, []);
  t.deepEqual(apply(cluster, { upserted: [service({ ports: [2] })] }, 'manifests').keys, ['default/web']);
  t.deepEqual(apply(cluster, { upserted: [service({ ports: [3] })] }, 'api').keys, ['default/web']);
  t.is(cluster.service('default/web')?.ports[0]?.port, 2);
  t.deepEqual(apply(cluster, { removed }, 'manifests').keys, ['default/web']);
  t.is(cluster.service('default/web')?.ports[0]?.port, 3);
  t.deepEqual(apply(cluster, { removed }, 'api').keys, ['default/web']);
  t.is(cluster.service('default/web'), undefined);
});

// A few names, so that they meet often.
const name = fc.constantFrom('a', 'b');
const address = fc.constantFrom('10.0.0.1', '10.0.0.2');
const object: fc.Arbitrary<KubernetesObject> = fc.oneof(
  fc.tuple(name, fc.constantFrom(80, 81)).map(([each, port]) => service({ name: each, ports: [port] })),
  fc
    .tuple(name, fc.constantFrom('a', 'b', ''), address)
    .map(([each, serviceName, member]) => slice({ name: each, serviceName, endpoints: [member] })),
  fc.tuple(name, fc.constantFrom('10.0.9.1', '10.0.9.2')).map(([each, member]) => endpoints(each, member)),
  fc.tuple(name, fc.boolean()).map(([each, deleting]) => node({ name: each, deleting })),
);
const step = fc.record({
  source: fc.constantFrom<ObjectSource>('manifests', 'api'),
  upserted: fc.array(object, { maxLength: 3 }),
  removed: fc.array(object, { maxLength: 3 }),
});

const isOurs = ({ ports }: Service) => ports[0]?.port === 80;
const keys = ['default/a', 'default/b'];
const seen = (cluster: Cluster, key: string) => ({
  service: cluster.service(key),
  isOfFolder: cluster.isOfFolder(key),
  shadowed: cluster.shadowed(key),
  slices: cluster.slices(key),
});
const all = (cluster: Cluster) => ({
  byKey: keys.map((key) => seen(cluster, key)),
  services: [...cluster.services()].map(({ key }) => key).sort(),
  nodes: cluster.nodes(),
  counts: cluster.counts(),
});

test('The store does not depend on the order of changes', (t) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const cluster = new Cluster(isOurs);
      const held = {
        files: new Map<string, KubernetesObject>(),
        manifests: new Map<string, KubernetesObject>(),
        api: new Map<string, KubernetesObject>(),
      };
      for (const { source, upserted, removed } of steps) {
        cluster.apply({ upserted, removed }, source);
        for (const { kind, key } of removed) held[source].delete(`${kind} ${key}`);
        for (const each of upserted) held[source].set(`${each.kind} ${each.key}`, each);
      }
      const fresh = new Cluster(isOurs);
      fresh.apply({ upserted: [...held.api.values()], removed: [] }, 'api');
      fresh.apply({ upserted: [...held.manifests.values()], removed: [] }, 'manifests');
      t.deepEqual(all(cluster), all(fresh));
    }),
    { numRuns: 300 },
  );
});

test('apply() reports a key whenever something that it depends on differs, and only then', (t) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const cluster = new Cluster(isOurs);
      for (const { source, upserted, removed } of steps) {
        const before = new Map(keys.map((key) => [key, JSON.stringify(seen(cluster, key))]));
        let nodes = JSON.stringify(cluster.nodes());
        // One object at a time: what comes and goes within one change may be marked.
        for (const change of [
          ...removed.map((each) => ({ upserted: [], removed: [each] })),
          ...upserted.map((each) => ({ upserted: [each], removed: [] })),
        ]) {
          const differences = cluster.apply(change, source);
          const dirty = keysOf(differences);
          for (const key of keys) {
            const now = JSON.stringify(seen(cluster, key));
            t.is(dirty.has(key), now !== before.get(key));
            before.set(key, now);
          }
          t.is(differences.dependencies.has('nodes'), JSON.stringify(cluster.nodes()) !== nodes);
          nodes = JSON.stringify(cluster.nodes());
        }
      }
    }),
    { numRuns: 300 },
  );
});

test('A route is found by each of its parents, and its change names them, also those that it leaves', (t) => {
  const cluster = new Cluster();
  const route = (...parents: readonly object[]) => parsed(routeJson('api', parents as never));
  const change = (object: KubernetesObject) => [
    ...cluster.apply({ upserted: [object], removed: [] }, 'api').dependencies,
  ];
  const [edge, set] = [{ name: 'edge' }, { kind: 'ListenerSet', namespace: 'shop', name: 'more' }];
  t.deepEqual(change(route(edge, { ...edge, sectionName: 'http' }, set)), [
    'routes gateway default/edge',
    'routes listenerset shop/more',
  ]);
  t.is(cluster.routesOf('gateway default/edge')[0]?.name, 'api');
  t.is(cluster.routesOf('listenerset shop/more').length, 1);
  t.deepEqual(change(route(set)).toSorted(), ['routes gateway default/edge', 'routes listenerset shop/more']);
  t.deepEqual(cluster.routesOf('gateway default/edge'), []);
  cluster.apply({ upserted: [], removed: [{ kind: 'HTTPRoute', key: 'default/api' }] }, 'api');
  t.deepEqual(cluster.routesOf('listenerset shop/more'), []);
});

test('Gateways and classes are owners; Ingresses are found by their class', (t) => {
  const cluster = new Cluster();
  const objects = [gateway(), gatewayClass(), ingressClass(), ingress()];
  const { owners, dependencies } = cluster.apply({ upserted: objects, removed: [] }, 'api');
  t.deepEqual([...owners], ['gateway:default/edge', 'gatewayclass:-/edge', 'ingress:-/edge']);
  t.deepEqual(
    [...dependencies],
    ['gateway default/edge', 'gatewayclass edge', 'ingressclass edge', 'ingresses edge'],
  );
  t.is(cluster.ingressesOf('edge')[0]?.name, 'web');
  t.deepEqual(cluster.ownerKeys(), [...owners]);
});
