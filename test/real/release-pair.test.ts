// `headgate release` on one host of a pair, with a real API server: the other host follows over their link.

import ava, { type ExecutionContext } from 'ava';
import { ADDRESS_API_VERSION as apiVersion } from '../../agent/kubernetes/object-names.ts';
import type { ReleaseOutcome } from '../../agent/release/release-order.ts';
import { requires } from '../support/basics/requirements.ts';
import type { TestHost } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { deployDefinitions } from '../support/kube/deploy.ts';
import { type Kube, kubeNeeds, startKube } from '../support/kube/kube.ts';
import { servicePath, slicePath } from '../support/kube/kube-objects.ts';
import { MEMBER_PORT } from '../support/values/service-objects.ts';
import { type AgentPair, startAgentPair } from '../support/vrrp/agent-pair.ts';
import { SteadyClient } from '../support/vrrp/steady-client.ts';

const needs = kubeNeeds();
const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: [...(needs.programs ?? []), 'keepalived', 'ip', 'nft', 'nsenter', 'bash', 'timeout'],
});

const CLAIMS = `/apis/${apiVersion}/addressclaims`;
const KEPT = '10.9.3.1';
const ANCHOR = '10.9.0.1';

let kube: Kube;
test.before(async (t) => {
  kube = await startKube(t, { leaseNamespace: true });
  await deployDefinitions(kube);
  await kube.must('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } });
  await kube.must('POST', `/apis/${apiVersion}/addresspools`, {
    apiVersion,
    kind: 'AddressPool',
    metadata: { name: 'all' },
    spec: { blocks: ['10.9.3.0/28'] },
  });
});
test.after.always(() => kube?.stop());

test.serial(
  'Both hosts of a pair release what one is told to, and nothing of it stays on either',
  async (t) => {
    const pair = await startAgentPair(t, KEPT, {
      prepare: async (_, network) => {
        await serve('default', 'kept', KEPT, [network.v4('client')], 'TCP');
        await serve('shop', 'tcp', '10.9.3.2', [network.v4('client')], 'TCP');
        await serve('shop', 'udp', '10.9.3.3', [network.v4('client')], 'UDP');
      },
      flags: ['--kubeconfig', kube.kubeconfig],
    });
    const { network, active, standby } = pair;
    const hosts = [active, standby].map(({ host }) => host);
    const all = [ANCHOR, KEPT, '10.9.3.2', '10.9.3.3'];
    await active.host.until('all addresses are there', async () =>
      same(await network.held(active.name), all),
    );
    t.regex(await tables(network, active.name), /10\.9\.3\.3/);
    const client = new SteadyClient(network, 'client', KEPT, VIP_PORT);

    // On the host that does not have the traffic.
    const first = await release(standby.host, ['--namespace', 'shop']);
    t.deepEqual([first.status, first.outcome.left, first.outcome.notes], [0, [], []]);
    t.deepEqual((await network.held(active.name)).toSorted(), [ANCHOR, KEPT].toSorted());
    for (const { name } of [active, standby]) t.notRegex(await tables(network, name), /10\.9\.3\.[23]/);
    for (const host of hosts) t.deepEqual((await host.status()).released?.namespaces, ['shop']);
    for (const name of ['tcp', 'udp']) await isClean(t, 'shop', name);
    t.is(await network.whoServes(KEPT, VIP_PORT), 'member');
    t.is(await network.whoServes('10.9.3.2', VIP_PORT), '');
    const { answered, failures } = await client.stop();
    t.deepEqual(failures, {});
    t.log(`${answered} connections to the other namespace, none failed`);

    const everything = await release(active.host, ['--all']);
    t.deepEqual([everything.status, everything.outcome.left, everything.outcome.notes], [0, [], []]);
    for (const { name } of [active, standby]) {
      const held = await network.held(name);
      t.true(
        held.every((each) => each === ANCHOR),
        held.join(),
      );
      // A question who else has the VIP may be under way.
      await active.host.until(
        'no rule has a VIP',
        async () => !(await tables(network, name)).includes('10.9.3.'),
      );
    }
    await isClean(t, 'default', 'kept');
    t.deepEqual((await kube.must('GET', CLAIMS)).items, []);
    const again = await release(standby.host, ['--all']);
    t.deepEqual([again.status, again.outcome.released, again.outcome.left], [0, [], []]);

    // A host that is not heard is left.
    await standby.agent.kill();
    await isUnheard(pair);
    const undone = await release(active.host, ['--undo']);
    t.is(undone.status, 0);
    await active.host.until(
      'it is served again',
      async () => (await network.whoServes(KEPT, VIP_PORT)) === 'member',
    );
    const alone = await release(active.host, ['--all']);
    t.is(alone.status, 1);
    t.is(alone.outcome.left.length, 1);
    t.regex(alone.outcome.left[0] ?? '', /is not heard, or its agent is older: run this there, too/);
  },
);

const VIP_PORT = 8080;

async function isUnheard({ active }: AgentPair): Promise<void> {
  await active.host.until(
    'the peer is not heard',
    async () => (await active.host.status()).pair?.peer === undefined,
  );
}

async function release(
  host: TestHost,
  args: readonly string[],
): Promise<{ readonly status: number | null; readonly outcome: ReleaseOutcome }> {
  const { status, stdout, stderr } = await host.command('release', [...args, '--yes', '--json']);
  if (stdout === '') throw new Error(stderr);
  return { status, outcome: JSON.parse(stdout) as ReleaseOutcome };
}

async function tables(network: TestNetwork, host: string): Promise<string> {
  return network.run(host, 'nft', 'list', 'ruleset');
}

async function isClean(t: ExecutionContext, namespace: string, name: string): Promise<void> {
  const { metadata, status } = await kube.must('GET', servicePath(namespace, name));
  t.deepEqual(metadata.finalizers ?? [], [], name);
  t.deepEqual(status, { loadBalancer: {} }, name);
}

const same = (a: readonly string[], b: readonly string[]): boolean =>
  a.toSorted().join() === b.toSorted().join();

/** Also if the other host has done so. */
async function serve(
  namespace: string,
  name: string,
  address: string,
  members: readonly string[],
  protocol: 'TCP' | 'UDP',
): Promise<void> {
  await kube.api('POST', servicePath(namespace), {
    metadata: { name, annotations: { 'headgate.io/load-balancer-ips': address } },
    spec: {
      type: 'LoadBalancer',
      allocateLoadBalancerNodePorts: false,
      ports: [{ name: 'p', port: VIP_PORT, protocol, targetPort: MEMBER_PORT }],
    },
  });
  await kube.api('POST', slicePath(namespace), {
    metadata: { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'p', port: MEMBER_PORT, protocol }],
    endpoints: members.map((member) => ({ addresses: [member], conditions: { ready: true } })),
  });
}
