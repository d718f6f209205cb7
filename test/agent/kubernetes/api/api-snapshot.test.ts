import { appendFile, mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { HeadgateError } from '../../../../agent/base/errors.ts';
import { isMapping } from '../../../../agent/base/validate.ts';
import { RecordLog } from '../../../../agent/host/record-log.ts';
import { ApiSnapshot } from '../../../../agent/kubernetes/api/api-snapshot.ts';
import type { KubernetesObject } from '../../../../agent/kubernetes/objects.ts';
import { parseObject } from '../../../../agent/kubernetes/parse-object.ts';
import {
  gateway,
  gatewayClassJson,
  gatewayJson,
  ingress,
  ingressJson,
  parsed,
  routeJson,
} from '../../../support/values/gateways.ts';

function slice(name: string, ...addresses: string[]): KubernetesObject {
  const [object] = parseObject(
    {
      kind: 'EndpointSlice',
      apiVersion: 'discovery.k8s.io/v1',
      metadata: { name, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080 }],
      endpoints: addresses.map((address) => ({ addresses: [address] })),
    },
    '',
  ).objects;
  if (object === undefined) throw new Error('No object');
  return object;
}

const service = parseObject(
  {
    kind: 'Service',
    apiVersion: 'v1',
    metadata: { name: 'web', annotations: { note: 'é' } },
    spec: { ports: [{ port: 80 }] },
  },
  '',
).objects[0] as KubernetesObject;

async function pathOf(t: ExecutionContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-snapshot-'));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  return join(directory, 'api', 'objects');
}

/** With what counts now, to be changed by the test. */
function snapshotOf(path: string, scope = 'all') {
  const objects = new Map<string, KubernetesObject>();
  const failures: HeadgateError[] = [];
  const snapshot = new ApiSnapshot({
    path,
    scope,
    objects: () => objects.values(),
    onFailure: (error) => failures.push(error),
    times: { delayMs: 60_000 },
  });
  const put = (...news: KubernetesObject[]) => {
    for (const object of news) objects.set(object.key, object);
    snapshot.note(news, []);
  };
  const remove = (object: KubernetesObject) => {
    objects.delete(object.key);
    snapshot.note([], [{ kind: object.kind, key: object.key }]);
  };
  return { snapshot, failures, put, remove };
}

const loaded = async (path: string, scope?: string) => snapshotOf(path, scope).snapshot.load();

// Conformance: no API server at the start
test('ApiSnapshot loads the written objects with all fields', async (t) => {
  const path = await pathOf(t);
  const { snapshot, put, remove } = snapshotOf(path);
  t.is(await snapshot.load(), undefined);
  put(service, slice('a', '10.0.0.1'), slice('b'));
  snapshot.start();
  await snapshot.flush();
  t.deepEqual(await loaded(path), [service, slice('a', '10.0.0.1'), slice('b')]);
  const { size } = await stat(path);
  put(slice('a', '10.0.0.2'), slice('c'));
  remove(slice('b'));
  await snapshot.flush();
  t.deepEqual(await loaded(path), [service, slice('a', '10.0.0.2'), slice('c')]);
  // Appended, so that a change costs no more than itself.
  t.true((await readFile(path)).subarray(0, size).includes('10.0.0.1'));
  t.is((await stat(path)).mode & 0o777, 0o600);
});

test('ApiSnapshot loads pools and claims unchanged, with IPv6 ranges', async (t) => {
  const path = await pathOf(t);
  const { snapshot, put } = snapshotOf(path);
  const apiVersion = 'headgate.io/v1alpha1';
  const { objects } = parseObject(
    {
      kind: 'List',
      apiVersion: 'v1',
      items: [
        {
          apiVersion,
          kind: 'AddressPool',
          metadata: { name: 'a', uid: 'u' },
          spec: { blocks: ['192.0.2.0/24', '2001:db8::/64'] },
        },
        {
          apiVersion,
          kind: 'AddressClaim',
          metadata: { name: '192-0-2-1', uid: 'v', resourceVersion: '7' },
          spec: { address: '192.0.2.1', service: 'default/web', ports: [{ protocol: 'TCP', port: 80 }] },
        },
      ],
    },
    '',
  );
  t.is(objects.length, 2);
  put(...objects);
  snapshot.start();
  await snapshot.flush();
  t.deepEqual(await loaded(path), objects);
});

test('ApiSnapshot writes nothing before start()', async (t) => {
  const path = await pathOf(t);
  const { snapshot, put } = snapshotOf(path);
  put(service);
  await snapshot.flush();
  t.is(await loaded(path), undefined);
});

