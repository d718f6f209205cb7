// Decides which owner may listen on an address, protocol and port that several owners request: the lowest rank, then the
// oldest, then the first by name. An index of requests; a change costs only the requests that it concerns.

import type { OwnerKey, Protocol } from './load-balancer.ts';

export interface PortAddress {
  readonly address: string;
  readonly protocol: Protocol;
  readonly port: number;
}

export interface PortRequest extends PortAddress {
  /** The lowest rank has precedence, whatever the age. */
  readonly rank: number;
}

interface Request {
  /** `address protocol port`. */
  readonly port: string;
  readonly owner: OwnerKey;
  readonly rank: number;
  readonly created: number;
}

export class PortOwners {
  /** By `address protocol port`; the first request of a list has the port. */
  readonly #requests = new Map<string, readonly Request[]>();
  readonly #byOwner = new Map<OwnerKey, readonly Request[]>();

  /**
   * Replaces the requests of `owner` and returns the other owners that gained or lost a port.
   * `created`: milliseconds since the epoch, Infinity if unknown.
   */
  update(owner: OwnerKey, created: number, requests: readonly PortRequest[]): ReadonlySet<OwnerKey> {
    const before = byPort(this.#byOwner.get(owner) ?? []);
    const after = byPort(requests.map((each) => ({ port: portText(each), owner, rank: each.rank, created })));
    const affected = new Set<OwnerKey>();
    for (const [port, request] of before)
      if (!isSame(request, after.get(port))) this.#remove(port, owner, affected);
    for (const [port, request] of after) if (!isSame(request, before.get(port))) this.#add(request, affected);
    if (after.size === 0) this.#byOwner.delete(owner);
    else this.#byOwner.set(owner, [...after.values()]);
    affected.delete(owner);
    return affected;
  }

  /** undefined if no owner requests it. */
  ownerOf(port: PortAddress): OwnerKey | undefined {
    return this.#requests.get(portText(port))?.[0]?.owner;
  }

  #add(request: Request, affected: Set<OwnerKey>): void {
    const before = this.#requests.get(request.port) ?? [];
    this.#set(request.port, before, [...before, request].sort(bySeniority), affected);
  }

  #remove(port: string, owner: OwnerKey, affected: Set<OwnerKey>): void {
    const before = this.#requests.get(port) ?? [];
    this.#set(
      port,
      before,
      before.filter((request) => request.owner !== owner),
      affected,
    );
  }

  #set(port: string, before: readonly Request[], after: readonly Request[], affected: Set<OwnerKey>): void {
    if (after.length === 0) this.#requests.delete(port);
    // slice(), because V8 leaves room in a list that was built by pushing.
    else this.#requests.set(port, after.slice());
    if (before[0]?.owner !== after[0]?.owner) for (const { owner } of after) affected.add(owner);
  }
}

function byPort(requests: readonly Request[]): Map<string, Request> {
  return new Map(requests.map((request) => [request.port, request]));
}

function portText({ address, protocol, port }: PortAddress): string {
  return [address, protocol, port].join(' ');
}

function isSame(request: Request, other: Request | undefined): boolean {
  return request.rank === other?.rank && request.created === other.created;
}

function bySeniority(a: Request, b: Request): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  if (a.created !== b.created) return a.created < b.created ? -1 : 1;
  return a.owner < b.owner ? -1 : 1;
}
