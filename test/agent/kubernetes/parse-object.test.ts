import test from 'ava';
import fc from 'fast-check';
import type { EndpointSlice } from '../../../agent/kubernetes/objects.ts';
import { parseObject } from '../../../agent/kubernetes/parse-object.ts';
import { processorTime } from '../../support/measure/processor-time.ts';
import {
  endpointsJson,
  type Json,
  listJson,
  nodeJson,
  parsedObject,
  serviceJson,
  sliceJson,
} from '../../support/values/kubernetes-json.ts';

test('parseObject() fills in the defaults of a Service', (t) => {
  t.deepEqual(parsedObject(serviceJson()), {
    kind: 'Service',
    key: 'default/web',
    namespace: 'default',
    name: 'web',
    uid: '',
    created: Number.POSITIVE_INFINITY,
    labels: {},
    annotations: {},
    type: 'LoadBalancer',
    loadBalancerClass: undefined,
    loadBalancerIP: undefined,
    loadBalancerSourceRanges: [],
    externalIPs: [],
    clusterIPs: [],
    headless: false,
    externalTrafficPolicy: 'Cluster',
    healthCheckNodePort: 0,
    affinitySeconds: 0,
    allocateLoadBalancerNodePorts: true,
    publishNotReadyAddresses: false,
    ipFamilies: [],
    ipFamilyPolicy: undefined,
    ports: [{ name: '', protocol: 'TCP', port: 80, nodePort: 0, appProtocol: '' }],
    deleting: false,
    statusIPs: [],
    hasForeignStatus: false,
  });
});

test('parseObject() reads every field of a Service as kubectl prints it', (t) => {
  const manifest = {
    ...serviceJson('web', {
      metadata: {
        namespace: 'shop',
        uid: '6f1c2f0e-4b5a-4a0e-9d55-0a1b2c3d4e5f',
        resourceVersion: '12',
        creationTimestamp: '2026-01-31T12:00:00Z',
        labels: { app: 'web', 'app.kubernetes.io/part-of': 'shop' },
        annotations: { 'headgate.io/weight': '3', 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
      },
      spec: {
        loadBalancerClass: 'headgate.io/agent',
        loadBalancerIP: '192.0.2.10',
        loadBalancerSourceRanges: [' 10.0.0.0/8 '],
        externalIPs: ['198.51.100.1'],
        clusterIP: '10.96.0.7',
        clusterIPs: ['10.96.0.7', 'FD00::0007'],
        externalTrafficPolicy: 'Local',
        healthCheckNodePort: 31000,
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds: 600 } },
        allocateLoadBalancerNodePorts: false,
        publishNotReadyAddresses: true,
        ipFamilies: ['IPv4', 'IPv6'],
        ipFamilyPolicy: 'RequireDualStack',
        ports: [
          { name: 'http', port: 80, targetPort: 'http', nodePort: 30080, appProtocol: 'kubernetes.io/h2c' },
          { name: 'dns', port: 80, protocol: 'UDP', targetPort: 53 },
        ],
      },
    }),
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.10' }, { hostname: 'web.example.org' }] } },
  };
  t.deepEqual(parsedObject(manifest), {
    kind: 'Service',
    key: 'shop/web',
    namespace: 'shop',
    name: 'web',
    uid: '6f1c2f0e-4b5a-4a0e-9d55-0a1b2c3d4e5f',
    created: Date.UTC(2026, 0, 31, 12),
    labels: { app: 'web', 'app.kubernetes.io/part-of': 'shop' },
    annotations: { 'headgate.io/weight': '3' },
    type: 'LoadBalancer',
    loadBalancerClass: 'headgate.io/agent',
    loadBalancerIP: '192.0.2.10',
    loadBalancerSourceRanges: [' 10.0.0.0/8 '],
    externalIPs: ['198.51.100.1'],
    clusterIPs: ['10.96.0.7', 'fd00::7'],
    headless: false,
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: 31000,
    affinitySeconds: 600,
    allocateLoadBalancerNodePorts: false,
    publishNotReadyAddresses: true,
    ipFamilies: ['v4', 'v6'],
    ipFamilyPolicy: 'RequireDualStack',
    ports: [
      { name: 'http', protocol: 'TCP', port: 80, nodePort: 30080, appProtocol: 'kubernetes.io/h2c' },
      { name: 'dns', protocol: 'UDP', port: 80, nodePort: 0, appProtocol: '' },
    ],
    deleting: false,
    statusIPs: ['192.0.2.10'],
    hasForeignStatus: true,
  });
});