test('ApiSnapshot ignores damaged and incomplete lines', async (t) => {
  const path = await pathOf(t);
  const { snapshot, put } = snapshotOf(path);
  put(slice('a', '10.0.0.1'), slice('b', '10.0.0.2'), slice('c', '10.0.0.3'));
  snapshot.start();
  await snapshot.flush();
  await writeFile(path, (await readFile(path, 'utf8')).replace('10.0.0.2', '10.0.0.9'));
  await appendFile(path, '00000000 {"kind":"Endpoin');
  const reader = snapshotOf(path);
  t.deepEqual(await reader.snapshot.load(), [slice('a', '10.0.0.1'), slice('c', '10.0.0.3')]);
  t.regex(reader.failures[0]?.message ?? '', /^1 lines? of ".*" are damaged/);
});

test('ApiSnapshot does not use a file of another scope or format, or an empty one', async (t) => {
  const path = await pathOf(t);
  const { snapshot, put } = snapshotOf(path);
  put(service);
  snapshot.start();
  await snapshot.flush();
  t.is(await loaded(path, 'other'), undefined);
  await new RecordLog(path).write([['header', '{"format":0,"scope":"all"}']]);
  t.is(await loaded(path), undefined);
  await writeFile(path, '');
  t.is(await loaded(path), undefined);
});

test('FORMAT is raised with each change of the fields of objects', (t) => {
  const fields = SAMPLES.map((sample) => fieldsOf(parseObject(sample, '').objects[0]).join(' '));
  t.deepEqual(fields, FIELDS, 'Raise FORMAT in api-snapshot.ts, and correct FIELDS');
});

test('ApiSnapshot loads Gateways, routes and Ingresses unchanged', async (t) => {
  const path = await pathOf(t);
  const { snapshot, put } = snapshotOf(path);
  snapshot.start();
  const objects = [gateway('edge'), parsed(routeJson('api', [{ name: 'edge' }])), ingress('web')];
  put(...objects);
  await snapshot.close();
  t.deepEqual(await loaded(path), objects);
});

test('ApiSnapshot rewrites a file that has grown, is gone, or was changed', async (t) => {
  const path = await pathOf(t);
  const { snapshot, failures, put } = snapshotOf(path);
  snapshot.start();
  const many = Array.from({ length: 200 }, (_, index) => `10.0.0.${index}`);
  let longest = 0;
  for (let round = 0; round < 120; round++) {
    put(slice('a', ...many));
    await snapshot.flush();
    longest = Math.max(longest, (await stat(path)).size);
  }
  t.true(longest > 1_000_000 && longest < 1_300_000, String(longest));
  t.deepEqual(await loaded(path), [slice('a', ...many)]);
  const damages = [
    () => rm(path),
    () => rm(dirname(path), { recursive: true }),
    () => truncate(path),
    () => truncate(path, 1_000),
    () => writeFile(path, 'nonsense'),
  ];
  for (const [at, carryOut] of damages.entries()) {
    await carryOut();
    put(slice(`b${at}`));
    await snapshot.flush();
    t.is((await loaded(path))?.length, 2 + at, String(carryOut));
  }
  t.deepEqual(failures, []);
  // Even without a change.
  await rm(path);
  await snapshot.flush();
  t.is((await loaded(path))?.length, 1 + damages.length);
});

test('ApiSnapshot reports a folder that it cannot write to', async (t) => {
  const { snapshot, failures, put } = snapshotOf('/dev/null/folder/objects');
  put(service);
  snapshot.start();
  await snapshot.flush();
  t.is(failures[0]?.code, 'FILE_WRITE');
});

/** The paths of all fields. */
function fieldsOf(value: unknown, path = ''): readonly string[] {
  if (Array.isArray(value)) return fieldsOf(value[0], `${path}[]`);
  if (!isMapping(value)) return [path];
  const fields = Object.entries(value);
  if (fields.length === 0) return [path];
  return fields.flatMap(([name, field]) => fieldsOf(field, path === '' ? name : `${path}.${name}`));
}

