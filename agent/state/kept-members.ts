// The members of pools with `when-empty: keep-last`, on disk as well: an agent that starts while none of them is ready
// goes on with them, as the one before it did.
// Owns its file and a timer; a file that cannot be read or written costs nothing but that.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../base/errors.ts';
import { parseAddress } from '../base/ip.ts';
import { listOf, mappingOf, oneOf, text, textReader, type Valid, wholeNumber } from '../base/validate.ts';
import { writeAtomically } from '../host/atomic-file.ts';
import type { Log } from '../host/log.ts';
import type { DesiredState } from '../model/desired-state.ts';
import type { LoadBalancer, Member } from '../model/load-balancer.ts';
import { membersAgain } from '../translate/service/members.ts';

const lineSchema = mappingOf({
  service: text(),
  pools: listOf(
    mappingOf({
      listener: text(),
      members: listOf(
        mappingOf({
          address: textReader(parseAddress, 'is not an IP address'),
          port: wholeNumber(1, 65_535),
          weight: wholeNumber(0, 256),
          state: oneOf('ready', 'drain'),
          target: text(),
        }),
      ),
    }),
  ),
});

/** Milliseconds in which changes are written together, at the least, and to the next attempt after a failure. */
const LATER = 1_000;
const RETRY = 30_000;
/** The rest after each write, in times of the write. */
const REST = 10;
/** After which what is known has long been translated. */
const TRANSLATED = 60_000;

export interface KeptMembersOptions {
  readonly stateDir: string;
  readonly desired: DesiredState;
  readonly log: Log;
}

export class KeptMembers {
  readonly #path: string;
  readonly #options: KeptMembersOptions;
  /** Service → its line of the file: made once for each change of it, and never for one of another. */
  readonly #lines = new Map<string, string>();
  #isWritten = true;
  /** Milliseconds to the next write, as the one before has left them. */
  #pause = LATER;
  #fault = '';
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: KeptMembersOptions) {
    this.#path = join(options.stateDir, 'last-members');
    this.#options = options;
  }

  /** Lets the model know what the agent before this one has kept; before anything is translated. */
  async read(): Promise<void> {
    const { desired, log } = this.#options;
    const path = this.#path;
    try {
      for (const line of (await readFile(path, 'utf8')).split('\n')) {
        if (line === '') continue;
        try {
          const { service, pools } = lineSchema.parse(JSON.parse(line));
          desired.remembered.set(service, new Map(pools.map((pool) => [pool.listener, membersOf(pool)])));
        } catch (error) {
          log.warn('The last members of a Service cannot be read', { path, error: messageOf(error) });
        }
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
        log.warn('The last members of pools cannot be read', { path, error: messageOf(error) });
    }
  }

  began(keys: ReadonlySet<string>): void {
    this.changed(keys);
  }

  changed(keys: ReadonlySet<string>): void {
    const { desired } = this.#options;
    for (const key of keys) {
      const loadBalancer = desired.loadBalancers.get(key);
      const remembered = desired.remembered.get(key);
      // Without an address yet it has no pools.
      const pools = loadBalancer?.listeners.length === 0 ? remembered : poolsOf(loadBalancer);
      if (pools !== remembered) desired.remembered.delete(key);
      const line = pools && lineOf(key, pools);
      if (line === this.#lines.get(key)) continue;
      if (line === undefined) this.#lines.delete(key);
      else this.#lines.set(key, line);
      this.#isWritten = false;
    }
    this.#schedule();
  }

  /** All objects are known: soon nothing counts of Services that went while no agent ran. */
  allKnown(): void {
    setTimeout(() => this.#options.desired.remembered.clear(), TRANSLATED).unref();
  }

  /** Resolves when all is written. */
  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#write();
    clearTimeout(this.#timer);
  }

  #schedule(): void {
    if (!this.#isWritten) this.#timer ??= setTimeout(() => void this.#write(), this.#pause).unref();
  }

  /** One at a time. */
  #write(): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      if (this.#isWritten) return;
      const began = performance.now();
      this.#isWritten = true;
      try {
        await writeAtomically(this.#path, this.#lines.values());
        this.#fault = '';
        this.#pause = Math.max(LATER, REST * (performance.now() - began));
      } catch (error) {
        this.#isWritten = false;
        this.#pause = RETRY;
        const fault = messageOf(error);
        if (fault !== this.#fault)
          this.#options.log.warn('The last members of pools cannot be written', { error: fault });
        this.#fault = fault;
      }
      this.#timer = undefined;
      this.#schedule();
    });
    return this.#writing;
  }
}

/** undefined where no pool of it keeps its members. */
function poolsOf(loadBalancer: LoadBalancer | undefined): ReadonlyMap<string, readonly Member[]> | undefined {
  const kept = loadBalancer?.listeners.filter(
    ({ pool }) => pool.whenEmpty === 'keep-last' && pool.members.length > 0,
  );
  return kept?.length ? new Map(kept.map(({ name, pool }) => [name, pool.members])) : undefined;
}

/** What follows from the rest is left out. */
function lineOf(service: string, pools: ReadonlyMap<string, readonly Member[]>): string {
  const written = [...pools].map(([listener, members]) => ({
    listener,
    members: members.map(({ id: _, name: __, ...own }) => own),
  }));
  return `${JSON.stringify({ service, pools: written })}\n`;
}

function membersOf({ members }: Valid<typeof lineSchema>['pools'][number]): readonly Member[] {
  return membersAgain(members.map(({ address, ...own }) => ({ ...own, address: address.address })));
}
