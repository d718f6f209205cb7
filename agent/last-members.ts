// The members of pools with `when-empty: keep-last`, on disk as well: an agent that starts while none of them is ready
// goes on with them, as the one before it did.
// Owns its file and a timer; a file that cannot be read or written costs nothing but that.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeAtomically } from './base/atomic-file.ts';
import { messageOf } from './base/errors.ts';
import { parseAddress } from './base/ip.ts';
import type { Log } from './base/log.ts';
import { listOf, mappingOf, oneOf, text, textReader, wholeNumber } from './base/validate.ts';
import type { LoadBalancer, Member } from './model.ts';
import { membersAgain } from './translate/members.ts';
import type { Model } from './translate.ts';

const fileSchema = mappingOf({
  version: wholeNumber(1, 1),
  pools: listOf(
    mappingOf({
      service: text(),
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

/** Milliseconds in which changes are written together. */
const LATER = 1_000;
/** After which what is known has long been translated. */
const TRANSLATED = 60_000;

export interface LastMembersOptions {
  readonly stateDir: string;
  readonly model: Model;
  readonly log: Log;
}

export class LastMembers {
  readonly #path: string;
  readonly #options: LastMembersOptions;
  /** Service → listener → members. */
  readonly #pools = new Map<string, ReadonlyMap<string, readonly Member[]>>();
  #written = '';
  #fault = '';
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: LastMembersOptions) {
    this.#path = join(options.stateDir, 'last-members.json');
    this.#options = options;
  }

  /** Lets the model know what the agent before this one has kept; before anything is translated. */
  async read(): Promise<void> {
    const { model, log } = this.#options;
    try {
      const { pools } = fileSchema.parse(JSON.parse(await readFile(this.#path, 'utf8')));
      for (const { service, listener, members } of pools) {
        const of = model.remembered.get(service) ?? new Map<string, readonly Member[]>();
        const own = members.map(({ address, ...rest }) => ({ ...rest, address: address.address }));
        model.remembered.set(service, of.set(listener, membersAgain(own)));
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
      log.warn('The last members of pools cannot be read', { path: this.#path, error: messageOf(error) });
    }
  }

  /** These have been translated: what they have counts from now on. */
  note(keys: Iterable<string>): void {
    const { model } = this.#options;
    let differs = false;
    for (const key of keys) {
      const loadBalancer = model.loadBalancers.get(key);
      const remembered = model.remembered.get(key);
      // Without an address yet it has no pools.
      const pools = loadBalancer?.listeners.length === 0 ? remembered : poolsOf(loadBalancer);
      if (pools !== remembered) model.remembered.delete(key);
      if (pools === undefined) differs = this.#pools.delete(key) || differs;
      else {
        this.#pools.set(key, pools);
        differs = true;
      }
    }
    if (differs) this.#timer ??= setTimeout(() => void this.#write(), LATER).unref();
  }

  /** All objects are known: soon nothing counts of Services that went while no agent ran. */
  allKnown(): void {
    setTimeout(() => this.#options.model.remembered.clear(), TRANSLATED).unref();
  }

  /** Resolves when all is written. */
  async close(): Promise<void> {
    if (this.#timer !== undefined) await this.#write();
    await this.#writing;
  }

  #write(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#writeNow());
    return this.#writing;
  }

  async #writeNow(): Promise<void> {
    const json = JSON.stringify({ version: 1, pools: [...listed(this.#pools)] });
    if (json === this.#written) return;
    try {
      await writeAtomically(this.#path, [json]);
      this.#written = json;
      this.#fault = '';
    } catch (error) {
      const fault = messageOf(error);
      if (fault !== this.#fault)
        this.#options.log.warn('The last members of pools cannot be written', { error: fault });
      this.#fault = fault;
    }
  }
}

/** undefined where no pool of it keeps its members. */
function poolsOf(loadBalancer: LoadBalancer | undefined): ReadonlyMap<string, readonly Member[]> | undefined {
  const kept = loadBalancer?.listeners.filter(
    ({ pool }) => pool.whenEmpty === 'keep-last' && pool.members.length > 0,
  );
  return kept?.length ? new Map(kept.map(({ name, pool }) => [name, pool.members])) : undefined;
}

function* listed(pools: ReadonlyMap<string, ReadonlyMap<string, readonly Member[]>>) {
  for (const [service, listeners] of pools)
    for (const [listener, members] of listeners) {
      const own = members.map(({ address, port, weight, state, target }) => ({
        address,
        port,
        weight,
        state,
        target,
      }));
      yield { service, listener, members: own };
    }
}
