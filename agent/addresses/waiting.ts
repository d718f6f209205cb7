// Services that wait, by what they wait for, the oldest first: when something becomes free, only those who wait for
// it are looked at. Pure but for its own lists.

interface Waiter {
  readonly key: string;
  readonly created: number;
}

export class Waiting {
  /** What is waited for (`pool a`, `address 192.0.2.10`) → who waits, the oldest first. */
  readonly #lists = new Map<string, Waiter[]>();
  readonly #waiters = new Map<string, { readonly waiter: Waiter; readonly places: ReadonlySet<string> }>();

  /** Replaces what `key` waits for; nothing: []. */
  set(key: string, created: number, places: Iterable<string>): void {
    this.#clear(key);
    const waiter = { key, created };
    const wanted = new Set(places);
    if (wanted.size === 0) return;
    this.#waiters.set(key, { waiter, places: wanted });
    for (const place of wanted) {
      const list = this.#lists.get(place);
      if (list === undefined) this.#lists.set(place, [waiter]);
      else list.splice(position(list, waiter), 0, waiter);
    }
  }

  /** A copy: who waits may change while it is gone through. */
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

/** Of two that ask for the same, the older one comes first, then the first by name. */
export function byAge(a: Waiter, b: Waiter): number {
  if (a.created !== b.created) return a.created < b.created ? -1 : 1;
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}

/** Where the waiter is, or belongs. */
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