/** One of each kind, with every list filled. */
const SAMPLES = [
  {
    kind: 'Service',
    apiVersion: 'v1',
    metadata: { name: 'a', creationTimestamp: '2026-01-31T12:00:00Z' },
    spec: { ports: [{ port: 1 }] },
  },
  {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    metadata: { name: 'a' },
    addressType: 'IPv4',
    ports: [{ port: 1 }],
    endpoints: [{ addresses: ['10.0.0.1'] }],
  },
  { kind: 'Node', apiVersion: 'v1', metadata: { name: 'a' } },
  {
    kind: 'AddressPool',
    apiVersion: 'headgate.io/v1alpha1',
    metadata: { name: 'a' },
    spec: {
      blocks: ['192.0.2.1'],
      serviceAllocation: {
        namespaces: ['a'],
        serviceSelector: { matchExpressions: [{ key: 'a', operator: 'Exists' }] },
      },
    },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  },
  {
    kind: 'AddressClaim',
    apiVersion: 'headgate.io/v1alpha1',
    metadata: { name: 'a' },
    spec: { address: '192.0.2.1', service: 'a/b', ports: [{ protocol: 'TCP', port: 1 }] },
  },
  gatewayClassJson(),
  gatewayJson('edge', {
    addresses: [{}],
    listeners: [{ name: 'https', port: 443, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'a' }] } }],
  }),
  routeJson('api', [{ name: 'edge' }]),
  ingressJson('web', { tls: [{ hosts: ['example.org'], secretName: 'a' }] }),
];

/** Fields of the samples, in FORMAT 2. */
const FIELDS: readonly string[] = [
  'kind key namespace name uid created labels annotations type loadBalancerClass loadBalancerIP ' +
    'loadBalancerSourceRanges[] externalIPs[] clusterIPs[] headless externalTrafficPolicy ' +
    'healthCheckNodePort affinitySeconds allocateLoadBalancerNodePorts publishNotReadyAddresses ' +
    'ipFamilies[] ipFamilyPolicy ports[].name ports[].protocol ports[].port ports[].nodePort ' +
    'ports[].appProtocol deleting statusIPs[] hasForeignStatus',
  'kind key namespace name uid serviceName headless family endpoints[].address endpoints[].ready ' +
    'endpoints[].serving endpoints[].terminating endpoints[].nodeName endpoints[].forZones ' +
    'endpoints[].forNodes endpoints[].target ports[].name ports[].protocol ports[].port triggerTime',
  'kind key name uid labels internalIPs[] noExecute deleting',
  'kind key name source uid generation ready.status ready.reason ready.lastTransitionTime ' +
    'blocks[].family blocks[].first blocks[].last priority auto draining ' +
    'shareAcrossNamespaces allowed public namespaces[] selector.matchLabels selector.matchExpressions[].key ' +
    'selector.matchExpressions[].operator selector.matchExpressions[].values[] announce bgp',
  'kind key uid resourceVersion claim.kind claim.name claim.address claim.family claim.pool ' +
    'claim.service claim.serviceUID claim.sharingKey claim.ports[].protocol claim.ports[].port ' +
    'claim.granted claim.since claim.heldUntil claim.reserved claim.namespace claim.publicAddress',
  'kind key name uid generation controllerName hasParameters',
  'kind key namespace name uid created generation gatewayClassName listeners[].name ' +
    'listeners[].hostname listeners[].port listeners[].protocol listeners[].tls.mode ' +
    'listeners[].tls.certificates[].group listeners[].tls.certificates[].kind ' +
    'listeners[].tls.certificates[].namespace listeners[].tls.certificates[].name ' +
    'listeners[].tls.options listeners[].namespaces.from ' +
    'listeners[].namespaces.selector.matchLabels ' +
    'listeners[].namespaces.selector.matchExpressions[] listeners[].kinds[] addresses[].type ' +
    'addresses[].value allowedListeners.from allowedListeners.selector.matchLabels ' +
    'allowedListeners.selector.matchExpressions[] backendCertificate clientValidation.default ' +
    'clientValidation.perPort[] hasParameters labels annotations statusIPs[] deleting',
  'kind key namespace name uid created generation annotations parents[].group parents[].kind ' +
    'parents[].namespace parents[].name parents[].sectionName parents[].port hostnames[] ' +
    'rules[].name rules[].filters[] rules[].timeouts.request rules[].timeouts.backendRequest ' +
    'rules[].retry rules[].sessionPersistence rules[].matches[].path.type ' +
    'rules[].matches[].path.value rules[].matches[].headers[] rules[].matches[].query[] ' +
    'rules[].matches[].method rules[].backends[].group rules[].backends[].kind ' +
    'rules[].backends[].namespace rules[].backends[].name rules[].backends[].port ' +
    'rules[].backends[].weight rules[].backends[].filters[]',
  'kind key namespace name uid created generation annotations className otherClassName ' +
    'defaultBackend rules[].host rules[].paths[].path rules[].paths[].backend.kind ' +
    'rules[].paths[].backend.name rules[].paths[].backend.port rules[].paths[].backend.portName ' +
    'rules[].paths[].type tls[].hosts[] tls[].secretName statusIPs[] deleting',
];
