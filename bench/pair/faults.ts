// The faults of the active host of a pair, each with its remedy. bench/rows/pair-faults.ts measures them.

import { spawnSync } from 'node:child_process';
import { type HostName, signal } from './network.ts';
import { HOSTS, type TwoAgents } from './two-agents.ts';

export interface Fault {
  readonly row: string;
  /** The longest time without an answer that the target allows. */
  readonly mostSeconds: number;
  /** The fault is over for clients within this time. */
  readonly lastsSeconds: number;
  readonly strike: (agents: TwoAgents, active: HostName) => void;
  readonly undo: (agents: TwoAgents, active: HostName) => void;
}

const nothing = (): void => undefined;

export const faults: readonly Fault[] = [
  {
    row: 'fault-power',
    mostSeconds: 0.75,
    lastsSeconds: 2,
    strike: ({ network }, active) => network.fail(active),
    undo: ({ network }, active) => network.recover(active),
  },
  {
    row: 'fault-frozen',
    mostSeconds: 0.75,
    lastsSeconds: 2,
    strike: ({ network }, active) => network.freeze(active),
    undo: ({ network }, active) => network.thaw(active),
  },
  {
    row: 'fault-link-cut',
    mostSeconds: 0.75,
    lastsSeconds: 2,
    strike: ({ network }, active) => network.cut(active),
    undo: ({ network }, active) => network.join(active),
  },
  {
    // The agent lowers its host after pairLowerAfter (1 s), then the other host takes over.
    row: 'fault-haproxy-hung',
    mostSeconds: 2.75,
    lastsSeconds: 5,
    strike: (agents, active) => signalAll(agents.agent(active).haproxyPids(), 'SIGSTOP'),
    undo: (agents, active) => signalAll(agents.agent(active).haproxyPids(), 'SIGCONT'),
  },
  {
    row: 'fault-haproxy-killed',
    mostSeconds: 2.75,
    lastsSeconds: 5,
    strike: (agents, active) => signalAll(agents.agent(active).haproxyPids(), 'SIGKILL'),
    undo: nothing,
  },
  {
    row: 'fault-keepalived-killed',
    mostSeconds: 0.75,
    lastsSeconds: 3,
    strike: ({ network }, active) => {
      // No process of keepalived may remove the addresses.
      const [parent = 0, ...children] = network.keepalived(active);
      signalAll(children, 'SIGSTOP');
      signalAll([parent, ...children], 'SIGKILL');
    },
    undo: nothing,
  },
  {
    row: 'fault-keepalived-hung',
    mostSeconds: 0.75,
    lastsSeconds: 5,
    strike: ({ network }, active) => signalAll(network.keepalived(active), 'SIGSTOP'),
    undo: nothing,
  },
  {
    row: 'fault-agent-killed',
    mostSeconds: 0.05,
    lastsSeconds: 3,
    strike: (agents, active) => signal(agents.agent(active).pid, 'SIGKILL'),
    undo: (agents, active) => agents.start(active),
  },
  {
    // Only VRRP packets between the hosts are dropped.
    row: 'fault-vrrp-cut',
    mostSeconds: 0.75,
    lastsSeconds: 5,
    strike: (agents) => dropOnBoth(agents, 'ip protocol 112'),
    undo: (agents) => dropNothing(agents),
  },
  {
    // Only packets between the agents and between the HAProxies are dropped.
    row: 'fault-agents-cut',
    mostSeconds: 0.05,
    lastsSeconds: 5,
    strike: (agents) => dropOnBoth(agents, 'tcp dport { 9181, 9182 }'),
    undo: (agents) => dropNothing(agents),
  },
];

function signalAll(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) signal(pid, name);
}

function dropOnBoth(agents: TwoAgents, packets: string): void {
  nftables(agents, `table inet fault { chain in { type filter hook input priority 0; ${packets} drop; }; }`);
}

function dropNothing(agents: TwoAgents): void {
  nftables(agents, 'delete table inet fault');
}

function nftables({ network }: TwoAgents, command: string): void {
  for (const host of HOSTS) {
    const [program = '', ...args] = [...network.within(host), 'nft', command];
    const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`nft on ${host}: ${stderr}`);
  }
}
