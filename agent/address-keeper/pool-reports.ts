// Tells the status of each pool of the cluster how many of its addresses are free, used, held and conflicting.
// Knows which pools' counts have changed; the writing is PoolStatusWriter's.

import type { Addresses } from '../addresses.ts';
import { systemClock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import { poolStatusManifest } from '../kubernetes/address-objects.ts';
import type { KubernetesApi } from '../kubernetes/api/kubernetes-api.ts';
import { PoolStatusWriter } from '../kubernetes/writers/pool-status-writer.ts';

export interface PoolReportsOptions {
  readonly addresses: Addresses;
  /** undefined: there is no cluster to tell. */
  readonly api: KubernetesApi | undefined;
  readonly isLeader: () => boolean;
  readonly log: Log;
}

export class PoolReports {
  readonly #addresses: Addresses;
  readonly #writer: PoolStatusWriter | undefined;
  /** Addresses of which the status of their pools has yet to tell. */
  readonly #touched = new Set<string>();

  constructor({ addresses, api, isLeader, log }: PoolReportsOptions) {
    this.#addresses = addresses;
    this.#writer =
      api &&
      new PoolStatusWriter({
        api,
        clock: systemClock,
        log,
        isLeader,
        wanted: (name) => this.#status(name),
      });
  }

  /** Why the status of a pool cannot be written, '' where it can. */
  get fault(): string {
    return this.#writer?.fault ?? '';
  }

  /** The claims on the address are changing. */
  touch(address: string): void {
    if (this.#writer !== undefined) this.#touched.add(address);
  }

  /** What has been touched since. */
  tell(): void {
    this.#writer?.write([...this.#touched].flatMap((address) => this.#addresses.poolOf(address)?.name ?? []));
    this.#touched.clear();
  }

  tellAll(pools: Iterable<{ readonly name: string }>): void {
    this.#writer?.write([...pools].map(({ name }) => name));
  }

  lead(leads: boolean): void {
    this.#writer?.lead(leads);
  }

  async close(): Promise<void> {
    await this.#writer?.close();
  }

  #status(name: string): object | undefined {
    const count = this.#addresses.countOf(name);
    // Pools of the settings and of manifests have no status.
    if (count === undefined || count.pool.uid === '') return undefined;
    const overlaps = this.#addresses.poolProblems().filter(({ object }) => object === `AddressPool ${name}`);
    return poolStatusManifest(count.pool, count, overlaps.map(({ message }) => message).join('; '));
  }
}
