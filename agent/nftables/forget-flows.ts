// Deletes conntrack entries of UDP, by the program conntrack: of members that are gone, whose clients would keep sending to
// them, and of listeners that are new, whose clients' packets had no member before. In the background, one entry after the
// other, because each looks at all flows of the host.

import { Fault } from '../base/fault.ts';
import { serial } from '../base/serial.ts';
import type { Log } from '../host/log.ts';
import { inNamespace } from '../host/namespace.ts';
import { runCommand } from '../host/run-command.ts';
import type { Member } from '../model/load-balancer.ts';
import type { KernelListener } from './kernel-listener.ts';
import type { ListenerChange } from './kernel-table.ts';

export interface ForgetFlowsOptions {
  readonly netns: string;
  readonly log: Log;
}

const TIMEOUT_MS = 10_000;
/** More deletions that wait are not carried out: the entries end by themselves when their clients are silent. */
const MAX_WAITING = 10_000;

export class ForgetFlows {
  readonly #options: ForgetFlowsOptions;
  readonly #turns = serial();
  readonly #fault = new Fault();
  #waiting = 0;
  #isClosed = false;

  constructor(options: ForgetFlowsOptions) {
    this.#options = options;
  }

  /** These changes are in the kernel. */
  changed(changes: readonly ListenerChange[]): void {
    for (const change of changes) for (const words of deletions(change)) this.#later(words);
  }

  close(): void {
    this.#isClosed = true;
  }

  #later(words: readonly string[]): void {
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

/** The arguments of conntrack for each deletion that a change needs. Values have passed their allow-lists (command-text.ts). */
export function deletions({ before, after }: ListenerChange): readonly (readonly string[])[] {
  const listener = before ?? after;
  if (listener?.protocol !== 'UDP') return [];
  const all: (readonly string[])[] = [];
  for (const vip of after?.addresses ?? []) {
    const hadMembers = before?.addresses.includes(vip) === true && before.slots.length > 0;
    // Only flows without a member: their answers would come from the VIP itself.
    if (after !== undefined && after.slots.length > 0 && !hadMembers)
      all.push([...ofPlace(after, vip), '--reply-src', vip]);
  }
  for (const vip of before?.addresses ?? []) {
    const hasPlace = after?.addresses.includes(vip) === true;
    const kept = new Set(hasPlace ? after?.members.map(({ name }) => name) : []);
    if (before !== undefined && !hasPlace) all.push(ofPlace(before, vip));
    else if (before !== undefined)
      for (const member of before.members)
        if (!kept.has(member.name)) all.push([...ofPlace(before, vip), ...toMember(member)]);
  }
  return all;
}

function ofPlace({ family, port }: KernelListener, vip: string): readonly string[] {
  return [
    '-D',
    '-f',
    family === 'v6' ? 'ipv6' : 'ipv4',
    '-p',
    'udp',
    '--orig-dst',
    vip,
    '--orig-port-dst',
    String(port),
  ];
}

function toMember({ address, port }: Member): readonly string[] {
  return ['--reply-src', address, '--reply-port-src', String(port)];
}
