// Services that wait, by what they wait for, the oldest first: when something becomes free, only the Services that wait
// for it are decided again. Pure but for its own lists.

interface Waiter {
  readonly key: string;
  readonly created: number;
}

export class Waiting {
  /** `pool a`, `address 192.0.2.10`, `key k` → the Services that wait for it, the oldest first. */
  readonly #lists = new Map<string, Waiter[]>();
  readonly #waiters = new Map<string, { readonly waiter: Waiter; readonly places: ReadonlySet<string> }>();

  /** Replaces what the Service `key` waits for; [] for nothing. */
  set(key: string, created: number, places: Iterable<string>): void {
    this.#clear(key);
    const waiter = { key, created };
    const distinct = new Set(places);
    if (distinct.size === 0) return;
    this.#waiters.set(key, { waiter, places: distinct });
    for (const place of distinct) {
      const list = this.#lists.get(place);
      if (list === undefined) this.#lists.set(place, [waiter]);
      else list.splice(position(list, waiter), 0, waiter);
    }
  }

  /** A copy: the list may change during the iteration. */
  at(place: string): readonly string[] {
    return (this.#lists.get(place) ?? []).map(({ key }) => key);
  }

  #clear(key: string): void {
    const known = this.#waiters.get(key);
    if (known === undefined) return;
    this.#waiters.delete(key);
    for (const place of known.places) {
      const list = this.#lists.get(place) ?? [];
      if (list.length <= 1) this.#lists.delete(place);
      else list.splice(position(list, known.waiter), 1);
    }
  }
}

/** The older Service first, then by name. */
export function byAge(a: Waiter, b: Waiter): number {
  if (a.created !== b.created) return a.created < b.created ? -1 : 1;
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}

/** The place of the waiter in the list, or where it belongs. */
function position(list: readonly Waiter[], waiter: Waiter): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = list[middle];
    if (other !== undefined && byAge(other, waiter) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
