// Deletes conntrack entries, by the program conntrack: of UDP members that are gone, whose clients would keep sending to
// them, and of listeners that are new, whose clients' packets had no member before. In the background, one entry after the
// other, because each looks at all flows of the host.

import { type Clock, systemClock } from '../../base/clock.ts';
import { Fault } from '../../base/fault.ts';
import { serial } from '../../base/serial.ts';
import type { Log } from '../../host/log.ts';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';
import type { Member } from '../../model/load-balancer.ts';
import type { KernelListener, ListenerChange } from '../rules/kernel-listener.ts';

export interface ForgetFlowsOptions {
  readonly netns: string;
  readonly log: Log;
  readonly clock?: Clock;
}

/** So long the entries of a member that is gone stay, by which the answers to the last queries reach their clients. */
const LAST_ANSWERS_MS = 500;
const TIMEOUT_MS = 10_000;
/** More deletions that wait are not carried out: the kernel ends the entries when their clients are silent. */
const MAX_WAITING = 10_000;

export class ForgetFlows {
  readonly #options: ForgetFlowsOptions;
  readonly #turns = serial();
  readonly #fault = new Fault();
  /** By their arguments: deletions of members that are gone, each with what cancels it. */
  readonly #gone = new Map<string, () => void>();
  #waiting = 0;
  #isClosed = false;

  constructor(options: ForgetFlowsOptions) {
    this.#options = options;
  }

  /** These changes are in the kernel. */
  changed(changes: readonly ListenerChange[]): void {
    for (const change of changes) {
      if (this.#gone.size > 0) for (const words of ofNewMembers(change)) this.#cancel(words.join(' '));
      const { now, later } = deletions(change);
      for (const words of now) this.#queue(words);
      for (const words of later) this.#later(words);
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const key of [...this.#gone.keys()]) this.#cancel(key);
  }

  #later(words: readonly string[]): void {
    const key = words.join(' ');
    this.#cancel(key);
    const cancel = (this.#options.clock ?? systemClock).after(LAST_ANSWERS_MS, () => {
      this.#gone.delete(key);
      this.#queue(words);
    });
    this.#gone.set(key, cancel);
  }

  #cancel(key: string): void {
    this.#gone.get(key)?.();
    this.#gone.delete(key);
  }

  #queue(words: readonly string[]): void {
    if (this.#waiting >= MAX_WAITING) return;
    this.#waiting++;
    void this.#turns.run(async () => {
      this.#waiting--;
      if (!this.#isClosed) await this.#delete(words);
    });
  }

  async #delete(words: readonly string[]): Promise<void> {
    const { netns, log } = this.#options;
    const [program, args] = inNamespace(netns, 'conntrack', words);
    const why = await runCommand(program, args, { timeout: TIMEOUT_MS, nice: 10 }).then(
      // It also fails if there is no such entry.
      ({ exitCode, stderr }) =>
        exitCode === 0 || /\b0 flow entries/.test(stderr) ? '' : stderr.trim().slice(0, 200),
      () => 'the program conntrack is missing: install it',
    );
    if (why === '') this.#fault.clear();
    else if (this.#fault.set(`Clients of UDP that do not pause stay with members that are gone: ${why}`))
      log.warn(this.#fault.text);
  }
}

const WITHOUT_MEMBER = {
  UDP: [[]],
  TCP: ['SYN_SENT', 'LAST_ACK', 'TIME_WAIT', 'CLOSE'].map((state) => ['--state', state]),
} as const;

export interface Deletions {
  readonly now: readonly (readonly string[])[];
  /** When the last answers of members that are gone have reached their clients. */
  readonly later: readonly (readonly string[])[];
}

/** The arguments of conntrack for each deletion that a change needs. Values have passed their allow-lists (command-text.ts). */
export function deletions({ before, after }: ListenerChange): Deletions {
  const now: (readonly string[])[] = [];
  const later: (readonly string[])[] = [];
  const protocol = (before ?? after)?.protocol;
  if (protocol === 'SCTP') return { now, later };
  for (const vip of after?.addresses ?? []) {
    const hadMembers = before?.addresses.includes(vip) === true && before.slots.length > 0;
    // Only flows without a member: their answers would come from the VIP itself. Of TCP only those that HAProxy, which had the
    // listener, has not answered or has ended: a client that sends its first packet again, or uses its port again, would not
    // reach the kernel's rules.
    if (after !== undefined && after.slots.length > 0 && !hadMembers)
      for (const state of WITHOUT_MEMBER[protocol ?? 'UDP'])
        now.push([...ofPlace(after, vip), '--reply-src', vip, ...state]);
  }
  if (protocol !== 'UDP') return { now, later };
  const kept = new Set(after?.members.map(({ name }) => name));
  for (const vip of before?.addresses ?? []) {
    if (before === undefined) continue;
    if (after?.addresses.includes(vip) !== true) now.push(ofPlace(before, vip));
    else
      for (const member of before.members)
        if (!kept.has(member.name)) later.push([...ofPlace(before, vip), ...toMember(member)]);
  }
  return { now, later };
}

/** The arguments for each member that has come, perhaps back. */
function* ofNewMembers({ before, after }: ListenerChange): Generator<readonly string[], void, void> {
  if (after?.protocol !== 'UDP') return;
  const old = new Set(before?.members.map(({ name }) => name));
  for (const member of after.members)
    if (!old.has(member.name))
      for (const vip of after.addresses) yield [...ofPlace(after, vip), ...toMember(member)];
}

function ofPlace({ family, protocol, port }: KernelListener, vip: string): readonly string[] {
  return [
    '-D',
    '-f',
    family === 'v6' ? 'ipv6' : 'ipv4',
    '-p',
    protocol.toLowerCase(),
    '--orig-dst',
    vip,
    '--orig-port-dst',
    String(port),
  ];
}

function toMember({ address, port }: Member): readonly string[] {
  return ['--reply-src', address, '--reply-port-src', String(port)];
}
