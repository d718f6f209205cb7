// Nodes as members whose health is kube-proxy's answer: on its own port, or on the Service's port if only nodes with an
// endpoint accept traffic. Small servers replace kube-proxy.

import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { type ProbedMember, startProbedMember } from '../support/traffic/probed-members.ts';
import { type Json, MEMBER_PORT, VIP_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true });

/** `healthCheckNodePort`, which differs from kube-proxy's own port. */
const OWN_PORT = 17_091;
const KUBE_PROXY_PORT = 10_256;

/** The Service and its nodes n1, n2 at addresses 11, 12; `endpoints` has the number of each node's endpoints. */
function objects(host: TestHost, spec: Json, endpoints: readonly number[]): readonly Json[] {
  const annotations = {
    'headgate.io/members': 'nodes',
    'headgate.io/health-monitor': 'kube-proxy',
    'headgate.io/health-monitor-interval': '500ms',
    'headgate.io/health-monitor-rise': '1',
    'headgate.io/health-monitor-fall': '1',
  };
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web', namespace: 'default', annotations },
      spec: {
        type: 'LoadBalancer',
        loadBalancerIP: host.address(1),
        ports: [{ port: VIP_PORT, protocol: 'TCP', nodePort: MEMBER_PORT }],
        ...spec,
      },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'web-1', namespace: 'default', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      ports: [{ port: 8080, protocol: 'TCP' }],
      endpoints: endpoints.flatMap((count, node) =>
        Array.from({ length: count }, (_, at) => ({
          addresses: [`10.0.${node}.${at + 1}`],
          nodeName: `n${node + 1}`,
          conditions: { ready: true },
        })),
      ),
    },
    ...[11, 12].map((last, at) => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: `n${at + 1}` },
      status: { addresses: [{ type: 'InternalIP', address: host.address(last) }] },
    })),
  ];
}

/** Each node answers on its node port, and as kube-proxy on `port`. */
async function nodes(
  t: ExecutionContext<unknown>,
  host: TestHost,
  port: number,
): Promise<{ readonly members: readonly ProbedMember[]; readonly proxies: readonly ProbedMember[] }> {
  const at = (where: number) =>
    Promise.all([11, 12].map((last) => startProbedMember(t, host.address(last), where)));
  return { members: await at(MEMBER_PORT), proxies: await at(port) };
}

async function untilStates(host: TestHost, states: string): Promise<void> {
  await host.until(states, async () => {
    const servers = await host.servers();
    const now = [11, 12].map(
      (last) =>
        servers.find(
          ({ backend, server }) => backend.endsWith(':v4') && server.startsWith(`${host.address(last)}:`),
        )?.operational,
    );
    return now.join(' ') === states;
  });
}

/** The number of requests that each node receives. */
async function shares(
  host: TestHost,
  members: readonly ProbedMember[],
  count: number,
): Promise<readonly number[]> {
  const before = members.map(({ requests }) => requests);
  for (let at = 0; at < count; at++) await host.answers();
  return members.map(({ requests }, at) => requests - (before[at] ?? 0));
}

test.serial(
  "HAProxy probes nodes with endpoints at the Service's port, and weights them by their endpoints",
  async (t) => {
    const host = await TestHost.create(t);
    const { members, proxies } = await nodes(t, host, OWN_PORT);
    const spec = { externalTrafficPolicy: 'Local', healthCheckNodePort: OWN_PORT };
    await host.write('web.yaml', objects(host, spec, [1, 3]));
    await host.start();
    await host.until('both were probed', async () => proxies.every(({ probes }) => probes.length > 0));
    t.like(proxies[0]?.probes[0], { method: 'GET', path: '/healthz' });
    await untilStates(host, 'up up');
    t.deepEqual(await shares(host, members, 40), [10, 30]);

    // An endpoint moves: kube-proxy would send the new numbers in X-Load-Balancing-Endpoint-Weight.
    await host.write('web.yaml', objects(host, spec, [2, 2]));
    await host.until('the weights are alike', async () => {
      const [first, second] = await shares(host, members, 20);
      return first === second;
    });
    t.is(await host.reloads(), 0);

    // kube-proxy answers 503 for a node without an endpoint, before the EndpointSlices change.
    const [, other] = proxies;
    if (other !== undefined) other.answer = { status: 503 };
    await untilStates(host, 'up down');
    t.deepEqual(await shares(host, members, 10), [10, 0]);
  },
);

test.serial(
  "HAProxy probes other nodes at kube-proxy's port, where a node reports its shutdown",
  async (t) => {
    const host = await TestHost.create(t);
    const { members, proxies } = await nodes(t, host, KUBE_PROXY_PORT);
    await host.write('web.yaml', objects(host, {}, [1, 0]));
    await host.start();
    await host.until('both were probed', async () => proxies.every(({ probes }) => probes.length > 0));
    await untilStates(host, 'up up');
    t.deepEqual(await shares(host, members, 10), [5, 5]);
    const [leaving] = proxies;
    if (leaving !== undefined) leaving.answer = { status: 503 };
    await untilStates(host, 'down up');
    t.deepEqual(await shares(host, members, 10), [0, 10]);
  },
);
