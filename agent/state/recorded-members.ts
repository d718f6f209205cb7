// Records the members of pools with `when-empty: keep-last` on disk, so that an agent that starts while none of them is ready
// continues with them. Without a readable file the pools only start empty.

import { join } from 'node:path';
import { type Clock, systemClock } from '../base/clock.ts';
import type { DiskFile } from '../base/disk-file.ts';
import { parseAddress } from '../base/ip.ts';
import { listOf, object, oneOf, string, textReader, type Valid, wholeNumber } from '../base/validate.ts';
import type { Log } from '../host/log.ts';
import type { DesiredState } from '../model/desired-state.ts';
import type { LoadBalancer, Member } from '../model/load-balancer.ts';
import { namedMembers } from '../translate/service/members.ts';
import { OwnerRecords } from './owner-records.ts';

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

/** After all objects are read, for their translation. */
const TRANSLATED_MS = 60_000;

export interface RecordedMembersOptions {
  readonly stateDir: string;
  readonly desired: DesiredState;
  readonly log: Log;
  readonly clock?: Clock;
}

export class RecordedMembers {
  readonly #desired: DesiredState;
  readonly #clock: Clock;
  readonly #records: OwnerRecords;

  constructor({ stateDir, desired, log, clock = systemClock }: RecordedMembersOptions) {
    this.#desired = desired;
    this.#clock = clock;
    const path = join(stateDir, 'last-members');
    this.#records = new OwnerRecords({ path, content: 'last members of pools', log });
  }

  /** Reads the members that the agent before this one has kept; before any translation. */
  read(): void {
    this.#records.read((service, value) => {
      const pools = poolsSchema.parse(value);
      this.#desired.remembered.set(service, new Map(pools.map((pool) => [pool.listener, membersOf(pool)])));
    });
  }

  get file(): DiskFile {
    return this.#records.file;
  }

  began(keys: ReadonlySet<string>): void {
    this.changed(keys);
  }

  changed(keys: ReadonlySet<string>): void {
    const desired = this.#desired;
    for (const key of keys) {
      const loadBalancer = desired.loadBalancers.get(key);
      const remembered = desired.remembered.get(key);
      // A load balancer without an address has no pools yet.
      const pools = loadBalancer?.listeners.length === 0 ? remembered : poolsOf(loadBalancer);
      if (pools !== remembered) desired.remembered.delete(key);
      this.#records.set(key, pools && jsonOf(pools));
    }
  }

  /** All objects are read: soon after, Services that disappeared while no agent ran are forgotten. */
  allKnown(): void {
    this.#clock.after(TRANSLATED_MS, () => this.#desired.remembered.clear());
  }

  /** Resolves after the last write. */
  async close(): Promise<void> {
    await this.#records.close();
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