// Source: the API server's defaults (pkg/apis/core/v1/defaults.go), and Go's JSON, which reads null as an empty text.
test('parseObject() reads empty texts and null as the API server does', (t) => {
  const empty = serviceJson('web', {
    metadata: { name: 'web', namespace: '', labels: { a: null, b: '' }, annotations: { c: null } },
    spec: {
      type: '',
      sessionAffinity: '',
      externalTrafficPolicy: '',
      clusterIP: '',
      loadBalancerIP: '',
      ports: [{ port: 80, protocol: '', name: '', appProtocol: '' }],
    },
  });
  const absent = serviceJson('web', {
    metadata: { name: 'web', labels: { a: '', b: '' }, annotations: { c: '' } },
    spec: { type: 'ClusterIP' },
  });
  t.deepEqual(parsedObject(empty), parsedObject(absent));
  t.like(parsedObject(empty), { type: 'ClusterIP', ports: [{ protocol: 'TCP' }], labels: { a: '' } });

  const ports = [{ port: 80, protocol: '' }];
  const subsets = [{ addresses: [{ ip: '10.0.0.1' }], ports }];
  t.like(parsedObject({ ...endpointsJson('web', subsets), metadata: { name: 'web', namespace: '' } }), {
    key: 'default/web',
    slices: [{ ports: [{ name: '', protocol: 'TCP', port: 80 }] }],
  });
  for (const label of ['', null, 'Not_A.Service'])
    t.like(
      parsedObject(
        sliceJson('web', [], { metadata: { name: 'x', labels: { 'kubernetes.io/service-name': label } } }),
      ),
      {
        serviceName: label ?? '',
      },
    );
  // No default: these fields are pointers in Go.
  for (const spec of [{ ipFamilyPolicy: '' }, { loadBalancerClass: '' }])
    t.is(
      parseObject(serviceJson('web', { spec: { ports: [{ port: 80 }], ...spec } }), '').problems.length,
      1,
    );
  t.is(parseObject(sliceJson('web', [], { ports }), '').problems.length, 1);
});

// Conformance: spec.sessionAffinity, sessionAffinityConfig
test('parseObject() gives session affinity three hours by default', (t) => {
  t.like(parsedObject(serviceJson('web', { spec: { sessionAffinity: 'ClientIP' } })), {
    affinitySeconds: 10800,
  });
});

test('parseObject() accepts a headless Service without ports, without a cluster IP', (t) => {
  t.like(
    parsedObject(serviceJson('web', { spec: { clusterIP: 'None', clusterIPs: ['None'], ports: null } })),
    {
      headless: true,
      clusterIPs: [],
      ports: [],
    },
  );
});

const conditions = test.macro((t, given: unknown, expected: Json) => {
  const manifest = sliceJson('a', [], {
    endpoints: [{ addresses: ['10.0.0.1'], conditions: given }],
  });
  const object = parsedObject(manifest);
  t.like(object.kind === 'EndpointSlice' ? object.endpoints[0] : undefined, expected);
});
// Conformance: endpoints[].conditions
test('An endpoint without conditions is ready', conditions, undefined, {
  ready: true,
  serving: true,
  terminating: false,
});
// Conformance: endpoints[].conditions
test(
  'An endpoint whose conditions are null is ready',
  conditions,
  { ready: null, serving: null },
  {
    ready: true,
    serving: true,
    terminating: false,
  },
);
// Conformance: endpoints[].conditions
test(
  'An endpoint that is not ready does not serve unless it says so',
  conditions,
  { ready: false },
  {
    ready: false,
    serving: false,
  },
);
// Conformance: endpoints[].conditions
test(
  'An endpoint that terminates may still serve',
  conditions,
  { ready: false, serving: true, terminating: true },
  { ready: false, serving: true, terminating: true },
);

