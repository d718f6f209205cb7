// Keeps the members of pools with `when-empty: keep-last` on disk, so that an agent that starts while none of them is ready
// continues with them. Owns the file; without a readable file the pools only start empty.

import { join } from 'node:path';
import { BackgroundWrite } from '../base/background-write.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { parseAddress } from '../base/ip.ts';
import { listOf, object, oneOf, string, textReader, type Valid, wholeNumber } from '../base/validate.ts';
import type { Log } from '../host/log.ts';
import { RecordLog } from '../host/record-log.ts';
import type { DesiredState } from '../model/desired-state.ts';
import type { LoadBalancer, Member } from '../model/load-balancer.ts';
import { namedMembers } from '../translate/service/members.ts';

/** The record of a Service. */
const poolsSchema = listOf(
  object({
    listener: string(),
    members: listOf(
      object({
        address: textReader(parseAddress, 'is not an IP address'),
        port: wholeNumber(1, 65_535),
        weight: wholeNumber(0, 256),
        state: oneOf('ready', 'drain'),
        target: string(),
      }),
    ),
  }),
);

/** Changes within this time are written together. */
const DELAY_MS = 1_000;
const RETRY_DELAY_MS = 30_000;
/** Writing takes at most an eleventh of the time. */
const REST = 10;
/** After all objects are read, for their translation. */
const TRANSLATED_MS = 60_000;

export interface KeptMembersOptions {
  readonly stateDir: string;
  readonly desired: DesiredState;
  readonly log: Log;
  readonly clock?: Clock;
}

export class KeptMembers {
  readonly #options: KeptMembersOptions;
  readonly #file: RecordLog;
  readonly #writing: BackgroundWrite;
  /** Key of the Service → its pools as JSON. */
  readonly #kept = new Map<string, string>();
  /** Keys of Services whose record is not written yet. */
  readonly #changed = new Set<string>();

  constructor(options: KeptMembersOptions) {
    this.#options = options;
    this.#file = new RecordLog(join(options.stateDir, 'last-members'), () => this.#kept);
    this.#writing = new BackgroundWrite({
      write: () => this.#write(),
      delayMs: DELAY_MS,
      retryMs: RETRY_DELAY_MS,
      rest: REST,
      onFault: (error) => options.log.warn('The last members of pools cannot be written', { error }),
    });
  }

  /** Reads the members that the agent before this one has kept; before any translation. */
  read(): void {
    const { desired, log } = this.#options;
    for (const [service, value] of this.#file.values()) {
      try {
        const pools = poolsSchema.parse(value);
        desired.remembered.set(service, new Map(pools.map((pool) => [pool.listener, membersOf(pool)])));
      } catch (error) {
        log.warn('The last members of a Service cannot be read', { service, error: messageOf(error) });
      }
    }
    const { damage } = this.#file;
    if (damage !== undefined) log.warn('Some last members of pools cannot be read', { error: damage });
  }

  began(keys: ReadonlySet<string>): void {
    this.changed(keys);
  }

  changed(keys: ReadonlySet<string>): void {
    const { desired } = this.#options;
    for (const key of keys) {
      const loadBalancer = desired.loadBalancers.get(key);
      const remembered = desired.remembered.get(key);
      // A load balancer without an address has no pools yet.
      const pools = loadBalancer?.listeners.length === 0 ? remembered : poolsOf(loadBalancer);
      if (pools !== remembered) desired.remembered.delete(key);
      const json = pools && jsonOf(pools);
      if (json === this.#kept.get(key)) continue;
      if (json === undefined) this.#kept.delete(key);
      else this.#kept.set(key, json);
      this.#changed.add(key);
    }
    if (this.#changed.size > 0) this.#writing.soon();
  }

  /** All objects are read: soon after, Services that disappeared while no agent ran are forgotten. */
  allKnown(): void {
    const { desired, clock = systemClock } = this.#options;
    clock.after(TRANSLATED_MS, () => desired.remembered.clear());
  }

  /** Resolves after the last write. */
  async close(): Promise<void> {
    await this.#writing.close();
  }

  async #write(): Promise<void> {
    const keys = [...this.#changed];
    this.#changed.clear();
    try {
      await this.#file.write(keys.map((key) => [key, this.#kept.get(key)]));
    } catch (error) {
      for (const key of keys) this.#changed.add(key);
      throw error;
    }
  }
}

/** undefined if none of its pools keeps its members. */
function poolsOf(loadBalancer: LoadBalancer | undefined): ReadonlyMap<string, readonly Member[]> | undefined {
  const kept = loadBalancer?.listeners.filter(
    ({ pool }) => pool.whenEmpty === 'keep-last' && pool.members.length > 0,
  );
  return kept?.length ? new Map(kept.map(({ name, pool }) => [name, pool.members])) : undefined;
}

/** Without fields that follow from others. */
function jsonOf(pools: ReadonlyMap<string, readonly Member[]>): string {
  const written = [...pools].map(([listener, members]) => ({
    listener,
    members: members.map(({ id: _, name: __, ...own }) => own),
  }));
  return JSON.stringify(written);
}

function membersOf({ members }: Valid<typeof poolsSchema>[number]): readonly Member[] {
  return namedMembers(members.map(({ address, ...own }) => ({ ...own, address: address.address })));
}
