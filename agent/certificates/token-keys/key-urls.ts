// The keys behind URLs that routes name: read when a load balancer first asks, and again every five minutes, or earlier if the server
// says so. Only URLs that the setting allows are read, because authors of routes choose them and the agent could reach what they cannot.
// Owns the rounds that renew keys.

import { type Clock, systemClock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Rounds } from '../../base/rounds.ts';
import type { Access, Found } from '../last-good.ts';
import type { ReadJwks } from './jwks-reader.ts';
import { checkJwks, type TokenKeys } from './token-keys.ts';

/** As translation names what it reads. */
export type KeysName = `${typeof KIND}${string}`;

const KIND = 'jwks ';

export interface KeyUrlsOptions {
  /** URLs, each with all beneath it. */
  readonly allowed: () => readonly string[];
  readonly read: (url: string) => Promise<ReadJwks>;
  /** True if a load balancer asks for it. */
  readonly isRead: (name: KeysName) => boolean;
  readonly onChanged: (names: readonly KeysName[]) => void;
  readonly clock?: Clock;
}

interface Kept {
  readonly found: Found<TokenKeys> | undefined;
  /** In milliseconds of the clock. */
  readonly due: number;
}

const ROUND_MS = 30_000;
const RENEWED_AFTER_MS = 300_000;
export const MOST_URLS = 64;

export class KeyUrls {
  readonly #options: KeyUrlsOptions;
  readonly #clock: Clock;
  readonly #rounds: Rounds;
  readonly #kept = new Map<KeysName, Kept>();

  constructor(options: KeyUrlsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#rounds = new Rounds({
      intervalMs: () => ROUND_MS,
      work: () => this.renew(),
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

  /** undefined if it has not been read, or may not be. */
  find(name: KeysName): Found<TokenKeys> | undefined {
    return isAllowed(urlOf(name), this.#options.allowed()) ? this.#kept.get(name)?.found : undefined;
  }

  /** Reads the URL from now on. */
  access(name: KeysName): Access {
    const url = urlOf(name);
    if (!isAllowed(url, this.#options.allowed()))
      return { kind: 'denied', why: 'the setting jwksUrls does not allow this URL' };
    if (this.#kept.has(name)) return { kind: 'pending' };
    if (!this.#isNamed(url) && this.#countOthers() >= MOST_URLS)
      return { kind: 'denied', why: `${MOST_URLS} other URLs are read, and no more are allowed` };
    this.#kept.set(name, { found: undefined, due: 0 });
    void this.#read(name);
    return { kind: 'pending' };
  }

  /** Reads what is due, and forgets what no load balancer asks for. */
  async renew(): Promise<void> {
    for (const name of [...this.#kept.keys()]) if (!this.#options.isRead(name)) this.#kept.delete(name);
    const now = this.#clock.monotonic();
    await Promise.all([...this.#kept].filter(([, { due }]) => due <= now).map(([name]) => this.#read(name)));
  }

  /** The setting has the URL itself, so that no other routes can keep it from being read. */
  #isNamed(url: string): boolean {
    return this.#options.allowed().some((each) => URL.parse(each)?.href === url);
  }

  #countOthers(): number {
    return [...this.#kept.keys()].filter((name) => !this.#isNamed(urlOf(name))).length;
  }

  async #read(name: KeysName): Promise<void> {
    const url = urlOf(name);
    // The setting may have changed.
    if (!isAllowed(url, this.#options.allowed())) return;
    const begun = this.#clock.monotonic();
    const { found, wait } = await this.#found(url);
    const before = this.#kept.get(name);
    if (before === undefined) return;
    this.#kept.set(name, { found, due: begun + wait });
    if (textOf(found) !== textOf(before.found)) this.#options.onChanged([name]);
  }

  /** `wait`: milliseconds until it is due again. */
  async #found(url: string): Promise<{ readonly found: Found<TokenKeys>; readonly wait: number }> {
    try {
      const { text, maxAge = Number.POSITIVE_INFINITY } = await this.#options.read(url);
      const keys = checkJwks(text);
      if (typeof keys === 'string') return { found: { content: undefined, fault: keys }, wait: ROUND_MS };
      const wait = Math.max(ROUND_MS, Math.min(RENEWED_AFTER_MS, maxAge * 1000));
      return { found: { content: keys, fault: '' }, wait };
    } catch (error) {
      const fault = `it cannot be read: ${messageOf(error)}`;
      return { found: { content: undefined, fault }, wait: ROUND_MS };
    }
  }
}

export function isKeysName(name: string): name is KeysName {
  return name.startsWith(KIND);
}

export function urlOf(name: KeysName): string {
  return name.slice(KIND.length);
}

function textOf(found: Found<TokenKeys> | undefined): string {
  return found === undefined
    ? ''
    : JSON.stringify([found.content?.fingerprint, found.content?.faults, found.fault]);
}

/** `allowed`: URLs with all beneath them. Keys that come in clear text could be anybody's. */
export function isAllowed(text: string, allowed: readonly string[]): boolean {
  const url = URL.parse(text);
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '') return false;
  return allowed.some((each) => {
    const base = URL.parse(each);
    if (base === null || base.origin !== url.origin) return false;
    const path = base.pathname.replace(/\/$/, '');
    // Servers may read these as another path.
    if (path !== '' && /%2f|%5c|%2e|;|\/\//i.test(url.pathname)) return false;
    return url.pathname === path || url.pathname.startsWith(`${path}/`);
  });
}
