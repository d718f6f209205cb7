import test from 'ava';
import type { EndpointSlice, KubernetesObject, Service } from '../../../../agent/kubernetes/objects.ts';
import type { Problem } from '../../../../agent/model/load-balancer.ts';
import { explainService } from '../../../../agent/report/answers/explain.ts';
import type { StatusSources } from '../../../../agent/report/answers/status.ts';
import { Announcers } from '../../../../agent/vips/announcers.ts';
import { clusterOf, node, service, slice } from '../../../support/values/build.ts';
import { SETTINGS, translateCluster } from '../../../support/values/translated.ts';

/** HAProxy serves every listener and has no server. */
const dataplaneWith = (fault: string) => ({
  serves: () => true,
  members: () => new Map(),
  failures: () => undefined,
  problemsOf: () => [],
  status: () => ({ fault }),
});

function explained(
  objects: readonly KubernetesObject[],
  {
    members = SETTINGS.members,
    problems = [] as readonly Problem[],
    paths = {} as Readonly<Record<string, readonly string[]>>,
    fault = '',
  } = {},
) {
  const cluster = clusterOf(objects);
  return explainService('default/web', {
    desired: translateCluster(cluster, { members }),
    cluster,
    dataplane: dataplaneWith(fault),
    reach: undefined,
    announcers: new Announcers({ vrrp: undefined }),
    api: () => undefined,
    sourceProblems: () => problems,
    pathsOf: (identity: string) => paths[identity] ?? [],
    zone: () => '',
  } as unknown as StatusSources);
}

const named = service({ ports: [{ name: 'http' }] });

for (const [what, given, slices, words] of [
  [
    'a port without a name for a named port',
    named,
    [slice()],
    'the Service has the TCP port "http", but EndpointSlice default/web-1 has a TCP port without a name',
  ],
  [
    'a named port for a port without a name',
    service(),
    [slice({ ports: [{ name: 'http' }] })],
    'the Service has a TCP port without a name, but EndpointSlice default/web-1 has the TCP port "http"',
  ],
  [
    'another protocol',
    named,
    [slice({ ports: [{ name: 'http', protocol: 'UDP' }] })],
    'the Service has the TCP port "http", but EndpointSlice default/web-1 has the UDP port "http"',
  ],
  [
    'no port',
    named,
    [slice({ name: 'web', ports: [] })],
    'the Service has the TCP port "http", but EndpointSlice or Endpoints default/web has no port with a number',
  ],
  [
    'neither ports nor endpoints, as without pods',
    named,
    [slice({ ports: [], endpoints: [] })],
    'the EndpointSlices of the Service have no endpoint: EndpointSlice default/web-1',
  ],
  [
    'addresses of the other family',
    named,
    [slice({ endpoints: ['2001:db8::1'] })],
    'its EndpointSlices have IPv6 addresses only: EndpointSlice default/web-1',
  ],
  [
    'no endpoint',
    service(),
    [slice({ endpoints: [] })],
    'the EndpointSlices with a TCP port without a name have no endpoint: EndpointSlice default/web-1',
  ],
  [
    'the label of another Service',
    service(),
    [slice({ name: 'web-1', serviceName: 'wep' })],
    'no EndpointSlice in namespace "default" has the label "kubernetes.io/service-name" with the value "web"',
  ],
] as readonly (readonly [string, Service, readonly EndpointSlice[], string])[])
  test(`explainService() names both sides if a slice has ${what}`, (t) => {
    const { reasons, verdict } = explained([given, ...slices]);
    t.is(verdict, 'no ready member');
    t.deepEqual(reasons, [`TCP port 80 (IPv4) has no member: ${words}`]);
  });

test('explainService() names Nodes if these are the members and none can be one', (t) => {
  const byNodes = service({ ports: [{ nodePort: 30080 }] });
  const { reasons } = explained([byNodes, slice(), node({ internalIPs: [] })], { members: 'nodes' });
  t.deepEqual(reasons, ['TCP port 80 (IPv4) has no member: its members are Nodes, and no Node can be one']);
});

test('explainService() names Nodes also without an endpoint, except if only Nodes with endpoints are members', (t) => {
  const byNodes = (externalTrafficPolicy: Service['externalTrafficPolicy']) =>
    explained([service({ externalTrafficPolicy, ports: [{ nodePort: 30080 }] })], { members: 'nodes' });
  t.deepEqual(byNodes('Cluster').reasons, [
    'TCP port 80 (IPv4) has no member: its members are Nodes, and no Node can be one',
  ]);
  t.regex(byNodes('Local').reasons[0] ?? '', /has no member: no EndpointSlice in namespace "default"/);
});

test('explainService() names the problem that leaves a port without members', (t) => {
  const metadata = explained([service(), slice({ endpoints: ['168.63.129.16'] })]);
  t.is(metadata.reasons[1], 'TCP port 80 (IPv4) has no member: none can be one (InvalidEndpoint)');
  t.regex(metadata.reasons[0] ?? '', /^Cannot send to 168\.63\.129\.16:8080 for port 80/);
  const unnumbered = explained([service(), slice(), node()], { members: 'nodes' });
  t.is(unnumbered.reasons[1], 'TCP port 80 (IPv4) has no member: none can be one (NodePortMissing)');
});

const broken: Problem = { object: '/m/a.yaml', reason: 'InvalidFile', message: '/m/a.yaml:3:1: broken' };
const refusedSlice: Problem = {
  object: 'EndpointSlice default/web-2',
  reason: 'InvalidObject',
  message: '/m/b.yaml: EndpointSlice default/web-2: ports is not a list',
};

test('explainService() names the files that may have a Service that it does not find', (t) => {
  const other: Problem = { object: 'Service default/web-2', reason: 'InvalidObject', message: 'another' };
  const { verdict, reasons } = explained([], { problems: [other, broken] });
  t.is(verdict, 'not found');
  t.deepEqual(reasons, ['There is no Service "default/web"', broken.message]);
});

test('explainService() names the broken file of a Service or of its EndpointSlice', (t) => {
  const objects = [service(), slice()];
  for (const identity of ['Service default/web', 'EndpointSlice default/web-1'])
    t.true(
      explained(objects, { problems: [broken], paths: { [identity]: ['/m/a.yaml'] } }).reasons.includes(
        broken.message,
      ),
      identity,
    );
  t.false(explained(objects, { problems: [broken] }).reasons.includes(broken.message));
});

test('explainService() names refused EndpointSlices and broken files if a listener has no endpoint', (t) => {
  const { reasons } = explained([service()], { problems: [broken, refusedSlice] });
  t.deepEqual(reasons.slice(0, 2), [refusedSlice.message, broken.message]);
});

test('A fault of HAProxy is a reason for the Services that it serves, and for no Service of the kernel path', (t) => {
  const fault = 'Another HAProxy runs';
  t.true(explained([service(), slice()], { fault }).reasons.includes(fault));
  const udp = [{ protocol: 'UDP' as const }];
  t.false(explained([service({ ports: udp }), slice({ ports: udp })], { fault }).reasons.includes(fault));
});