// Conformance: endpoints[].addresses
test('parseObject() takes the first address of an endpoint', (t) => {
  const slice = sliceJson('web-abc', [], { endpoints: [{ addresses: ['10.0.0.1', '10.0.0.2'] }] });
  t.like(parsedObject(slice), { endpoints: [{ address: '10.0.0.1' }] });
  const { endpoints } = parsedObject(slice) as EndpointSlice;
  t.is(endpoints.length, 1);
});

// Conformance: the largest slice
test('parseObject() accepts a slice with 1,000 endpoints and 100 ports', (t) => {
  const addresses = Array.from({ length: 1_000 }, (_, at) => `10.0.${at >> 8}.${at & 255}`);
  const ports = Array.from({ length: 100 }, (_, at) => ({ name: `p-${at}`, port: 8_000 + at }));
  const { endpoints, ports: read } = parsedObject(
    sliceJson('web-abc', addresses, { ports }),
  ) as EndpointSlice;
  t.is(endpoints.length, 1_000);
  t.is(read.length, 100);
  t.is(endpoints[999]?.address, '10.0.3.231');
  t.is(read[99]?.port, 8_099);
});

test('parseObject() reads that a slice says that it is of a headless Service', (t) => {
  const labels = { 'kubernetes.io/service-name': 'web', 'service.kubernetes.io/headless': '' };
  t.like(parsedObject(sliceJson('web', [], { metadata: { name: 'x', labels } })), {
    serviceName: 'web',
    headless: true,
  });
});

test('parseObject() prunes an EndpointSlice', (t) => {
  const manifest = sliceJson('web-abc', [], {
    metadata: {
      name: 'web-abc',
      namespace: 'shop',
      labels: { 'kubernetes.io/service-name': 'web', 'endpointslice.kubernetes.io/managed-by': 'x' },
      annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': '2026-01-31T12:00:00.123456789Z' },
    },
    addressType: 'IPv6',
    ports: [
      { name: 'http', port: 8080, protocol: 'TCP' },
      { name: null, port: null },
    ],
    endpoints: [
      {
        addresses: ['2001:DB8:0::1'],
        nodeName: 'node-1',
        zone: 'zone-a',
        hints: { forZones: [{ name: 'zone-a' }], forNodes: [{ name: 'node-1' }] },
        targetRef: { kind: 'Pod', name: 'web-1', namespace: 'shop', uid: '1' },
      },
      { addresses: ['::1'], targetRef: { kind: 'Pod', name: 'not a name' } },
    ],
  });
  const nothing = { nodeName: '', forZones: undefined, forNodes: undefined, target: '' };
  const ready = { ready: true, serving: true, terminating: false };
  t.deepEqual(parsedObject(manifest), {
    kind: 'EndpointSlice',
    key: 'shop/web-abc',
    namespace: 'shop',
    name: 'web-abc',
    uid: '',
    serviceName: 'web',
    headless: false,
    family: 'v6',
    endpoints: [
      {
        address: '2001:db8::1',
        ...ready,
        nodeName: 'node-1',
        forZones: ['zone-a'],
        forNodes: ['node-1'],
        target: 'Pod/web-1',
      },
      { address: '::1', ...ready, ...nothing },
    ],
    ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    triggerTime: Date.UTC(2026, 0, 31, 12, 0, 0, 123),
  });
});

test('parseObject() makes slices of Endpoints, one per subset and family', (t) => {
  const object = parsedObject(
    endpointsJson('web', [
      {
        addresses: [
          { ip: '10.0.0.1', nodeName: 'node-1', targetRef: { kind: 'Pod', name: 'web-1' } },
          { ip: 'fd00::1' },
        ],
        notReadyAddresses: [{ ip: '10.0.0.2' }],
        ports: [{ name: 'http', port: 8080 }],
      },
      { addresses: [{ ip: '10.0.0.3' }], ports: [{ name: 'http', port: 8081 }] },
      { addresses: [], ports: [{ name: 'http', port: 8082 }] },
    ]),
  );
  if (object.kind !== 'Endpoints') throw new Error(object.kind);
  t.deepEqual(
    object.slices.map(({ name, serviceName, family, endpoints, ports }) => ({
      name,
      serviceName,
      family,
      port: ports[0]?.port,
      endpoints: endpoints.map(({ address, ready, serving }) => `${address} ${ready} ${serving}`),
    })),
    [
      {
        name: 'web',
        serviceName: 'web',
        family: 'v4',
        port: 8080,
        endpoints: ['10.0.0.1 true true', '10.0.0.2 false false'],
      },
      { name: 'web', serviceName: 'web', family: 'v6', port: 8080, endpoints: ['fd00::1 true true'] },
      { name: 'web', serviceName: 'web', family: 'v4', port: 8081, endpoints: ['10.0.0.3 true true'] },
    ],
  );
  t.like(object.slices[0]?.endpoints[0], { nodeName: 'node-1', target: 'Pod/web-1', terminating: false });
});

