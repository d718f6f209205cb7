// The certificates, or the authorities, that load balancers ask for, by the name of their object: what the object has now, else
// what it had last, because a listener must not lose its certificate to a broken or deleted Secret. In memory only.
// Owns the round that finds what has expired, and what no load balancer asks for any more.

import { type Clock, systemClock } from '../base/clock.ts';
import { Rounds } from '../base/rounds.ts';
import type { SecretText } from '../base/secret-text.ts';

/** A `KeyPair` or an `Authority`. */
export interface Content {
  readonly pem: SecretText;
  readonly fingerprint: string;
  /** Milliseconds since the epoch. */
  readonly expires: number;
}

/** What an object has: the content, or why there is none, as the end of a sentence. */
export interface Found<T> {
  readonly content: T | undefined;
  /** '' if there is a content. */
  readonly fault: string;
}

/** Whether an object can be read: `not here` only by a running agent, `denied` says why not, as the end of a sentence. */
export type Access =
  | { readonly kind: 'read' }
  | { readonly kind: 'pending' }
  | { readonly kind: 'not here' }
  | { readonly kind: 'denied'; readonly why: string };

export interface LastGoodOptions<T> {
  readonly find: (name: string) => Found<T> | undefined;
  /** Why there is nothing if the object is not found, as the end of a sentence. */
  readonly missing: string;
  /** Whether the object can be read; reads it from now on. */
  readonly access: (name: string) => Access;
  /** True if a load balancer asks for it. */
  readonly isRead: (name: string) => boolean;
  /** The answers for these have changed. */
  readonly onChanged: (names: readonly string[]) => void;
  /** How many contents of a name are kept, the present one included; 2 by default. */
  readonly keeps?: number;
  readonly clock?: Clock;
}

export interface Answer<T> {
  /** undefined if there is none, and was none before. */
  readonly content: T | undefined;
  /** Why the object has none now, as the end of a sentence; '' if it has, or if it has not been read yet. */
  readonly fault: string;
  readonly isMissing: boolean;
  /** A running agent may have it, and this command has not. */
  readonly isUnread?: true;
  readonly isExpired: boolean;
}

/** From the expiry, or the end of use, until it is noticed. */
const ROUND_MS = 30_000;

export class LastGood<T extends Content> {
  readonly #options: LastGoodOptions<T>;
  readonly #clock: Clock;
  readonly #rounds: Rounds;
  /** Key: the name of an object; its last contents, the present one first, because HAProxy may have to go back to another. */
  readonly #contents = new Map<string, readonly T[]>();
  /** Names that were answered as expired. */
  readonly #expired = new Set<string>();

  constructor(options: LastGoodOptions<T>) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#rounds = new Rounds({
      intervalMs: () => ROUND_MS,
      work: () => this.look(),
      onFailed: () => undefined,
      clock: this.#clock,
    });
  }

  start(): void {
    this.#rounds.start();
  }

  close(): void {
    this.#rounds.close();
  }

  /** Takes over what an earlier agent had. */
  restore(name: string, content: T): void {
    if (!this.#contents.has(name)) this.#contents.set(name, [content]);
  }

  readonly answer = (name: string): Answer<T> => {
    const found = this.#options.find(name);
    if (found?.content !== undefined) this.#keep(name, found.content);
    const content = this.#contents.get(name)?.[0];
    const isExpired = content !== undefined && this.#isExpired(content);
    if (isExpired) this.#expired.add(name);
    else this.#expired.delete(name);
    if (found !== undefined) return { content, fault: found.fault, isMissing: false, isExpired };
    const access = this.#options.access(name);
    const missing = { content, fault: this.#whyMissing(access), isMissing: true, isExpired };
    return access.kind === 'not here' ? { ...missing, isUnread: true } : missing;
  };

  /** The PEM text of what load balancers have, or had until a moment ago. */
  readonly pem = (name: string, fingerprint: string): string | undefined =>
    this.#contents
      .get(name)
      ?.find((content) => content.fingerprint === fingerprint)
      ?.pem.reveal();

  /** When each expires, milliseconds since the epoch. */
  expiries(): readonly { readonly name: string; readonly expires: number }[] {
    return [...this.#contents].flatMap(([name, [content]]) =>
      content === undefined ? [] : [{ name, expires: content.expires }],
    );
  }

  /** Reports what has expired, and forgets what no load balancer asks for. */
  look(): void {
    const { isRead, onChanged } = this.#options;
    for (const name of [...this.#contents.keys()]) if (!isRead(name)) this.#forget(name);
    const changed = [...this.#contents].filter(
      ([name, [content]]) => content !== undefined && this.#isExpired(content) && !this.#expired.has(name),
    );
    if (changed.length > 0) onChanged(changed.map(([name]) => name));
  }

  #whyMissing(access: Access): string {
    if (access.kind === 'denied') return access.why;
    return access.kind === 'read' ? this.#options.missing : '';
  }

  #isExpired({ expires }: T): boolean {
    return expires <= this.#clock.wall();
  }

  #keep(name: string, content: T): void {
    const before = this.#contents.get(name) ?? [];
    if (before[0]?.fingerprint === content.fingerprint) return;
    const { keeps = 2 } = this.#options;
    const others = before.filter(({ fingerprint }) => fingerprint !== content.fingerprint);
    this.#contents.set(name, [content, ...others].slice(0, keeps));
  }

  #forget(name: string): void {
    this.#contents.delete(name);
    this.#expired.delete(name);
  }
}
