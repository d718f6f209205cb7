// Keeps the status of each pool of the cluster up to date: whether it is ready, and how many of its addresses are free, used,
// held and conflicting. Selects the pools whose counts have changed; PoolStatusWriter writes them. An Event reports a pool
// that becomes ready, or is no longer.

import type { Addresses } from '../addresses/addresses.ts';
import { systemClock } from '../base/clock.ts';
import type { Log } from '../host/log.ts';
import {
  type AddressPool,
  type PoolCondition,
  type PoolProblem,
  poolCondition,
  poolStatusManifest,
  unreadPoolManifest,
} from '../kubernetes/address-pool.ts';
import type { KubernetesApi } from '../kubernetes/api/kubernetes-api.ts';
import { ADDRESS_API_VERSION } from '../kubernetes/object-names.ts';
import type { EventRecorder } from '../kubernetes/writers/events.ts';
import { PoolStatusWriter } from '../kubernetes/writers/pool-status-writer.ts';
import type { Problem } from '../model/load-balancer.ts';

export interface PoolReportsOptions {
  readonly addresses: Addresses;
  /** undefined without a cluster. */
  readonly api: KubernetesApi | undefined;
  readonly isLeader: () => boolean;
  /** undefined without a cluster. */
  readonly events: Pick<EventRecorder, 'record'> | undefined;
  readonly log: Log;
}

/** The beginning of `object` in the Problem of a pool. */
const POOL = 'AddressPool ';

export class PoolReports {
  readonly #addresses: Addresses;
  readonly #writer: PoolStatusWriter | undefined;
  /** Addresses whose claims have changed since the last write. */
  readonly #touched = new Set<string>();
  /** Name of a pool of the cluster that cannot be read → why. */
  #unreadable: ReadonlyMap<string, string> = new Map();
  /** Name → the last condition, and when it got its status. */
  readonly #conditions = new Map<string, PoolCondition & { readonly uid: string; readonly since: string }>();
  readonly #events: PoolReportsOptions['events'];

  constructor({ addresses, api, isLeader, events, log }: PoolReportsOptions) {
    this.#addresses = addresses;
    this.#events = events;
    this.#writer =
      api &&
      new PoolStatusWriter({
        api,
        clock: systemClock,
        log,
        isLeader,
        desired: (name) => this.#status(name),
      });
  }

  /** Why the status of a pool cannot be written, '' if it can. */
  get fault(): string {
    return this.#writer?.fault ?? '';
  }

  /** The claims on the address are changing. */
  touch(address: string): void {
    if (this.#writer !== undefined) this.#touched.add(address);
  }

  /** The pools of addresses that have been touched. */
  write(): void {
    this.#writer?.write([...this.#touched].flatMap((address) => this.#addresses.poolOf(address)?.name ?? []));
    this.#touched.clear();
  }

  writeAll(pools: Iterable<{ readonly name: string }>): void {
    this.#writer?.write([...[...pools].map(({ name }) => name), ...this.#unreadable.keys()]);
  }

  /** All present problems with objects of the API. */
  cannotRead(problems: readonly Problem[]): void {
    const before = this.#unreadable;
    const ofPools = problems.filter(({ object }) => object.startsWith(POOL));
    this.#unreadable = new Map(ofPools.map(({ object, message }) => [object.slice(POOL.length), message]));
    const names = [...before.keys(), ...this.#unreadable.keys()];
    this.#writer?.write(names.filter((name) => before.get(name) !== this.#unreadable.get(name)));
  }

  lead(leads: boolean): void {
    this.#writer?.lead(leads);
  }

  async close(): Promise<void> {
    await this.#writer?.close();
  }

  #status(name: string): object | undefined {
    const count = this.#addresses.countOf(name);
    const fault = this.#faultOf(name);
    // Pools of the settings and of manifests have no status.
    if (count !== undefined && count.pool.uid !== '')
      return poolStatusManifest(
        count.pool,
        count,
        fault,
        this.#since(name, poolCondition(count.pool, fault), count.pool),
      );
    if (fault?.state === 'Invalid')
      return unreadPoolManifest(name, fault, this.#since(name, poolCondition({ draining: false }, fault)));
    this.#conditions.delete(name);
    return undefined;
  }

  /** When the pool's condition got its status: as this agent has seen, or as an agent before it has written. */
  #since(name: string, condition: PoolCondition, pool?: AddressPool): string {
    const uid = pool?.uid ?? '';
    const last = this.#conditions.get(name);
    const own = last?.uid === uid ? last : undefined;
    const { status, reason, since } = own ?? { ...pool?.ready, since: pool?.ready?.lastTransitionTime };
    const kept = status === condition.status && since ? since : new Date(systemClock.wall()).toISOString();
    if (own?.message !== condition.message || own.reason !== condition.reason)
      this.#conditions.set(name, { ...condition, uid, since: kept });
    // The API server needs the UID of an Event's object, so a pool that was never readable has none.
    if (reason !== condition.reason && uid !== '')
      this.#events?.record(
        { apiVersion: ADDRESS_API_VERSION, kind: 'AddressPool', namespace: '', name, uid },
        {
          type: condition.status === 'True' ? 'Normal' : 'Warning',
          reason: condition.reason,
          action: 'Allocate',
          note: condition.message,
        },
      );
    return kept;
  }

  #faultOf(name: string): PoolProblem | undefined {
    const why = this.#unreadable.get(name);
    if (why !== undefined) return { state: 'Invalid', message: why };
    const overlaps = this.#addresses.poolProblems().filter(({ object }) => object === `${POOL}${name}`);
    if (overlaps.length === 0) return undefined;
    const isInvalid = overlaps.some(({ reason }) => reason === 'InvalidObject');
    return {
      state: isInvalid ? 'Invalid' : 'Conflicting',
      message: overlaps.map(({ message }) => message).join('; '),
    };
  }
}