// Conformance: condition Ready, taints
test("parseObject() ignores taints of an unresponsive Node, but not an operator's", (t) => {
  const isTainted = (key: string): unknown =>
    (
      parsedObject(nodeJson('n', { spec: { taints: [{ key, effect: 'NoExecute' }] } })) as {
        noExecute: boolean;
      }
    ).noExecute;
  t.false(isTainted('node.kubernetes.io/not-ready'));
  t.false(isTainted('node.kubernetes.io/unreachable'));
  t.true(isTainted('example.org/maintenance'));
});

test('parseObject() prunes a Node', (t) => {
  const manifest = nodeJson('node-1', {
    metadata: { labels: { zone: 'a' }, deletionTimestamp: '2026-01-31T12:00:00Z' },
    spec: { taints: [{ key: 'x', effect: 'NoExecute' }] },
    status: {
      addresses: [
        { type: 'Hostname', address: 'node-1' },
        { type: 'InternalIP', address: '192.0.2.1' },
        { type: 'ExternalIP', address: 'not an address' },
        { type: 'InternalIP', address: '2001:db8::0:1' },
      ],
    },
  });
  t.deepEqual(parsedObject(manifest), {
    kind: 'Node',
    key: 'node-1',
    name: 'node-1',
    uid: '',
    labels: { zone: 'a' },
    internalIPs: ['192.0.2.1', '2001:db8::1'],
    noExecute: true,
    deleting: true,
  });
  t.like(parsedObject({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-2' } }), {
    internalIPs: [],
    noExecute: false,
    deleting: false,
  });
});

// Conformance: items of a list
test('parseObject() reads lists, whose items take their kind from the list', (t) => {
  const { kind: _, apiVersion: __, ...item } = serviceJson();
  const { kind: ___, apiVersion: ____, ...slice } = sliceJson();
  const keys = (json: unknown) => parseObject(json, '').objects.map(({ kind, key }) => `${kind} ${key}`);
  t.deepEqual(keys({ apiVersion: 'v1', kind: 'ServiceList', items: [item] }), ['Service default/web']);
  t.deepEqual(keys({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSliceList', items: [slice] }), [
    'EndpointSlice default/web-abc',
  ]);
  t.deepEqual(keys(listJson([serviceJson(), nodeJson(), { apiVersion: 'apps/v1', kind: 'Deployment' }])), [
    'Service default/web',
    'Node node-1',
  ]);
  t.deepEqual(keys({ apiVersion: 'v1', kind: 'NodeList', items: null }), []);
});

test('parseObject() ignores empty documents, other kinds and other groups', (t) => {
  for (const json of [
    null,
    undefined,
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: {} },
    { apiVersion: 'serving.knative.dev/v1', kind: 'Service', metadata: { name: 'web' } },
    { apiVersion: 'serving.knative.dev/v1', kind: 'ServiceList', items: [{ metadata: { name: 'web' } }] },
    { apiVersion: 'apps/v1', kind: 'DeploymentList', items: [{}] },
  ]) {
    t.deepEqual(parseObject(json, 'x.yaml'), { objects: [], problems: [] });
  }
});

test('parseObject() skips only the invalid item of a list', (t) => {
  const { objects, problems } = parseObject(
    listJson([serviceJson('a'), 5, serviceJson('B'), serviceJson('c')]),
    '/m/all.yaml',
  );
  t.deepEqual(
    objects.map(({ key }) => key),
    ['default/a', 'default/c'],
  );
  t.deepEqual(
    problems.map(({ object, message }) => [object, message]),
    [
      ['/m/all.yaml', '/m/all.yaml: items[1]: a number is not a Kubernetes object'],
      [
        '/m/all.yaml',
        '/m/all.yaml: items[2]: Service: metadata.name: "B" is not a DNS label (a-z, 0-9 and "-", at most 63 characters)',
      ],
    ],
  );
});

const refused = test.macro<[manifest: unknown, message: string | RegExp, where?: string]>({
  exec(t, manifest, message, where = '') {
    const { objects, problems } = parseObject(manifest, where);
    t.deepEqual(objects, []);
    t.is(problems.length, 1);
    if (typeof message === 'string') t.is(problems[0]?.message, message);
    else t.regex(problems[0]?.message ?? '', message);
    t.is(problems[0]?.reason, 'InvalidObject');
  },
  title: (title) => `parseObject() refuses ${title}`,
});

const service = (spec: Json, metadata: Json = {}) => serviceJson('web', { spec, metadata });
const endpoint = (given: Json, more: Json = {}) =>
  sliceJson('a', [], { endpoints: [{ addresses: ['10.0.0.1'], ...given }], ...more });

test('parseObject() accepts any value of fields without a rule in the API server', (t) => {
  const asked = `${'a'.repeat(60)}.elb.example.com`;
  const [web] = parseObject(service({ loadBalancerIP: asked }), '').objects;
  t.like(web, { kind: 'Service', loadBalancerIP: asked });
  const [slice] = parseObject(endpoint({ zone: 'eu west/1' }), '').objects;
  t.like(slice, { kind: 'EndpointSlice' });
});

test(
  'a port out of range, and names object, field and value',
  refused,
  service({ ports: [{ port: 70000 }] }),
  'Service default/web: spec.ports[0].port: 70000 is not a whole number from 1 to 65535',
);
test(
  'the same in a file, which it names first',
  refused,
  service({ ports: [{ port: 0 }] }),
  '/m/web.yaml: Service default/web: spec.ports[0].port: 0 is not a whole number from 1 to 65535',
  '/m/web.yaml',
);
test(
  'a port that is a text',
  refused,
  service({ ports: [{ port: '80' }] }),
  /spec\.ports\[0\]\.port: "80" is not a whole number/,
);
test(
  'a port that is no whole number',
  refused,
  service({ ports: [{ port: 80.5 }] }),
  /: 80\.5 is not a whole number/,
);
test(
  'a missing port',
  refused,
  service({ ports: [{}] }),
  /spec\.ports\[0\]\.port: missing, must be a whole number from 1 to 65535$/,
);
test(
  'an unknown protocol',
  refused,
  service({ ports: [{ port: 80, protocol: 'tcp' }] }),
  /spec\.ports\[0\]\.protocol: "tcp" is not one of TCP, UDP, SCTP$/,
);
test(
  'a port name that is no DNS label',
  refused,
  service({ ports: [{ port: 80, name: 'a b' }] }),
  /spec\.ports\[0\]\.name: "a b" is not a DNS label/,
);
test(
  'a Service without ports',
  refused,
  service({ ports: [] }),
  /spec\.ports: \[\] is not a list of at least one port$/,
);
test(
  'the same port twice',
  refused,
  service({
    ports: [
      { port: 80, name: 'a' },
      { port: 80, name: 'b' },
    ],
  }),
  /spec\.ports\[1\]\.port: 80\/TCP occurs twice$/,
);
test(
  'the same port name twice',
  refused,
  service({
    ports: [
      { port: 80, name: 'a' },
      { port: 81, name: 'a' },
    ],
  }),
  /spec\.ports\[1\]\.name: "a" occurs twice$/,
);
test(
  'several ports of which one has no name',
  refused,
  service({ ports: [{ port: 80, name: 'a' }, { port: 81 }] }),
  /spec\.ports\[1\]\.name: missing, required if there are several ports$/,
);
test(
  'an application protocol with a line break',
  refused,
  service({ ports: [{ port: 80, appProtocol: 'a\nb' }] }),
  /appProtocol: "a\\nb" is not a qualified name/,
);
test(
  'a name in capitals, and names the file instead of the object',
  refused,
  serviceJson('Web'),
  'f.yaml: Service: metadata.name: "Web" is not a DNS label (a-z, 0-9 and "-", at most 63 characters)',
  'f.yaml',
);
test(
  'a name with 64 characters',
  refused,
  serviceJson('x'.repeat(64)),
  /metadata\.name: "x{60}…" is not a DNS label/,
);
test(
  'a missing name',
  refused,
  { ...serviceJson(), metadata: {} },
  /metadata\.name: missing, must be a DNS label/,
);
test(
  'missing metadata',
  refused,
  { ...serviceJson(), metadata: null },
  'Service: metadata: null is not a mapping',
);
test(
  'a namespace with a slash',
  refused,
  service({}, { namespace: 'a/b' }),
  /metadata\.namespace: "a\/b" is not a DNS label/,
);
test('a UID with a blank', refused, service({}, { uid: 'a b' }), /metadata\.uid: "a b" is not a UID/);
test(
  'a time that is none',
  refused,
  service({}, { creationTimestamp: '2026-13-01T00:00:00Z' }),
  /metadata\.creationTimestamp: "2026-13-01T00:00:00Z" is not a time/,
);
test(
  'a label that is a number',
  refused,
  service({}, { labels: { app: 5 } }),
  /metadata\.labels\.app: 5 is not a label value/,
);
test(
  'an annotation that is a truth value',
  refused,
  service({}, { annotations: { 'a/b': true } }),
  /metadata\.annotations\["a\/b"\]: true is not a text/,
);
test(
  'an annotation named __proto__',
  refused,
  service({}, { annotations: JSON.parse('{"__proto__": "x"}') }),
  /metadata\.annotations: "__proto__" is not a qualified name/,
);
test(
  'a kind of ours in a group of another of ours',
  refused,
  { ...sliceJson('a', []), apiVersion: 'v1' },
  /^EndpointSlice default\/a: apiVersion: "v1" is not "discovery\.k8s\.io\/v1"$/,
);
test(
  'a kind of ours in lower case',
  refused,
  { ...serviceJson(), kind: 'service' },
  /^kind: "service" is not "Service"$/,
);

test('parseObject() accepts upper case before the slash of an annotation, as the API server does', (t) => {
  const annotations = { 'Example.ORG/Owner': 'shop' };
  t.like(parsedObject(service({}, { annotations })), { annotations });
});

test(
  'labels that are a list',
  refused,
  service({}, { labels: ['a'] }),
  /metadata\.labels: a list is not a mapping$/,
);
test(
  'an unknown type',
  refused,
  service({ type: 'Loadbalancer' }),
  /spec\.type: "Loadbalancer" is not one of ClusterIP, NodePort, LoadBalancer, ExternalName$/,
);
test(
  'a class with a blank',
  refused,
  service({ loadBalancerClass: 'a b' }),
  /spec\.loadBalancerClass: "a b" is not a qualified name/,
);
test(
  'a source range longer than 64 characters',
  refused,
  service({ loadBalancerSourceRanges: ['10.0.0.0/8', ' '.repeat(65)] }),
  /spec\.loadBalancerSourceRanges\[1\]: " {60}…" is not a text of at most 64 characters$/,
);
test(
  'a cluster IP that is no address',
  refused,
  service({ clusterIP: '10.96.0.300' }),
  /spec\.clusterIP: "10\.96\.0\.300" is not an IP address, "None" or empty$/,
);
test(
  'an affinity of more than a day',
  refused,
  service({ sessionAffinityConfig: { clientIP: { timeoutSeconds: 86401 } } }),
  /timeoutSeconds: 86401 is not a whole number from 1 to 86400$/,
);
test(
  'a truth value that is a text',
  refused,
  service({ publishNotReadyAddresses: 'yes' }),
  /publishNotReadyAddresses: "yes" is not true or false$/,
);
test(
  'an address family in lower case',
  refused,
  service({ ipFamilies: ['ipv4'] }),
  /spec\.ipFamilies\[0\]: "ipv4" is not one of IPv4, IPv6$/,
);
test(
  'a status address that is none',
  refused,
  { ...serviceJson(), status: { loadBalancer: { ingress: [{ ip: 'x' }] } } },
  /status\.loadBalancer\.ingress\[0\]\.ip: "x" is not an IP address$/,
);
test(
  'an endpoint without address',
  refused,
  endpoint({ addresses: [] }),
  'EndpointSlice default/a: endpoints[0].addresses: [] is not a list of at least one address',
);
test(
  'an endpoint address of the other family',
  refused,
  endpoint({ addresses: ['fd00::1'] }),
  /endpoints\[0\]\.addresses\[0\]: "fd00::1" is not an IPv4 address that a member can have$/,
);
test(
  'an endpoint address with a port',
  refused,
  endpoint({ addresses: ['10.0.0.1:80'] }),
  /"10\.0\.0\.1:80" is not an IPv4 address/,
);
test(
  'the unspecified endpoint address',
  refused,
  endpoint({ addresses: ['0.0.0.0'] }),
  /"0\.0\.0\.0" is not an IPv4 address that a member can have$/,
);
test(
  'a link-local endpoint address',
  refused,
  endpoint({ addresses: ['fe80::1'] }, { addressType: 'IPv6' }),
  /"fe80::1" is not an IPv6 address that a member can have$/,
);
test(
  'a missing address type',
  refused,
  sliceJson('a', [], { addressType: undefined }),
  /addressType: missing, must be one of IPv4, IPv6, FQDN$/,
);
test(
  'a node name with a line break',
  refused,
  endpoint({ nodeName: 'a\n' }),
  /endpoints\[0\]\.nodeName: "a\\n" is not a DNS name/,
);
test(
  'a Service name that is none',
  refused,
  { ...sliceJson('a'), metadata: { name: 'a', labels: { 'kubernetes.io/service-name': 'a/b' } } },
  /metadata\.labels\["kubernetes\.io\/service-name"\]: "a\/b" is not a label value/,
);
test(
  'an old version of EndpointSlice',
  refused,
  { ...sliceJson('a'), apiVersion: 'discovery.k8s.io/v1beta1' },
  'EndpointSlice default/a: apiVersion: "discovery.k8s.io/v1beta1" is not "discovery.k8s.io/v1"',
);
test(
  'an address of Endpoints that is none',
  refused,
  endpointsJson('web', [{ addresses: [{ ip: 'x' }] }]),
  /subsets\[0\]\.addresses\[0\]\.ip: "x" is not an IP address that a member can have$/,
);
test(
  'an InternalIP that is none',
  refused,
  nodeJson('n', { status: { addresses: [{ type: 'InternalIP', address: 'x' }] } }),
  'Node n: status.addresses[0].address: "x" is not an IP address',
);
test('a text', refused, 'hello', 'x.yaml: a text is not a Kubernetes object', 'x.yaml');
test('a list without kind', refused, [serviceJson()], 'x.yaml: a list is not a Kubernetes object', 'x.yaml');
test(
  'a mapping without kind',
  refused,
  { name: 'x' },
  'x.yaml: kind: missing, every Kubernetes object has one',
  'x.yaml',
);
test(
  'a mapping without API version',
  refused,
  { kind: 'Service' },
  'x.yaml: apiVersion: missing, every Kubernetes object has one',
  'x.yaml',
);
test(
  'a list inside a list',
  refused,
  listJson([listJson([])]),
  'x.yaml: items[0]: List: a list inside a list is not supported',
  'x.yaml',
);
test(
  'items that are no list',
  refused,
  { apiVersion: 'v1', kind: 'ServiceList', items: {} },
  'x.yaml: ServiceList: items: a mapping is not a list',
  'x.yaml',
);

// Conformance: addressType
test('parseObject() refuses a slice of FQDN addresses', (t) => {
  const { objects, problems } = parseObject(sliceJson('a', ['example.org'], { addressType: 'FQDN' }), '');
  t.deepEqual(objects, []);
  t.deepEqual(problems, [
    {
      object: 'EndpointSlice default/a',
      reason: 'InvalidEndpoint',
      message: 'EndpointSlice default/a: addressType: "FQDN" is not supported, only IPv4 and IPv6 are',
    },
  ]);
});

test('parseObject() reports at most three faults, in one short line', (t) => {
  const ports = Array.from({ length: 1000 }, (_, index) => ({ port: -index, name: 'x'.repeat(1e5) }));
  const [problem] = parseObject(service({ ports }), '').problems;
  t.regex(problem?.message ?? '', /; and \d+ more$/);
  t.true((problem?.message.length ?? 0) < 1000);
});

// A manifest may hold any value of JSON or YAML.
const hostile = fc.oneof(
  fc.anything({ withNullPrototype: true, withBigInt: true, withSparseArray: true }),
  fc.jsonValue(),
  fc.constantFrom<unknown>('x'.repeat(1_000_000), '\n', '__proto__', 'constructor', Number.NaN, 1e308, -0),
  fc.constant(JSON.parse('{"__proto__": {"polluted": true}, "constructor": {"prototype": {}}}')),
  fc.constant(0).map(() => {
    let deep: unknown = 'end';
    for (let level = 0; level < 5000; level++) deep = level % 2 === 0 ? [deep] : { kind: deep };
    return deep;
  }),
);

const valid: readonly Json[] = [
  service({
    clusterIP: 'None',
    externalIPs: ['x'],
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 5 } },
  }),
  endpoint({
    conditions: { ready: true },
    hints: { forZones: [{ name: 'a' }] },
    targetRef: { kind: 'Pod', name: 'p' },
  }),
  endpointsJson('web', [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 1 }] }]),
  nodeJson('n', { spec: { taints: [{ effect: 'NoSchedule' }] } }),
  listJson([service({}), endpoint({})]),
];

