// The pool that owns an address: the first one, by priority and name, that has it in a block. Works with ranges, so that
// the size of a pool does not matter. Pure; built again when a pool changes.

import { familyOf } from '../base/ip.ts';
import { type AddressRange, addressNumber, rangeText } from '../base/ip-range.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import type { Family, Problem } from '../model/load-balancer.ts';

/** The addresses of one pool and family. */
interface Share {
  /** Disjoint, ascending. */
  readonly owned: readonly AddressRange[];
  /** For each range: how many addresses the ranges before it have. */
  readonly before: readonly bigint[];
  /** Owned addresses. */
  readonly size: bigint;
  /** Addresses in its blocks, owned or not. */
  readonly total: bigint;
}

const FAMILIES = ['v4', 'v6'] as const;

export class PoolIndex {
  /** In the order of precedence. */
  readonly all: readonly AddressPool[];
  /** Pools that overlap, and pools with the same name. */
  readonly problems: readonly Problem[];
  /** Clients do not use the addresses of these. */
  readonly withPublic: readonly AddressPool[];
  readonly #byName = new Map<string, AddressPool>();
  readonly #shares = new Map<AddressPool, Readonly<Record<Family, Share>>>();
  /** All owned ranges, ascending. */
  readonly #owners: Record<Family, (AddressRange & { readonly pool: AddressPool })[]> = { v4: [], v6: [] };

  constructor(pools: readonly AddressPool[]) {
    const problems: Problem[] = [];
    this.all = withoutDoubles(pools, problems).sort(byPrecedence);
    this.withPublic = this.all.filter((pool) => pool.public !== undefined);
    const taken: PoolRanges[] = [];
    for (const pool of this.all) {
      this.#byName.set(pool.name, pool);
      const ranges = { v4: merged(pool, 'v4'), v6: merged(pool, 'v6') };
      for (const earlier of taken) problems.push(...overlapProblems(earlier, { pool, ranges }));
      this.#shares.set(pool, { v4: this.#own(pool, ranges.v4, 'v4'), v6: this.#own(pool, ranges.v6, 'v6') });
      taken.push({ pool, ranges });
    }
    this.problems = problems;
  }

  byName(name: string): AddressPool | undefined {
    return this.#byName.get(name);
  }

  /** `address`: canonical. */
  ownerOf(address: string): AddressPool | undefined {
    const number = addressNumber(address);
    const owners = this.#owners[familyOf(address)];
    const at = lastAtMost(owners.length, (i) => (owners[i]?.first ?? 0n) <= number);
    const range = owners[at];
    return range !== undefined && number <= range.last ? range.pool : undefined;
  }

  /** How many addresses the pool owns. */
  size(pool: AddressPool, family: Family): bigint {
    return this.#shares.get(pool)?.[family].size ?? 0n;
  }

  /** How many addresses its blocks have, also those that another pool owns. */
  total(pool: AddressPool, family: Family): bigint {
    return this.#shares.get(pool)?.[family].total ?? 0n;
  }

  /** Each address of the pool once, as a number: from the one at `hash` to the last, then from the first. */
  *probe(pool: AddressPool, family: Family, hash: bigint): Generator<bigint> {
    const share = this.#shares.get(pool)?.[family];
    if (share === undefined || share.size === 0n) return;
    const start = hash % share.size;
    const first = lastAtMost(share.owned.length, (i) => (share.before[i] ?? 0n) <= start);
    for (let step = 0; step <= share.owned.length; step++) {
      const at = (first + step) % share.owned.length;
      const range = share.owned[at];
      if (range === undefined) return;
      const pivot = range.first + (start - (share.before[first] ?? 0n));
      const from = step === 0 ? pivot : range.first;
      const to = step === share.owned.length ? pivot - 1n : range.last;
      for (let number = from; number <= to; number++) yield number;
    }
  }

