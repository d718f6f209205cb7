// The hold table, which `nft flush ruleset` of another program leaves alone, because the kernel keeps it for the process that
// made it (Linux 5.12): while all other rules are away, established flows of the kernel path keep their members, and packets of
// new flows are dropped instead of answered by a reset. Owns the process.

import { randomBytes } from 'node:crypto';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../host/log.ts';
import { partsOf } from '../rules/command-text.ts';
import { placeOf } from '../rules/elements.ts';
import { isDirect, type KernelListener } from '../rules/kernel-listener.ts';
import type { Place } from '../rules/place.ts';
import { NftSession, type SessionOptions } from './session.ts';

/** `isDirect`: conntrack knows none of its flows, so that all packets wait. */
export interface HeldPlace extends Place {
  readonly isDirect: boolean;
}

export interface HoldTableOptions extends SessionOptions {
  readonly table: string;
  readonly log: Log;
}

const FAMILIES = [
  ['ip', 'ipv4_addr'],
  ['ip6', 'ipv6_addr'],
] as const;
/** To make the table; a kernel before Linux 5.12 refuses it always. */
const MAX_FAILURES = 3;
/** While there are chains of these, the kernel changes the addresses of established flows. */
const NAT_HOOKS = [
  ['prerouting', -100],
  ['input', 100],
  ['output', -100],
  ['postrouting', 100],
] as const;

export class HoldTable {
  readonly #options: HoldTableOptions;
  #session: NftSession | undefined;
  #name = '';
  /** Elements in the table, by their text. */
  #held = new Set<string>();
  /** In a row: to make the table. */
  #failures = 0;

  constructor(options: HoldTableOptions) {
    this.#options = options;
  }

  /** Before these changes: other engines may serve places that leave the rules. Never rejects. */
  async release(places: Iterable<HeldPlace>): Promise<void> {
    if (this.#isOpen) await this.#change('delete', placeTexts(places));
  }

  /** After these changes. Never rejects. */
  async hold(places: Iterable<HeldPlace>): Promise<void> {
    const texts = placeTexts(places);
    if (texts.length === 0 || this.#failures >= MAX_FAILURES) return;
    if (this.#isOpen || (await this.#begin())) await this.#change('add', texts);
  }

  /** Without any place: the kernel continues to change the addresses of established flows. Never rejects. */
  async holdFlows(): Promise<void> {
    if (!this.#isOpen && this.#failures < MAX_FAILURES) await this.#begin();
  }

  /** Before the rules have these listeners and no others. Never rejects. */
  async keepOnly(listeners: readonly KernelListener[]): Promise<void> {
    const wanted = new Set(placeTexts(placesOf(listeners)));
    if (this.#isOpen)
      await this.#change(
        'delete',
        [...this.#held].filter((text) => !wanted.has(text)),
      );
  }

  /** After that. Never rejects. */
  async holdAll(listeners: readonly KernelListener[]): Promise<void> {
    await this.hold(placesOf(listeners));
  }

  /** Its process has ended. */
  get isDue(): boolean {
    return !this.#isOpen && this.#failures < MAX_FAILURES;
  }

  /** The table goes with its process. */
  close(): void {
    this.#session?.close();
    this.#session = undefined;
    this.#held.clear();
  }

  get #isOpen(): boolean {
    return this.#session?.isOpen === true;
  }

  async #begin(): Promise<boolean> {
    const { program, netns, table } = this.#options;
    this.close();
    // The kernel may still have that of a process before this one.
    this.#name = `${table}_hold_${randomBytes(4).toString('hex')}`;
    this.#session = new NftSession({ program, netns });
    const why = await this.#ask(tableText(this.#name));
    if (why === '') {
      this.#failures = 0;
      return true;
    }
    this.close();
    if (++this.#failures === MAX_FAILURES)
      this.#options.log.info(
        'Flows of the kernel path do not outlive a flush of all rules by another program',
        {
          error: why,
        },
      );
    return false;
  }

  async #change(verb: 'add' | 'delete', texts: readonly string[]): Promise<void> {
    const due = texts.filter((text) => this.#held.has(text) === (verb === 'delete'));
    if (due.length === 0) return;
    const why = await this.#ask(
      due.map((text) => `${verb} element ${text.replace(' ', ` ${this.#name} `)}`).join('; '),
    );
    // Without the table no place is dropped that it should not be.
    if (why !== '') this.close();
    else for (const text of due) verb === 'add' ? this.#held.add(text) : this.#held.delete(text);
  }

  /** '' if nft carries it out. */
  async #ask(line: string): Promise<string> {
    return (await this.#session?.ask(line).catch(messageOf)) ?? '';
  }
}

function tableText(name: string): string {
  return FAMILIES.flatMap(([family, address]) => {
    const table = `${family} ${name}`;
    const to = `${family} daddr . meta l4proto . th dport`;
    return [
      `add table ${table} { flags owner; }`,
      `add set ${table} places { type ${address} . inet_proto . inet_service; }`,
      `add set ${table} direct { type ${address} . inet_proto . inet_service; }`,
      ...NAT_HOOKS.map(
        ([hook, priority]) => `add chain ${table} ${hook} { type nat hook ${hook} priority ${priority}; }`,
      ),
      // After the rules themselves, which refuse new flows without a ready member.
      `add chain ${table} arrivals { type filter hook input priority 20; }`,
      // Of connections that HAProxy had before the port was the kernel's, the packets have a socket with a user.
      `add rule ${table} arrivals ${to} @direct meta skuid >= 0 accept`,
      `add rule ${table} arrivals ${to} @direct drop`,
      `add rule ${table} arrivals tcp flags & (fin | syn | rst | ack) != syn ct state != invalid accept`,
      `add rule ${table} arrivals ct state invalid,new ${to} @places drop`,
    ];
  }).join('; ');
}

function* placesOf(listeners: Iterable<KernelListener>): Generator<HeldPlace> {
  for (const listener of listeners)
    for (const address of listener.addresses) yield heldPlace(listener, address);
}

export function heldPlace(listener: KernelListener, address: string): HeldPlace {
  return { ...placeOf(listener, address), isDirect: isDirect(listener) };
}

/** Such as `ip places { 192.0.2.1 . udp . 53 }`. Errors: RUNTIME_TOKEN. */
function placeTexts(places: Iterable<HeldPlace>): readonly string[] {
  return Array.from(places, (place) => {
    const [family, , key] = partsOf({ map: 'places', place }, '');
    return `${family} ${place.isDirect ? 'direct' : 'places'} { ${key} }`;
  });
}
