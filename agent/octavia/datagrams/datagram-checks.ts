// Checks the members of pushed listeners of UDP and SCTP as their texts say, each at the interval of its listener. Owns timers.

import { type Clock, systemClock } from '../../base/clock.ts';
import { Rounds } from '../../base/rounds.ts';
import { sameValue } from '../../base/same-value.ts';
import type { MemberFact } from '../../dataplane/forwarder.ts';
import type { Probe, ProbeAnswer } from '../../nftables/checks/probe-program.ts';
import { firstCheck, nextCheck, type UdpCheck } from '../../nftables/checks/udp-check.ts';
import type { UdpAnswer } from '../../nftables/checks/udp-probe.ts';
import { datagramListener, datagramMember } from './datagram-balancer.ts';
import type { DatagramCheck, DatagramMember, DatagramText, VirtualServer } from './datagram-text.ts';

export interface DatagramChecksOptions {
  /** `unknown` if it cannot be made. Never rejects. */
  readonly probe: (probe: Probe, timeoutMs: number) => Promise<ProbeAnswer>;
  /** Members that have refused packets of clients: milliseconds since the last one, by member. Never rejects. */
  readonly refusals: () => Promise<ReadonlyMap<string, number>>;
  /** Whether the member was down when it was checked last, perhaps by an agent before this one. */
  readonly wasDown: (listener: string, member: string) => boolean;
  /** Members of this listener went down or up. */
  readonly onChanged: (id: string) => void;
  readonly clock?: Clock;
}

interface Checked {
  readonly text: DatagramText;
  readonly rounds: Rounds;
  /** By listener and member of the model. */
  readonly results: ReadonlyMap<string, UdpCheck>;
}

const NO_FACTS: ReadonlyMap<string, MemberFact> = new Map();

export class DatagramChecks {
  readonly #options: DatagramChecksOptions;
  readonly #clock: Clock;
  /** By id. */
  readonly #checked = new Map<string, Checked>();

  constructor(options: DatagramChecksOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** The first check comes at once. */
  set(text: DatagramText): void {
    const id = text.listener;
    const before = this.#checked.get(id);
    if (!checkedMembers(text).length) {
      this.remove(id);
      return;
    }
    const rounds = before?.rounds ?? this.#begin(id);
    this.#checked.set(id, { text, rounds, results: before?.results ?? new Map() });
    if (before === undefined) rounds.start();
    else if (intervalMs(before.text) !== intervalMs(text)) rounds.retime();
    if (!sameValue(before && placesIn(before.text), placesIn(text))) void rounds.now();
  }

  remove(id: string): void {
    this.#checked.get(id)?.rounds.close();
    this.#checked.delete(id);
  }

  /** The results for the members of a listener of the model, by name; without those that are not known yet. */
  results(id: string, listener: string): ReadonlyMap<string, MemberFact> {
    const checked = this.#checked.get(id);
    if (checked === undefined) return NO_FACTS;
    const facts = new Map<string, MemberFact>();
    for (const { server, member } of checkedMembers(checked.text)) {
      if (datagramListener(id, server) !== listener) continue;
      const result = checked.results.get(keyOf(listener, member));
      if (result === undefined) continue;
      const { isDown, cause } = result;
      facts.set(datagramMember(member), {
        state: 'ready',
        weight: member.weight,
        isDown,
        cause: isDown ? cause : '',
      });
    }
    return facts;
  }

  close(): void {
    for (const { rounds } of this.#checked.values()) rounds.close();
    this.#checked.clear();
  }

  #begin(id: string): Rounds {
    let beganAt = this.#clock.monotonic();
    return new Rounds({
      intervalMs: () => {
        const text = this.#checked.get(id)?.text;
        const interval = text === undefined ? 0 : intervalMs(text);
        return Math.max(0, interval - (this.#clock.monotonic() - beganAt));
      },
      work: async () => {
        beganAt = this.#clock.monotonic();
        await this.#round(id);
      },
      // A probe does not throw.
      onFailed: () => undefined,
      clock: this.#clock,
    });
  }

  async #round(id: string): Promise<void> {
    const checked = this.#checked.get(id);
    if (checked === undefined) return;
    const made = checkedMembers(checked.text).map(async ({ server, member, check }) => {
      const listener = datagramListener(id, server);
      const key = keyOf(listener, member);
      const { wasDown } = this.#options;
      const before = checked.results.get(key) ?? firstCheck(wasDown(listener, datagramMember(member)));
      return [key, await this.#check(before, server, member, check)] as const;
    });
    const results = new Map(await Promise.all(made));
    const now = this.#checked.get(id);
    if (now === undefined) return;
    this.#checked.set(id, { ...now, results });
    const stateOf = (of: ReadonlyMap<string, UdpCheck>): unknown =>
      Array.from(of, ([key, { isDown, cause }]) => [key, isDown, isDown ? cause : '']);
    if (!sameValue(stateOf(now.results), stateOf(results))) this.#options.onChanged(id);
  }

  async #check(
    before: UdpCheck,
    { fall, delay }: VirtualServer,
    member: DatagramMember,
    check: DatagramCheck,
  ): Promise<UdpCheck> {
    const { kind, address, port, path, timeout } = check;
    const answer = judged(await this.#options.probe({ kind, address, port, path }, timeout * 1_000), check);
    const refusals = kind === 'udp' ? await this.#options.refusals() : undefined;
    const sinceRefusalMs = refusals?.get(datagramMember(member)) ?? Number.POSITIVE_INFINITY;
    const probed = { answer, at: this.#clock.monotonic(), sinceRefusalMs };
    // As keepalived: a member is up again by its first success.
    return nextCheck(before, probed, { interval: delay * 1_000, rise: 1, fall });
  }
}

function judged(answer: ProbeAnswer, { codes }: DatagramCheck): UdpAnswer {
  if (answer === 'open') return 'data';
  if (typeof answer !== 'object' || 'failure' in answer) return answer;
  const { status } = answer;
  const isGood = codes.length === 0 ? status === 200 : codes.includes(status);
  return isGood ? 'data' : { failure: `it answers with status ${status}` };
}

function checkedMembers({ isEnabled, servers }: DatagramText): readonly {
  readonly server: VirtualServer;
  readonly member: DatagramMember;
  readonly check: DatagramCheck;
}[] {
  if (!isEnabled) return [];
  return servers.flatMap((server) =>
    server.members.flatMap((member) =>
      member.check === undefined ? [] : [{ server, member, check: member.check }],
    ),
  );
}

function placesIn(text: DatagramText): unknown {
  return checkedMembers(text).map(({ member, check }) => [member.address, member.port, check]);
}

function intervalMs({ servers }: DatagramText): number {
  return Math.max(1, ...servers.map(({ delay }) => delay)) * 1_000;
}

function keyOf(listener: string, member: DatagramMember): string {
  return `${listener} ${datagramMember(member)}`;
}
