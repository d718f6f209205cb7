// The verdicts of docs/status.md in the cluster: conditions and Events of a Service whose address no host announces, of one
// whose members fail clients, and of a route with a missing backend; with the clients that meet them. All nine places for
// each verdict are in test/walks/fault-table.ts.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import type { Json } from '../support/kube/fake-api.ts';
import { createGatewayClass, deployGatewayApi } from '../support/kube/gateway-api.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath, slicePath } from '../support/kube/kube-objects.ts';
import { asNew, gatewayJson, routeJson } from '../support/values/gateways.ts';

const { programs = [] } = kubeNeeds();
const test = requires(ava, {
  programs: [...programs, 'ip', 'nsenter', 'bash'],
  haproxy: true,
  root: true,
});

const GATEWAY_API = '/apis/gateway.networking.k8s.io/v1/namespaces/default';
const CONTROLLER = 'headgate.io/gateway-controller';
/** No interface has it. */
const NOBODYS = '10.9.0.200';
/** Failures become known after two or three rounds of ten seconds. */
const KNOWN_SECONDS = 60;
const MEMBER_PORT = 8080;
const DEAD_PORT = 8081;

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true });
  await deployGatewayApi(kube);
});
test.after.always(() => kube?.stop());

test.serial('Conditions and Events say what clients meet', async (t) => {
  const network = await TestNetwork.create(t, ['a', 'client']);
  const vip = network.v4('a');
  network.serve('client', MEMBER_PORT);
  const flags = ['--netns', network.netns('a'), '--kubeconfig', kube.kubeconfig];
  const host = await TestHost.create(t, { flags });
  await createGatewayClass(kube, 'edge', CONTROLLER);
  await kube.must('POST', '/apis/gateway.networking.k8s.io/v1/gatewayclasses', {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'GatewayClass',
    metadata: { name: 'odd' },
    spec: {
      controllerName: CONTROLLER,
      parametersRef: { group: 'example.org', kind: 'Parameters', name: 'odd' },
    },
  });
  await create('good', vip, 80, [network.v4('client')], MEMBER_PORT);
  await create('dead', vip, 81, [network.v4('client')], DEAD_PORT);
  await create('nobody', NOBODYS, 80, [network.v4('client')], MEMBER_PORT);
  const listeners = [{ name: 'http', port: 82, protocol: 'HTTP' }];
  const addresses = [{ type: 'IPAddress', value: vip }];
  await kube.must('POST', `${GATEWAY_API}/gateways`, asNew(gatewayJson('edge', { addresses, listeners })));
  const backendRefs = [{ name: 'missing', port: 80 }];
  const route = routeJson('api', [{ name: 'edge' }], { rules: [{ backendRefs }] });
  await kube.must('POST', `${GATEWAY_API}/httproutes`, asNew(route));
  const agent = await host.start();
  t.teardown(async () => {
    if (!agent.hasExited) await agent.stop();
  });

  // An address that nobody announces.
  const verdictOf = async (key: string) => (await host.why(key)).verdict;
  await until('it is known', async () => (await verdictOf('default/nobody')) === 'not served');
  await until(
    'it is told',
    async () => (await conditionOf('nobody', 'headgate.io/Programmed'))?.status === 'False',
    {
      seconds: KNOWN_SECONDS,
    },
  );
  t.like(await conditionOf('nobody', 'headgate.io/Programmed'), { reason: 'AddressUnavailable' });
  t.is(await network.whoServes(NOBODYS, 80), '', 'a client gets silence');
  const { stdout: status } = await host.command('status');
  t.regex(status, /^Health: .*1 OFFLINE/m);
  t.regex(status, /GatewayClass odd: spec\.parametersRef is not supported/);
  await until(
    'an Event says so',
    async () => (await eventsOf('Service', 'nobody')).includes('AddressUnavailable'),
    {
      seconds: KNOWN_SECONDS,
    },
  );
  t.is(await verdictOf('default/good'), 'served');
  t.is(await network.whoServes(vip, 80), 'client');
  await network.run('a', 'ip', 'address', 'add', `${NOBODYS}/32`, 'dev', 'eth0');
  await until('it is served', async () => (await verdictOf('default/nobody')) === 'served', {
    seconds: KNOWN_SECONDS,
  });
  t.is(await network.whoServes(NOBODYS, 80), 'client');
  await until(
    'it is told',
    async () => (await conditionOf('nobody', 'headgate.io/Programmed'))?.status === 'True',
    {
      seconds: KNOWN_SECONDS,
    },
  );

  // A route with a missing backend.
  t.is(await verdictOf('gateway:default/edge'), 'served in part');
  await until(
    'an Event of the route says so',
    async () => (await eventsOf('HTTPRoute', 'api')).includes('InvalidRoute'),
    {
      seconds: KNOWN_SECONDS,
    },
  );

  // Members that fail clients.
  t.is(await conditionOf('dead', 'headgate.io/Healthy'), undefined, 'nothing is known before clients try');
  await until(
    'members fail',
    async () => {
      // Longer than HAProxy's three attempts, a second apart: one that gives up before is not counted as failed.
      const script = `exec 3<>/dev/tcp/${vip}/81 && cat <&3`;
      const { stdout } = await network.try('client', 'timeout', '15', 'bash', '--norc', '-c', script);
      t.is(stdout, '');
      return (await verdictOf('default/dead')) === 'members fail';
    },
    { seconds: 2 * KNOWN_SECONDS },
  );
  await until(
    'it is told',
    async () => (await conditionOf('dead', 'headgate.io/Healthy'))?.status === 'False',
    {
      seconds: KNOWN_SECONDS,
    },
  );
  const { reason, message } = await conditionOf('dead', 'headgate.io/Healthy');
  t.is(reason, 'Error');
  // All, or a part of it: connections that have just begun have not failed yet.
  t.regex(message, /TCP port 81 \(IPv4\)/);
  await until('an Event says so', async () => (await eventsOf('Service', 'dead')).includes('MembersFail'), {
    seconds: KNOWN_SECONDS,
  });
  // They answer again.
  network.serve('client', DEAD_PORT);
  await until(
    'clients get answers, and the condition goes',
    async () => {
      await network.whoServes(vip, 81);
      return (await conditionOf('dead', 'headgate.io/Healthy')) === undefined;
    },
    { seconds: 3 * KNOWN_SECONDS },
  );
  t.is(await verdictOf('default/dead'), 'served');
  const failures = (await eventsOf('Service', 'dead')).filter((reason) => reason === 'MembersFail');
  t.is(failures.length, 1, 'one cause is one Event');
});

async function create(
  name: string,
  address: string,
  port: number,
  members: readonly string[],
  memberPort: number,
): Promise<void> {
  const ports = [{ name: 'http', port, targetPort: memberPort, protocol: 'TCP' }];
  await kube.must('POST', servicePath('default'), {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, annotations: { 'headgate.io/load-balancer-ips': address } },
    spec: { type: 'LoadBalancer', loadBalancerClass: 'headgate.io/agent', ports },
  });
  await kube.must('POST', slicePath('default'), {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    endpoints: members.map((each) => ({ addresses: [each], conditions: { ready: true } })),
    ports: [{ name: 'http', port: memberPort, protocol: 'TCP' }],
  });
}

async function conditionOf(name: string, type: string): Promise<Json> {
  const { status } = await kube.must('GET', servicePath('default', name));
  return status?.conditions?.find((each: Json) => each.type === type);
}

/** The reasons. */
async function eventsOf(kind: string, name: string): Promise<readonly string[]> {
  const selector = `fieldSelector=involvedObject.kind=${kind},involvedObject.name=${name}`;
  const { items } = await kube.must('GET', `/api/v1/namespaces/default/events?${selector}`);
  return items.map(({ reason }: Json) => reason);
}
