// Two hosts with Headgate, as docs/high-availability.md has an operator set them up, each with a folder of manifests of its own.

import { agentSocketPath, askAgent } from '../../agent/answer/agent-socket.ts';
import type { AgentStatus } from '../../agent/report/answers/status.ts';
import { keepalivedPaths } from '../../agent/vips/keepalived/paths.ts';
import { DumpReader, type InstanceDump } from '../../agent/vips/keepalived/process/dump.ts';
import { findKeepalived, keepalivedProgram } from '../../agent/vips/keepalived/process/process.ts';
import { makeCredentials } from '../../test/support/vrrp/pair-credentials.ts';
import { type Agent, ManifestFolder, startAgent } from '../support/agent.ts';
import type { ServiceSpec } from '../support/objects.ts';
import type { Bench } from '../support/row.ts';
import type { Scratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';
import { ADVERT_INTERVAL_MS, MEMBER_PORT, otherThan, PORT, vipAt } from './contender.ts';
import { ANCHOR, type HostName, type PairNetwork, signal } from './network.ts';

export const HOSTS: readonly HostName[] = ['a', 'b'];

export class TwoAgents {
  readonly network: PairNetwork;
  readonly #scratch: Scratch;
  readonly #haproxy: string;
  readonly #count: number;
  readonly #credentials: string;
  readonly #flags: readonly string[];
  readonly #folders: Readonly<Record<HostName, ManifestFolder>>;
  readonly #agents = new Map<HostName, Agent>();

  /** Starts both agents with `count` Services of one VIP each, and with these flags. */
  static async start(
    bench: Bench,
    scratch: Scratch,
    network: PairNetwork,
    count: number,
    flags: readonly string[] = [],
  ): Promise<TwoAgents> {
    const credentials = await makeCredentials(scratch.directory);
    const agents = new TwoAgents(bench, scratch, network, count, credentials, flags);
    for (const host of HOSTS) agents.start(host);
    return agents;
  }

  private constructor(
    { haproxy }: Bench,
    scratch: Scratch,
    network: PairNetwork,
    count: number,
    credentials: string,
    flags: readonly string[],
  ) {
    this.network = network;
    this.#scratch = scratch;
    this.#haproxy = haproxy;
    this.#count = count;
    this.#credentials = credentials;
    this.#flags = flags;
    const specs = Array.from({ length: count }, (_, index) => this.service(index));
    const folderOf = (host: HostName) => new ManifestFolder(scratch.path(`manifests-${host}`), specs);
    this.#folders = { a: folderOf('a'), b: folderOf('b') };
  }

  agent(host: HostName): Agent {
    const agent = this.#agents.get(host);
    if (agent === undefined) throw new Error(`Host ${host} has no agent`);
    return agent;
  }

  folder(host: HostName): ManifestFolder {
    return this.#folders[host];
  }

  service(index: number): ServiceSpec {
    const members = [{ address: this.network.address('member'), port: MEMBER_PORT }];
    return { index, vip: vipAt(index), port: PORT, members };
  }

  /** Starts the agent of a host, with the files of the agent before it. */
  start(host: HostName): void {
    const { network } = this;
    const vrrp = {
      interface: 'eth0',
      address: network.address(host),
      peers: [network.address(otherThan(host))],
      virtualRouterId: 51,
      anchors: [ANCHOR],
      advertInterval: `${ADVERT_INTERVAL_MS}ms`,
    };
    const flags = ['--manifests', this.#folders[host].path, '--vrrp', JSON.stringify(vrrp)];
    flags.push(
      '--pair-credentials',
      this.#credentials,
      '--haproxy-user=',
      '--haproxy-group=',
      ...this.#flags,
    );
    const options = { name: `agent-${host}`, haproxy: this.#haproxy, within: network.within(host) };
    this.#agents.set(host, startAgent(this.#scratch, flags, options));
  }

  /** Ends the agent, HAProxy and keepalived of a host. */
  async end(host: HostName): Promise<void> {
    const { stop, haproxyPids } = this.agent(host);
    const haproxy = haproxyPids();
    await stop();
    for (const pid of haproxy) signal(pid, 'SIGKILL');
    for (const pid of this.network.keepalived(host)) signal(pid, 'SIGTERM');
  }

  async status(host: HostName): Promise<AgentStatus> {
    return (await askAgent(agentSocketPath(this.agent(host).runtime), 'status')) as AgentStatus;
  }

  /** Resolves with the active host when both hosts are healthy and at rest. */
  async settled(): Promise<HostName> {
    let active: HostName | undefined;
    const isSettled = async (): Promise<boolean> => {
      for (const host of HOSTS) {
        const { child, output } = this.agent(host);
        if (child.exitCode !== null) throw new Error(`The agent of ${host} has ended:\n${output()}`);
      }
      active = await this.#active().catch(() => undefined);
      return active !== undefined;
    };
    await until('Both hosts are healthy', isSettled, { every: 100, most: 60_000 });
    return active ?? 'a';
  }

  /** The counters of keepalived's VRRP instance. */
  async vrrp(host: HostName): Promise<InstanceDump> {
    const { state, runtime } = this.agent(host);
    const { dumpSignal } = await keepalivedProgram('keepalived');
    const paths = keepalivedPaths(state, runtime);
    const pid = (await findKeepalived(paths)) ?? 0;
    const [dump] = (await new DumpReader(paths).read(pid, dumpSignal)) ?? [];
    if (dump === undefined) throw new Error(`keepalived on ${host} does not answer`);
    return dump;
  }

  async #active(): Promise<HostName | undefined> {
    const [a, b] = await Promise.all([this.status('a'), this.status('b')]);
    for (const { pair, vrrp } of [a, b]) {
      // After a failover the former master stays lowered while the other host is a healthy master.
      const isLowered = pair?.lowered.some(({ reason }) => reason !== 'failover') ?? true;
      if (pair === undefined || pair.peerNotReady !== '' || isLowered) return undefined;
      if (vrrp?.vips !== this.#count || vrrp.fault !== '' || pair.pending > 0) return undefined;
    }
    const states = [a, b].map(({ vrrp }) => vrrp?.instances[0]?.state).join();
    return states === 'master,backup' ? 'a' : states === 'backup,master' ? 'b' : undefined;
  }
}
