// Two hosts with Headgate, as docs/pair.md has an operator set them up.

import { agentSocketPath, askAgent, orderAgent } from '../../agent/agent-socket.ts';
import type { OrderOutcome } from '../../agent/pair/orders.ts';
import type { AgentStatus } from '../../agent/status.ts';
import { makeCredentials } from '../../test/support/pair-credentials.ts';
import { type Agent, ManifestFolder, startAgent } from '../support/agent.ts';
import type { Bench } from '../support/row.ts';
import type { Scratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';
import { ADVERT_INTERVAL, MEMBER_PORT, otherThan, type PairContender, PORT, vipAt } from './contender.ts';
import { ANCHOR, type HostName, type PairNetwork } from './network.ts';

/** With `count` Services of one VIP each. */
export async function startAgentPair(
  bench: Bench,
  scratch: Scratch,
  network: PairNetwork,
  count: number,
): Promise<PairContender> {
  const credentials = await makeCredentials(scratch.directory);
  const members = [{ address: network.address('member'), port: MEMBER_PORT }];
  const specs = Array.from({ length: count }, (_, index) => ({
    index,
    vip: vipAt(index),
    port: PORT,
    members,
  }));
  const folder = new ManifestFolder(scratch.path('manifests'), specs);
  const agents = Object.fromEntries(
    (['a', 'b'] as const).map((host) => {
      const vrrp = {
        interface: 'eth0',
        address: network.address(host),
        peers: [network.address(otherThan(host))],
        virtualRouterId: 51,
        anchors: [ANCHOR],
        advertInterval: `${ADVERT_INTERVAL}ms`,
      };
      const flags = ['--manifests', folder.path, '--vrrp', JSON.stringify(vrrp)];
      flags.push('--pair-credentials', credentials, '--haproxy-user=', '--haproxy-group=');
      const options = { name: `agent-${host}`, haproxy: bench.haproxy, within: network.within(host) };
      return [host, startAgent(scratch, flags, options)];
    }),
  ) as Readonly<Record<HostName, Agent>>;

  const statusOf = (host: HostName) =>
    askAgent(agentSocketPath(agents[host].runtime), 'status') as Promise<AgentStatus>;
  const isSettled = async (): Promise<HostName | undefined> => {
    const [a, b] = await Promise.all([statusOf('a'), statusOf('b')]);
    for (const { pair, vrrp } of [a, b]) {
      // A host that has handed over says so for as long as the other one is master and well.
      const isLowered = pair?.lowered.some(({ reason }) => reason !== 'failover') ?? true;
      if (pair === undefined || pair.peerNotReady !== '' || isLowered) return undefined;
      if (vrrp?.vips !== count || vrrp.fault !== '' || pair.pending > 0) return undefined;
    }
    const states = [a, b].map(({ vrrp }) => vrrp?.instances[0]?.state).join();
    return states === 'master,backup' ? 'a' : states === 'backup,master' ? 'b' : undefined;
  };
  return {
    name: 'the agent',
    settled: async () => {
      let active: HostName | undefined;
      const isThere = async (): Promise<boolean> => {
        for (const { child, said } of Object.values(agents))
          if (child.exitCode !== null) throw new Error(`The agent has ended:\n${said()}`);
        active = await isSettled().catch(() => undefined);
        return active !== undefined;
      };
      await until('Both hosts are well', isThere, { every: 100, most: 60_000 });
      return active ?? 'a';
    },
    handOver: async (active) => {
      const socket = agentSocketPath(agents[active].runtime);
      const { ok, message } = (await orderAgent(socket, 'failover')) as OrderOutcome;
      if (!ok) throw new Error(`The failover was not carried out: ${message}`);
    },
    restore: async () => undefined,
  };
}
