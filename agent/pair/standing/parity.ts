// For parity: digests of the desired state and of what HAProxy is proved to serve, to be compared with those of the peer.
// Each is a sum over all load balancers, so that the work is proportional to the change.
// Why: docs/design/decisions/0009-parity-is-a-sum.md

import { hash } from 'node:crypto';
import { memoByIdentity } from '../../base/memo.ts';
import { handleInSlices } from '../../base/slice.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';

export interface ParityOptions {
  /** The desired state by key. */
  readonly desired: ReadonlyMap<string, LoadBalancer>;
  /** What HAProxy serves of a load balancer; undefined for nothing; `pending` during a change. */
  readonly served: (key: string) => LoadBalancer | 'pending' | undefined;
}

/** The digests of a host, as Parity has them. */
export interface Digests {
  readonly model: string;
  readonly running: string;
}

export class Parity implements Digests {
  readonly #options: ParityOptions;
  readonly #model = new DigestSum();
  readonly #running = new DigestSum();
  readonly #marked = new Set<string>();
  readonly #pending = new Set<string>();
  readonly #settle: () => Promise<void>;

  constructor(options: ParityOptions) {
    this.#options = options;
    this.#settle = handleInSlices(this.#marked, (key) => this.#update(key));
  }

  /** These load balancers may have changed, or what HAProxy serves of them. */
  mark(keys: Iterable<string>): void {
    for (const key of keys) this.#marked.add(key);
  }

  /** The digests are up to date. */
  get isSettled(): boolean {
    return this.#marked.size === 0;
  }

  /** Brings the digests up to date, in slices. */
  settle(): Promise<void> {
    return this.#settle();
  }

  /** 32 hex digits. */
  get model(): string {
    return this.#model.text;
  }

  /** Equal to `model` if HAProxy serves everything as desired. */
  get running(): string {
    return this.#running.text;
  }

  /** How many load balancers HAProxy does not serve as desired yet. */
  get pending(): number {
    return this.#pending.size;
  }

  /**
   * Both hosts serve the same, this load balancer included: the digests have what is served of it here, which they get
   * later than others learn it. Until then they may be equal because both hosts lack it.
   */
  isServedAlike(key: string, peer: Digests | undefined): boolean {
    const { desired, served } = this.#options;
    const now = served(key);
    if (now === undefined || now === 'pending' || !this.#running.has(key, now)) return false;
    if (!this.#model.has(key, desired.get(key))) return false;
    return peer?.model === this.model && peer.running === this.running;
  }

  #update(key: string): void {
    const { desired, served } = this.#options;
    this.#model.put(key, desired.get(key));
    const now = served(key);
    // During a change the load balancer counts as it was before.
    if (now === 'pending') {
      this.#pending.add(key);
      return;
    }
    this.#pending.delete(key);
    this.#running.put(key, now);
  }
}

/** The sum of the digests, modulo 2 to the power of 128: it does not depend on their order. */
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

  has(key: string, loadBalancer: LoadBalancer | undefined): boolean {
    return this.#terms.get(key) === loadBalancer;
  }

  get text(): string {
    return this.#sum.toString(16).padStart(32, '0');
  }
}

/** Problems are left out: they do not change what is served. */
const digestOf = memoByIdentity(({ key, vips, listeners }: LoadBalancer): bigint => {
  const addresses = vips.map(({ address }) => address);
  return BigInt(`0x${hash('sha256', JSON.stringify([key, addresses, listeners])).slice(0, 32)}`);
});
