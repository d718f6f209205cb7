// Counts the flows of listeners from the lines that `conntrack -L` writes: how many each source address has to each member,
// and which members in gateway mode answer. Pure.
// Why: docs/design/decisions/0038-gateway-mode.md

import type { Member, Protocol } from '../../model/load-balancer.ts';
import type { KernelListener } from '../rules/kernel-listener.ts';

/** Flows that have all of this in common need a port of the source address each. */
export interface SourceUse {
  readonly source: string;
  readonly protocol: Protocol;
  /** `10.0.0.1 port 53`. */
  readonly member: string;
  readonly flows: number;
}

/** Members of a listener in gateway mode that do not answer. */
export interface Silence {
  readonly listener: KernelListener;
  readonly members: readonly Member[];
}

/** The flows to a place need one of these ports each, because the kernel gives no lower one to a client with a higher one. */
export const SOURCE_PORTS = 64_512;
/** From this share on, new flows are in danger. */
const NEARLY_ALL = 0.8;
/** With fewer flows in all, no source address can be short of ports. */
export const NEARLY_ALL_FLOWS = Math.ceil(NEARLY_ALL * SOURCE_PORTS);

const LINE =
  /^(tcp|udp|sctp) .*? src=(\S+) dst=(\S+) sport=\d+ dport=(\d+) (\[UNREPLIED\] )?src=(\S+) dst=(\S+) sport=(\d+) /;

export class FlowCounts {
  /** By protocol, VIP and port, as conntrack writes them. */
  readonly #listeners = new Map<string, KernelListener>();
  readonly #uses = new Map<string, { -readonly [K in keyof SourceUse]: SourceUse[K] }>();
  /** By listener, then by the member's address and port. */
  readonly #answers = new Map<KernelListener, Map<string, boolean>>();

  constructor(listeners: Iterable<KernelListener>) {
    for (const listener of listeners)
      for (const address of listener.addresses)
        this.#listeners.set(`${listener.protocol.toLowerCase()} ${address} ${listener.port}`, listener);
  }

  /** Counts one flow, if it is of these listeners. */
  add(line: string): void {
    const [, protocol, client, vip, port, unreplied, member, source = '', memberPort] = LINE.exec(line) ?? [];
    const listener = this.#listeners.get(`${protocol} ${vip} ${port}`);
    // A flow without a member has the VIP itself there.
    if (listener === undefined || member === vip) return;
    if (source === client) this.#addAnswer(listener, `${member} ${memberPort}`, unreplied === undefined);
    else this.#addUse(listener.protocol, source, `${member} port ${memberPort}`);
  }

  /** The source address that has the most flows to one member, if it is short of ports. */
  get fullest(): SourceUse | undefined {
    let most: SourceUse | undefined;
    for (const use of this.#uses.values())
      if (use.flows >= NEARLY_ALL_FLOWS && use.flows > (most?.flows ?? 0)) most = use;
    return most;
  }

  /** Members that are ready and have flows, but answer none of them through this host. */
  get silent(): readonly Silence[] {
    return Array.from(this.#answers, ([listener, answers]): Silence => {
      // Some protocols of UDP have no answers.
      const isUsual = listener.protocol === 'UDP' && ![...answers.values()].includes(true);
      const members = listener.members.filter(
        ({ state, address, port }) => state === 'ready' && answers.get(`${address} ${port}`) === false,
      );
      return { listener, members: isUsual ? [] : members };
    }).filter(({ members }) => members.length > 0);
  }

  #addUse(protocol: Protocol, source: string, member: string): void {
    const key = `${protocol} ${source} ${member}`;
    const use = this.#uses.get(key);
    if (use === undefined) this.#uses.set(key, { source, protocol, member, flows: 1 });
    else use.flows++;
  }

  #addAnswer(listener: KernelListener, member: string, isAnswered: boolean): void {
    const answers = this.#answers.get(listener) ?? new Map<string, boolean>();
    answers.set(member, isAnswered || answers.get(member) === true);
    this.#answers.set(listener, answers);
  }
}

/** What was silent before, too: a flow that has just begun has no answer yet. */
export function lastingSilence(before: readonly Silence[], now: readonly Silence[]): readonly Silence[] {
  return now.flatMap(({ listener, members }) => {
    const earlier = before.find((each) => each.listener.name === listener.name)?.members ?? [];
    const names = new Set(earlier.map(({ name }) => name));
    const lasting = members.filter(({ name }) => names.has(name));
    return lasting.length === 0 ? [] : [{ listener, members: lasting }];
  });
}
