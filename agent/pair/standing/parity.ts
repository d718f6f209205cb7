// Digests of what is desired and of what HAProxy is proved to serve, to be compared with those of the other host.
// Each is a sum over all load balancers, so that a change costs as much as the load balancers that it changes.

import { hash } from 'node:crypto';
import { Slice } from '../../base/slice.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';

export interface ParityOptions {
  /** The desired state by key. */
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  /** What HAProxy serves of a load balancer, `undefined` for nothing; `pending` where something is still to be done. */
  readonly served: (key: string) => LoadBalancer | 'pending' | undefined;
}

export class Parity {
  readonly #options: ParityOptions;
  readonly #model = new DigestSum();
  readonly #running = new DigestSum();
  readonly #marked = new Set<string>();
  readonly #pending = new Set<string>();
  #settling: Promise<void> | undefined;

  constructor(options: ParityOptions) {
    this.#options = options;
  }

  /** Something may have changed in these load balancers, or in what HAProxy serves of them. */
  mark(keys: Iterable<string>): void {
    for (const key of keys) this.#marked.add(key);
  }

  /** Whether the digests say how it is now. */
  get isSettled(): boolean {
    return this.#marked.size === 0;
  }

  /** Brings the digests to how it is now, in slices. */
  settle(): Promise<void> {
    this.#settling ??= this.#settle();
    return this.#settling;
  }

  /** 32 hex digits. */
  get model(): string {
    return this.#model.text;
  }

  /** Equal to `model` where HAProxy serves everything as it is desired. */
  get running(): string {
    return this.#running.text;
  }

  /** How many load balancers HAProxy does not serve as it should yet. */
  get pending(): number {
    return this.#pending.size;
  }

  async #settle(): Promise<void> {
    const { desired, served } = this.#options;
    const slice = new Slice();
    await slice.breathe();
    for (const key of this.#marked) {
      this.#marked.delete(key);
      this.#model.put(key, desired.get(key));
      const now = served(key);
      // What is only half done counts as it was before.
      if (now === 'pending') {
        this.#pending.add(key);
      } else {
        this.#pending.delete(key);
        this.#running.put(key, now);
      }
      if (slice.isOver) await slice.breathe();
    }
    this.#settling = undefined;
  }
}

/** A sum of digests does not depend on the order in which its terms came. Modulo 2 to the power of 128. */
class DigestSum {
  readonly #terms = new Map<string, LoadBalancer>();
  #sum = 0n;

  put(key: string, loadBalancer: LoadBalancer | undefined): void {
    const before = this.#terms.get(key);
    if (before === loadBalancer) return;
    if (before !== undefined) this.#sum -= digestOf(before);
    if (loadBalancer === undefined) {
      this.#terms.delete(key);
    } else {
      this.#terms.set(key, loadBalancer);
      this.#sum += digestOf(loadBalancer);
    }
    this.#sum = BigInt.asUintN(128, this.#sum);
  }

  get text(): string {
    return this.#sum.toString(16).padStart(32, '0');
  }
}

const digests = new WeakMap<LoadBalancer, bigint>();

/** Problems are left out: they do not change what is served. */
function digestOf(loadBalancer: LoadBalancer): bigint {
  let digest = digests.get(loadBalancer);
  if (digest === undefined) {
    const { key, vips, listeners } = loadBalancer;
    const addresses = vips.map(({ address }) => address);
    digest = BigInt(`0x${hash('sha256', JSON.stringify([key, addresses, listeners])).slice(0, 32)}`);
    digests.set(loadBalancer, digest);
  }
  return digest;
}
