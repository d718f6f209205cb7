// What befalls the active host of a pair, each with how it is undone. The other rows of faults and their figures are
// beside it in bench/rows/pair-faults.ts.

import { spawnSync } from 'node:child_process';
import { type HostName, signal } from './network.ts';
import { HOSTS, type TwoAgents } from './two-agents.ts';

export interface Fault {
  readonly row: string;
  /** Seconds without an answer that a client may see, at most. */
  readonly most: number;
  /** Seconds in which it is over for clients, or else never. */
  readonly lasts: number;
  readonly strike: (agents: TwoAgents, active: HostName) => void;
  readonly undo: (agents: TwoAgents, active: HostName) => void;
}

const nothing = (): void => undefined;

export const faults: readonly Fault[] = [
  {
    row: 'fault-power',
    most: 0.75,
    lasts: 2,
    strike: ({ network }, active) => network.fail(active),
    undo: ({ network }, active) => network.recover(active),
  },
  {
    row: 'fault-frozen',
    most: 0.75,
    lasts: 2,
    strike: ({ network }, active) => network.freeze(active),
    undo: ({ network }, active) => network.thaw(active),
  },
  {
    row: 'fault-link-cut',
    most: 0.75,
    lasts: 2,
    strike: ({ network }, active) => network.cut(active),
    undo: ({ network }, active) => network.join(active),
  },
  {
    // Noticed after pairLowerAfter (1 s), then the other host takes over as from one that is well.
    row: 'fault-haproxy-hung',
    most: 2.75,
    lasts: 5,
    strike: (agents, active) => signalAll(agents.agent(active).haproxyPids(), 'SIGSTOP'),
    undo: (agents, active) => signalAll(agents.agent(active).haproxyPids(), 'SIGCONT'),
  },
  {
    row: 'fault-haproxy-killed',
    most: 2.75,
    lasts: 5,
    strike: (agents, active) => signalAll(agents.agent(active).haproxyPids(), 'SIGKILL'),
    undo: nothing,
  },
  {
    row: 'fault-keepalived-killed',
    most: 0.75,
    lasts: 3,
    strike: ({ network }, active) => {
      // Neither process gets to take the addresses away.
      const [parent = 0, ...children] = network.keepalived(active);
      signalAll(children, 'SIGSTOP');
      signalAll([parent, ...children], 'SIGKILL');
    },
    undo: nothing,
  },
  {
    row: 'fault-keepalived-hung',
    most: 0.75,
    lasts: 5,
    strike: ({ network }, active) => signalAll(network.keepalived(active), 'SIGSTOP'),
    undo: nothing,
  },
  {
    row: 'fault-agent-killed',
    most: 0.05,
    lasts: 3,
    strike: (agents, active) => signal(agents.agent(active).pid, 'SIGKILL'),
    undo: (agents, active) => agents.start(active),
  },
  {
    // VRRP gets from neither host to the other; clients, members and the agents' connection get through.
    row: 'fault-vrrp-cut',
    most: 0.75,
    lasts: 5,
    strike: (agents) => deafen(agents, 'ip protocol 112'),
    undo: (agents) => hear(agents),
  },
  {
    // Neither the agents nor the HAProxies hear each other; VRRP, clients and members get through.
    row: 'fault-agents-cut',
    most: 0.05,
    lasts: 5,
    strike: (agents) => deafen(agents, 'tcp dport { 9181, 9182 }'),
    undo: (agents) => hear(agents),
  },
];

function signalAll(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) signal(pid, name);
}

/** On both hosts these packets are dropped. */
function deafen(agents: TwoAgents, packets: string): void {
  nftables(agents, `table inet deaf { chain in { type filter hook input priority 0; ${packets} drop; }; }`);
}

function hear(agents: TwoAgents): void {
  nftables(agents, 'delete table inet deaf');
}

function nftables({ network }: TwoAgents, command: string): void {
  for (const host of HOSTS) {
    const [program = '', ...args] = [...network.within(host), 'nft', command];
    const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`nft on ${host}: ${stderr}`);
  }
}
