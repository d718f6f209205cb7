import { readFileSync } from 'node:fs';
import test from 'ava';
import { parseYamlDocuments } from '../../../agent/base/yaml.ts';
import { misspellings } from '../../../agent/kubernetes/misspellings.ts';
import { type Json, listJson, serviceJson, sliceJson } from '../../support/values/kubernetes-json.ts';

const hints = (json: unknown) => misspellings(json, '/m/a.yaml').map(({ message }) => message);

for (const [what, json, message] of [
  [
    'a kind',
    { ...serviceJson(), kind: 'Servce' },
    'Service default/web: kind: "Servce" is unknown, so the object is ignored; the nearest is "Service"',
  ],
  [
    'a kind of an object without a name',
    { kind: 'EndpointSlcie', apiVersion: 'discovery.k8s.io/v1' },
    'EndpointSlice: kind: "EndpointSlcie" is unknown, so the object is ignored; the nearest is "EndpointSlice"',
  ],
  [
    'an apiVersion',
    { ...sliceJson(), apiVersion: 'dicovery.k8s.io/v1' },
    'EndpointSlice default/web-abc: apiVersion: "dicovery.k8s.io/v1" is unknown, so the object is ignored; the nearest is "discovery.k8s.io/v1"',
  ],
  [
    'a field',
    serviceJson('web', { spec: { loadBalancerIp: '192.0.2.1' } }),
    'Service default/web: spec.loadBalancerIp: the field is unknown and ignored; the nearest is "loadBalancerIP"',
  ],
  [
    'a field in a list',
    serviceJson('web', { spec: { ports: [{ port: 80 }, { port: 81, protocoll: 'TCP' }] } }),
    'Service default/web: spec.ports[1].protocoll: the field is unknown and ignored; the nearest is "protocol"',
  ],
  [
    'the label of an EndpointSlice',
    sliceJson('x', [], { metadata: { name: 'x', labels: { 'kubernetes.io/service_nam': 'web' } } }),
    'EndpointSlice default/x: metadata.labels["kubernetes.io/service_nam"]: the field is unknown and ignored; the nearest is "kubernetes.io/service-name"',
  ],
] as const satisfies readonly (readonly [string, Json, string])[])
  test(`misspellings() names ${what} with the nearest known one`, (t) => {
    t.deepEqual(hints(json), [`/m/a.yaml: ${message}`]);
    t.deepEqual(hints(listJson([json])), [`/m/a.yaml: ${message}`]);
  });

test('misspellings() gives no hint for other kinds, groups and fields of Kubernetes', (t) => {
  for (const kind of ['Pod', 'Secret', 'ConfigMap', 'Namespace', 'Event', 'ServiceAccount', 'service'])
    t.deepEqual(hints({ kind, apiVersion: 'v1', metadata: { name: 'a' } }), [], kind);
  t.deepEqual(hints({ ...serviceJson(), apiVersion: 'serving.knative.dev/v1' }), []);
  const spec = { selector: {}, internalTrafficPolicy: 'Local', externalName: '', trafficDistribution: 'x' };
  t.deepEqual(hints(serviceJson('web', { spec })), []);
  for (const other of [undefined, null, 5, [], {}, { kind: 5 }, { kind: 'List' }])
    t.deepEqual(hints(other), []);
});

test('misspellings() gives no hint for the examples', (t) => {
  const folder = new URL('../../../examples/', import.meta.url);
  for (const name of ['manifests/web.yaml', 'options.yaml']) {
    const { documents } = parseYamlDocuments(readFileSync(new URL(name, folder)));
    for (const { value } of documents) t.deepEqual(hints(value), [], name);
  }
});
