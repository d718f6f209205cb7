// Which pools of Services the routes use: a pool exists while a route sends to it. Only translation changes it.

import type { MemberTls, OwnerKey } from './load-balancer.ts';

/** One port of a pool. */
export interface PoolUse {
  /** `pool:default/web`. */
  readonly pool: OwnerKey;
  /** A port of the Service. */
  readonly port: number;
  /** The Secret with the certificate that members get, `default/edge-client`, the same in all uses of a pool; absent: none. */
  readonly certificate?: string | undefined;
  /** Likewise; absent: what the Service and its policies say. */
  readonly tls?: AskedTls;
}

/** TLS to members as an Ingress asks for it. */
export interface AskedTls extends Pick<MemberTls, 'serverName' | 'versions' | 'ciphers'> {
  /** With authorities, or with the certificate that members get, or with both: `default/members`; '' for none. */
  readonly secret: string;
  readonly isVerified: boolean;
  /** The most intermediate certificates of a member's chain; absent: as many as OpenSSL takes. */
  readonly depth?: number;
}

const NONE: readonly never[] = [];

export class PoolUses {
  /** Counts the changes, for those who keep what follows from the uses. */
  changes = 0;
  readonly #usesOf = new Map<OwnerKey, readonly PoolUse[]>();
  /** Pool → port → how many owners use it. */
  readonly #counts = new Map<OwnerKey, Map<number, number>>();
  /** Pool → owners that use it. */
  readonly #users = new Map<OwnerKey, Set<OwnerKey>>();
  /** By pool. */
  readonly #certificates = new Map<OwnerKey, string>();
  /** By pool. */
  readonly #asked = new Map<OwnerKey, AskedTls>();

  /** Replaces what an owner uses, each at most once. Returns the pools that gained or lost a port. */
  update(user: OwnerKey, uses: readonly PoolUse[]): ReadonlySet<OwnerKey> {
    const before = this.#usesOf.get(user) ?? NONE;
    const changed = new Set<OwnerKey>();
    if (before === uses) return changed;
    this.changes++;
    for (const use of uses) {
      if (this.#count(use, 1) === 1) changed.add(use.pool);
      if (use.certificate !== undefined) this.#certificates.set(use.pool, use.certificate);
      if (use.tls !== undefined) this.#asked.set(use.pool, use.tls);
    }
    for (const use of before) if (this.#count(use, -1) === 0) changed.add(use.pool);
    this.#follow(user, before, uses);
    if (uses.length === 0) this.#usesOf.delete(user);
    else this.#usesOf.set(user, uses);
    return changed;
  }

  /** The uses of one owner, such as a Gateway. */
  usesOf(user: OwnerKey): readonly PoolUse[] {
    return this.#usesOf.get(user) ?? NONE;
  }

  /** The owners whose routes send to the pool. */
  usersOf(pool: OwnerKey): Iterable<OwnerKey> {
    return this.#users.get(pool) ?? NONE;
  }

  #follow(user: OwnerKey, before: readonly PoolUse[], now: readonly PoolUse[]): void {
    const pools = new Set(now.map(({ pool }) => pool));
    for (const pool of pools) {
      const users = this.#users.get(pool) ?? new Set<OwnerKey>();
      this.#users.set(pool, users.add(user));
    }
    for (const { pool } of before) {
      const users = this.#users.get(pool);
      if (pools.has(pool) || users === undefined) continue;
      users.delete(user);
      if (users.size === 0) this.#users.delete(pool);
    }
  }

  /** The uses of a pool by all owners, each port of each owner once. */
  countOf(pool: OwnerKey): number {
    let count = 0;
    for (const each of this.#counts.get(pool)?.values() ?? NONE) count += each;
    return count;
  }

  /** Sorted. */
  portsOf(pool: OwnerKey): readonly number[] {
    return [...(this.#counts.get(pool)?.keys() ?? NONE)].sort((a, b) => a - b);
  }

  /** The Secret; undefined if members get no certificate. */
  certificateOf(pool: OwnerKey): string | undefined {
    return this.#certificates.get(pool);
  }

  tlsOf(pool: OwnerKey): AskedTls | undefined {
    return this.#asked.get(pool);
  }

  #count({ pool, port }: PoolUse, change: 1 | -1): number {
    const ports = this.#counts.get(pool) ?? new Map<number, number>();
    const count = (ports.get(port) ?? 0) + change;
    if (count === 0) ports.delete(port);
    else ports.set(port, count);
    if (ports.size > 0) this.#counts.set(pool, ports);
    else {
      this.#counts.delete(pool);
      this.#certificates.delete(pool);
      this.#asked.delete(pool);
    }
    return count;
  }
}
