// Decides which owner may listen on an address, protocol and port that several owners request: an owner that overrules the
// others, then the one that has the port, then the lowest rank, then the oldest, then the first by name. The order of the
// updates between two calls of settle() does not matter. A change costs only the requests that it concerns.

import type { OwnerKey, Protocol } from './load-balancer.ts';

export interface PortAddress {
  readonly address: string;
  readonly protocol: Protocol;
  readonly port: number;
}

export interface PortRequest extends PortAddress {
  /** Has precedence also over the owner that has the port, unless that owner overrules, too. */
  readonly overrules: boolean;
  /** The lowest rank has precedence, whatever the age. */
  readonly rank: number;
}

interface Request extends PortRequest {
  /** `address protocol port`. */
  readonly text: string;
  readonly owner: OwnerKey;
  readonly created: number;
}

export class PortOwners {
  /** By `address protocol port`; the first request of a list has the port. */
  readonly #requests = new Map<string, readonly Request[]>();
  readonly #byOwner = new Map<OwnerKey, readonly Request[]>();
  /** Key: a port that has changed since settle(), or that an earlier agent has recorded; value: the owner that has it. */
  readonly #holders = new Map<string, OwnerKey | undefined>();
  readonly #changed = new Set<string>();

  /** The owner has had the port before the first update. */
  remember(owner: OwnerKey, port: PortAddress): void {
    this.#holders.set(portText(port), owner);
  }

  /** All updates of one round are made: the owners that have the ports now keep them against later requests. */
  settle(): void {
    for (const port of this.#changed) this.#holders.delete(port);
    this.#changed.clear();
  }

  /**
   * Replaces the requests of `owner` and returns the other owners that gained or lost a port.
   * `created`: milliseconds since the epoch, Infinity if unknown.
   */
  update(owner: OwnerKey, created: number, requests: readonly PortRequest[]): ReadonlySet<OwnerKey> {
    const before = byPort(this.#byOwner.get(owner) ?? []);
    const after = byPort(
      requests.map((request) => ({ ...request, text: portText(request), owner, created })),
    );
    const affected = new Set<OwnerKey>();
    for (const [port, request] of before) {
      const next = after.get(port);
      if (isSame(request, next)) continue;
      this.#touch(port);
      // An owner that is created again is another one.
      if (next?.created !== created || request.created !== created) this.#lose(port, owner);
      this.#remove(port, owner, affected);
    }
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

  /** The ports that `owner` has. */
  portsOf(owner: OwnerKey): readonly PortAddress[] {
    return (this.#byOwner.get(owner) ?? [])
      .filter(({ text }) => this.#requests.get(text)?.[0]?.owner === owner)
      .map(({ address, protocol, port }) => ({ address, protocol, port }));
  }

  #touch(port: string): void {
    this.#changed.add(port);
    if (!this.#holders.has(port)) this.#holders.set(port, this.#requests.get(port)?.[0]?.owner);
  }

  #lose(port: string, owner: OwnerKey): void {
    if (this.#holders.get(port) === owner) this.#holders.set(port, undefined);
  }

  #add(request: Request, affected: Set<OwnerKey>): void {
    const { text: port } = request;
    this.#touch(port);
    const before = this.#requests.get(port) ?? [];
    const holder = this.#holders.get(port);
    this.#set(port, before, [...before, request].sort(byPrecedence(holder)), affected);
  }

  #remove(port: string, owner: OwnerKey, affected: Set<OwnerKey>): void {
    const before = this.#requests.get(port) ?? [];
    const others = before.filter((request) => request.owner !== owner);
    this.#set(port, before, others.sort(byPrecedence(this.#holders.get(port))), affected);
  }

  #set(port: string, before: readonly Request[], after: readonly Request[], affected: Set<OwnerKey>): void {
    if (after.length === 0) this.#requests.delete(port);
    // slice(), because V8 leaves room in a list that was built by pushing.
    else this.#requests.set(port, after.slice());
    if (before[0]?.owner !== after[0]?.owner) for (const { owner } of after) affected.add(owner);
  }
}

function byPort(requests: readonly Request[]): Map<string, Request> {
  return new Map(requests.map((request) => [request.text, request]));
}

function portText({ address, protocol, port }: PortAddress): string {
  return [address, protocol, port].join(' ');
}

function isSame(request: Request, other: Request | undefined): boolean {
  return (
    request.overrules === other?.overrules && request.rank === other.rank && request.created === other.created
  );
}

/** `holder`: the owner that has the port. */
function byPrecedence(holder: OwnerKey | undefined): (a: Request, b: Request) => number {
  return (a, b) => {
    if (a.overrules !== b.overrules) return a.overrules ? -1 : 1;
    if (a.owner === holder || b.owner === holder) return a.owner === holder ? -1 : 1;
    if (a.rank !== b.rank) return a.rank - b.rank;
    if (a.created !== b.created) return a.created < b.created ? -1 : 1;
    return a.owner < b.owner ? -1 : 1;
  };
}
