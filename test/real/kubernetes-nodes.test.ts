// Members that are nodes of a real API server, with real traffic through their node ports: labels, taints, conditions
// and deletions of Nodes, and externalTrafficPolicy Local from the slices.

import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { type RunningAgent, TestHost } from '../support/host/agent.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { slicePath } from '../support/kube/kube-objects.ts';
import { createNodeService, nodePath } from '../support/kube/node-service.ts';
import { Load } from '../support/traffic/traffic.ts';

const test = requires(ava, { ...kubeNeeds(), haproxy: true });

const EXCLUDE = 'node.kubernetes.io/exclude-from-external-load-balancers';

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t);
});
test.after.always(() => kube?.stop());

// Conformance: condition Ready, taints
test.serial(
  'Nodes come and go with their labels, taints and deletion, without a failed request',
  async (t) => {
    const { host, members } = await servedByNodes(t, 'shop', {});
    await host.until('all nodes are members', async () => (await members()) === '11 12 13');
    const reloads = await host.reloads();
    const load = new Load(t, host.place());

    await kube.must('PATCH', nodePath('n2'), { metadata: { labels: { [EXCLUDE]: '' } } });
    await host.until('the excluded node is none', async () => (await members()) === '11 13');
    await kube.must('PATCH', nodePath('n2'), { metadata: { labels: { [EXCLUDE]: 'false' } } });
    await host.until('the label says false', async () => (await members()) === '11 12 13');

    await taint('n3', [{ key: 'example.org/emptied', effect: 'NoExecute' }]);
    await host.until('the node that is emptied is none', async () => (await members()) === '11 12');
    await taint('n3', [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }]);
    await host.until('a node that gets no new pods is one', async () => (await members()) === '11 12 13');

    await kube.must('DELETE', nodePath('n1'));
    await host.until('the deleted node is none', async () => (await members()) === '12 13');
    await load.answered(30);
    const { failures, answers } = await load.stop();
    t.deepEqual(failures, []);
    t.deepEqual(
      [...answers.keys()].sort(),
      [11, 12, 13].map((last) => host.address(last)),
    );
    t.is(await host.reloads(), reloads);
  },
);

// Conformance: condition Ready, taints
test.serial('A Node that flaps between Ready and NotReady changes nothing in HAProxy', async (t) => {
  const { host, agent, members } = await servedByNodes(t, 'calm', {});
  await host.until('all nodes are members', async () => (await members()) === '11 12 13');
  const commands = async () => {
    const metric = await agent.metrics();
    const kinds = ['AddServer', 'SetServerState', 'SetServerWeight'];
    return kinds.map((command) => metric('headgate_haproxy_commands_total', { command }) || 0);
  };
  const before = await commands();
  for (const isReady of [false, true, false, true, false]) {
    const status = isReady ? 'True' : 'Unknown';
    const condition = { type: 'Ready', status, reason: 'Flap', message: status };
    await kube.must('PATCH', `${nodePath('n1')}/status`, { status: { conditions: [condition] } });
    // As the node lifecycle controller does it.
    const keys = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
    await taint('n1', isReady ? [] : keys.map((key) => ({ key, effect: 'NoExecute' })));
  }
  // What came before it has been seen once this has an effect.
  await kube.must('DELETE', nodePath('n3'));
  await host.until('the deleted node is none', async () => (await members()) === '11 12');
  const [added = 0, states = 0, weights = 0] = before;
  t.deepEqual(await commands(), [added, states + 1, weights]);
});

// Conformance: spec.externalTrafficPolicy
test.serial('With externalTrafficPolicy Local only Nodes with endpoints get traffic', async (t) => {
  const { host, members } = await servedByNodes(t, 'local', { externalTrafficPolicy: 'Local' });
  const endpoints = async (list: readonly object[]) => {
    const slice = {
      metadata: { name: 'local-1', labels: { 'kubernetes.io/service-name': 'local' } },
      addressType: 'IPv4',
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
      endpoints: list,
    };
    const { status } = await kube.api('PUT', slicePath('default', 'local-1'), slice);
    if (status === 404) await kube.must('POST', slicePath('default'), slice);
  };
  const on = (nodeName: string, conditions: object = { ready: true }) => ({
    addresses: [`10.5.0.${nodeName.slice(1)}`],
    nodeName,
    conditions,
  });
  const terminating = { ready: false, serving: true, terminating: true };
  t.is(await members(), '');
  await endpoints([on('n1')]);
  await host.until('its node is a member', async () => (await members()) === '11');
  const reloads = await host.reloads();
  const load = new Load(t, host.place());
  await endpoints([on('n1'), on('n2')]);
  await host.until('the second node is one', async () => (await members()) === '11 12');
  await endpoints([on('n1', terminating), on('n2')]);
  await host.until('the first one drains', async () => (await members()) === '11-drain 12');
  await endpoints([on('n2')]);
  await host.until('the first one is gone', async () => (await members()) === '12');
  await endpoints([on('n2', terminating)]);
  await load.answered(30);
  t.is(await members(), '12');
  t.deepEqual((await load.stop()).failures, []);
  t.is(await host.reloads(), reloads);
});

/** `members`: the last parts of the addresses of its nodes, with the state of those that are not ready. */
async function servedByNodes(
  t: ExecutionContext<unknown>,
  name: string,
  spec: object,
): Promise<{
  readonly host: TestHost;
  readonly agent: RunningAgent;
  readonly members: () => Promise<string>;
}> {
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
  await createNodeService(t, kube, host, name, spec);
  const agent = await host.start();
  const members = async () => {
    const own = (await host.servers()).filter(({ backend }) => backend.startsWith(`default:${name}:`));
    return own
      .filter(({ state }) => state !== 'maint')
      .map(({ address, state }) => `${address.split('.')[3]}${state === 'ready' ? '' : `-${state}`}`)
      .sort()
      .join(' ');
  };
  return { host, agent, members };
}

async function taint(node: string, taints: readonly object[]): Promise<void> {
  await kube.must('PATCH', nodePath(node), { spec: { taints: taints.length === 0 ? null : taints } });
}