/** The same value with what is at `path` (numbers choose among the keys) replaced. */
function mutated(value: unknown, path: readonly number[], replacement: unknown): unknown {
  if (typeof value !== 'object' || value === null) return replacement;
  const keys = Object.keys(value);
  const key = keys[(path[0] ?? 0) % Math.max(keys.length, 1)];
  if (path.length === 0 || key === undefined) return replacement;
  const inner = mutated((value as Json)[key], path.slice(1), replacement);
  if (Array.isArray(value)) return value.map((each, index) => (String(index) === key ? inner : each));
  return { ...value, [key]: inner };
}

test('parseObject() never throws, and its messages have one line', (t) => {
  const check = (json: unknown) => {
    const { objects, problems } = parseObject(json, 'x.yaml');
    for (const { message } of problems) {
      t.false(message.includes('\n'));
      t.true(message.length < 2000);
    }
    for (const object of objects) t.true(/^[a-z0-9./-]+$/.test(object.key));
  };
  fc.assert(fc.property(hostile, check));
  fc.assert(
    fc.property(
      fc.constantFrom(...valid),
      fc.array(fc.nat(10), { maxLength: 7 }),
      hostile,
      (json, path, value) => check(mutated(json, path, value)),
    ),
    { numRuns: 1000 },
  );
  t.is(({} as Json).polluted, undefined);
});