  /** Assigns the addresses that no earlier pool owns. */
  #own(pool: AddressPool, ranges: readonly AddressRange[], family: Family): Share {
    const owners = this.#owners[family];
    const owned = ranges.flatMap((range) => without(range, owners));
    owners.push(...owned.map((range) => ({ ...range, pool })));
    owners.sort(byFirst);
    const before: bigint[] = [];
    let size = 0n;
    for (const range of owned) {
      before.push(size);
      size += sizeOf(range);
    }
    return { owned, before, size, total: ranges.reduce((sum, range) => sum + sizeOf(range), 0n) };
  }
}

function byPrecedence(a: AddressPool, b: AddressPool): number {
  if (a.priority !== b.priority) return b.priority - a.priority;
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

function withoutDoubles(pools: readonly AddressPool[], problems: Problem[]): AddressPool[] {
  const byName = new Map<string, AddressPool>();
  for (const source of ['settings', 'api'] as const) {
    for (const pool of pools) {
      if (pool.source !== source) continue;
      if (!byName.has(pool.name)) byName.set(pool.name, pool);
      else {
        const message = `Cannot use AddressPool ${pool.name}: the settings have a pool of this name`;
        problems.push({ object: `AddressPool ${pool.name}`, reason: 'DuplicateObject', message });
      }
    }
  }
  return [...byName.values()];
}

function merged(pool: AddressPool, family: Family): readonly AddressRange[] {
  const ranges = pool.blocks.filter((block) => block.family === family).sort(byFirst);
  const result: AddressRange[] = [];
  for (const range of ranges) {
    const last = result.at(-1);
    if (last === undefined || range.first > last.last + 1n) result.push(range);
    else if (range.last > last.last) result[result.length - 1] = { ...last, last: range.last };
  }
  return result;
}

/** The parts of `range` that are not in `taken` (disjoint, ascending). */
function without(range: AddressRange, taken: readonly AddressRange[]): AddressRange[] {
  const left: AddressRange[] = [];
  let { first } = range;
  const start = lastAtMost(taken.length, (at) => (taken[at]?.first ?? 0n) <= first);
  for (const other of taken.slice(Math.max(0, start))) {
    if (other.first > range.last) break;
    if (other.last < first) continue;
    if (other.first > first) left.push({ ...range, first, last: other.first - 1n });
    first = other.last + 1n;
  }
  if (first <= range.last) left.push({ ...range, first });
  return left;
}

interface PoolRanges {
  readonly pool: AddressPool;
  readonly ranges: Readonly<Record<Family, readonly AddressRange[]>>;
}

function overlapProblems(winner: PoolRanges, loser: PoolRanges): Problem[] {
  const common = FAMILIES.flatMap((family) => intersection(winner.ranges[family], loser.ranges[family]));
  const [first] = common;
  if (first === undefined) return [];
  const more = common.length > 1 ? ` and ${common.length - 1} more blocks` : '';
  const problem = (own: AddressPool, other: AddressPool): Problem => ({
    object: `AddressPool ${own.name}`,
    reason: 'PoolsOverlap',
    message: `Overlaps AddressPool ${other.name} in ${rangeText(first)}${more}: these addresses belong to ${winner.pool.name}`,
  });
  return [problem(winner.pool, loser.pool), problem(loser.pool, winner.pool)];
}

function intersection(a: readonly AddressRange[], b: readonly AddressRange[]): AddressRange[] {
  const common: AddressRange[] = [];
  for (let i = 0, j = 0; ; ) {
    const one = a[i];
    const other = b[j];
    if (one === undefined || other === undefined) return common;
    // biome-ignore lint/complexity/useMathMinMax: Math.max does not take a bigint
    const first = one.first > other.first ? one.first : other.first;
    // biome-ignore lint/complexity/useMathMinMax: Math.min does not take a bigint
    const last = one.last < other.last ? one.last : other.last;
    if (first <= last) common.push({ ...one, first, last });
    if (one.last < other.last) i++;
    else j++;
  }
}

function sizeOf({ first, last }: AddressRange): bigint {
  return last - first + 1n;
}

function byFirst(a: AddressRange, b: AddressRange): number {
  return a.first < b.first ? -1 : a.first > b.first ? 1 : 0;
}

/** Binary search: the last index for which `holds`, which must not hold again after the first index that fails; or -1. */
function lastAtMost(length: number, holds: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