test.serial('parseObject() reads 2,000 slices of 10 endpoints in far less than a second', (t) => {
  const manifests = Array.from({ length: 2000 }, (_, index) =>
    sliceJson(
      `web-${index}`,
      Array.from({ length: 10 }, (__, member) => `10.0.${index % 250}.${member + 1}`),
    ),
  );
  const begin = processorTime();
  const { objects } = parseObject(listJson(manifests), '');
  t.is(objects.length, 2000);
  // Some 60 ms on an idle machine.
  t.true(processorTime() - begin < 1000);
});

for (const [what, status, foreign] of [
  ['without a status', undefined, false],
  ['without an address', { loadBalancer: {} }, false],
  ['with an address', { loadBalancer: { ingress: [{ ip: '192.0.2.7' }] } }, true],
  ['with a name', { loadBalancer: { ingress: [{ hostname: 'lb.example.org' }] } }, true],
  ['with an address of an agent', ofAgent('True'), false],
  ['that an agent has given none', ofAgent('False'), true],
] as const)
  test(`parseObject() finds that a Service ${what} is ${foreign ? '' : 'not '}another controller's`, (t) => {
    const { hasForeignStatus } = parsedObject({ ...serviceJson(), status }) as { hasForeignStatus: boolean };
    t.is(hasForeignStatus, foreign);
  });

function ofAgent(status: string) {
  return {
    loadBalancer: { ingress: [{ ip: '192.0.2.7' }] },
    conditions: [
      { type: 'example.org/Other', status: 'False' },
      { type: 'headgate.io/IPAllocated', status },
    ],
  };
}
