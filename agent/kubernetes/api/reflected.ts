// What a reflector knows: the objects of one kind, and what each list or event makes different. An object is told
// apart by its UID, one that is unreadable keeps its last good value, and a list that lacks most of what was there is
// not believed until another one says the same.
// Owns the objects; no clock, no socket.

import { compactList } from '../../base/compact.ts';
import { sameValue } from '../../base/same-value.ts';
import { Slice } from '../../base/slice.ts';
import type { Problem } from '../../model/load-balancer.ts';
import { type ApiObject, apiObjectOf } from './watch-events.ts';

/** What every pruned object has. */
export interface Keyed {
  readonly key: string;
  readonly uid: string;
  readonly deleting?: boolean;
}

/** First remove, then upsert: an object that was deleted and made again is in both. */
export interface ReflectedChange<T> {
  readonly upserted: readonly T[];
  /** As they were last. */
  readonly removed: readonly T[];
}

/** At most one object. */
export type ParseObject<T> = (json: Readonly<Record<string, unknown>>) => {
  readonly objects: readonly T[];
  readonly problems: readonly Problem[];
};

interface Entry<T> {
  readonly uid: string;
  /** '' where it is of a snapshot. */
  readonly version: string;
  /** undefined where it has never been readable, or is nothing for us. */
  readonly object: T | undefined;
  readonly problems: readonly Problem[];
}

/** Up to so many objects may all but one go at once without a question. */
const FEW = 4;

export class Reflected<T extends Keyed> {
  readonly #parse: ParseObject<T>;
  readonly #weighs: (object: T) => boolean;
  #entries = new Map<string, Entry<T>>();
  /** Keys of what the last list lacked, but what still counts. */
  #doubted = new Set<string>();
  #problems: readonly Problem[] | undefined;

  /** `weighs`: objects whose loss would hurt; most of them must not go at once, either. */
  constructor(parse: ParseObject<T>, weighs: (object: T) => boolean = () => true) {
    this.#parse = parse;
    this.#weighs = weighs;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** How many objects still count although the last list lacked them. */
  get doubted(): number {
    return this.#doubted.size;
  }

  *objects(): Generator<T, void, void> {
    for (const { object } of this.#entries.values()) if (object !== undefined) yield object;
  }

  /** The same list as before unless one of them has changed. */
  get problems(): readonly Problem[] {
    this.#problems ??= [...this.#entries.values()].flatMap(({ problems }) => problems);
    return this.#problems;
  }

  uidOf(key: string): string | undefined {
    return this.#entries.get(key)?.uid;
  }

  /** What a snapshot holds, where nothing is known yet. */
  seed(objects: Iterable<T>): void {
    if (this.#entries.size > 0) return;
    for (const object of objects) {
      this.#entries.set(object.key, { uid: object.uid, version: '', object, problems: [] });
    }
  }

  /** undefined where nothing differs that anyone reads. */
  put(found: ApiObject): ReflectedChange<T> | undefined {
    const before = this.#entries.get(found.key);
    const now = this.#entryOf(found, before);
    const change = changeOf(before, now, before?.problems !== now.problems);
    // Nobody is told of a new value that equals the old one: kept, it would be a second one beside theirs.
    const isSame = change === undefined || change.upserted.length + change.removed.length === 0;
    this.#entries.set(found.key, isSame ? { ...now, object: before?.object } : now);
    this.#doubted.delete(found.key);
    if (before?.problems !== now.problems) this.#problems = undefined;
    return change;
  }

  /** undefined where there is no such object. */
  delete({ key }: ApiObject): ReflectedChange<T> | undefined {
    const before = this.#entries.get(key);
    if (before === undefined) return undefined;
    this.#entries.delete(key);
    this.#doubted.delete(key);
    if (before.problems.length > 0) this.#problems = undefined;
    return changeOf(before, undefined, before.problems.length > 0);
  }

  /** Takes a list item by item; what counts changes only at its end. */
  beginList(): ReflectedList<T> {
    const fresh = new Map<string, Entry<T>>();
    return {
      add: (text) => {
        const found = apiObjectOf(JSON.parse(text));
        if (found === undefined) throw new SyntaxError('An item of the list is no object');
        const before = this.#entries.get(found.key);
        const isSame =
          before?.uid === found.uid && before.version === found.resourceVersion && before.version !== '';
        fresh.set(found.key, isSame ? before : this.#entryOf(found, before));
      },
      end: (mayConfirm) => this.#replace(fresh, mayConfirm),
    };
  }

  async #replace(fresh: Map<string, Entry<T>>, mayConfirm: boolean): Promise<ReflectedChange<T>> {
    const upserted: T[] = [];
    const removed: T[] = [];
    const slice = new Slice();
    for (const [key, now] of fresh) {
      if (slice.isOver) await slice.breathe();
      const before = this.#entries.get(key);
      const change = changeOf(before, now, false);
      if (change === undefined) {
        // The old value keeps its identity.
        if (before !== undefined && before !== now) fresh.set(key, { ...now, object: before.object });
        continue;
      }
      upserted.push(...change.upserted);
      removed.push(...change.removed);
    }
    this.#doubted = this.#missing(fresh, mayConfirm);
    for (const [key, before] of this.#entries) {
      if (fresh.has(key)) continue;
      if (this.#doubted.has(key)) fresh.set(key, before);
      else if (before.object !== undefined) removed.push(before.object);
    }
    this.#entries = fresh;
    this.#problems = undefined;
    return { upserted, removed };
  }

  /** What the list lacks, but goes on counting until another list lacks it, too. */
  #missing(fresh: ReadonlyMap<string, unknown>, mayConfirm: boolean): Set<string> {
    const news = new Set<string>();
    const lost: T[] = [];
    const there: T[] = [];
    for (const [key, { object }] of this.#entries) {
      const isMissing = !fresh.has(key);
      // The second list says so.
      if (isMissing && mayConfirm && this.#doubted.has(key)) continue;
      if (isMissing) news.add(key);
      if (object === undefined) continue;
      there.push(object);
      if (isMissing) lost.push(object);
    }
    const isMuch =
      isMost(lost.length, there.length) ||
      isMost(lost.filter(this.#weighs).length, there.filter(this.#weighs).length);
    return isMuch ? news : new Set();
  }

  #entryOf({ json, uid, resourceVersion }: ApiObject, before: Entry<T> | undefined): Entry<T> {
    const { objects, problems } = this.#parse(json);
    const sameProblems = before !== undefined && sameValue(before.problems, problems);
    const last = before?.uid === uid ? before.object : undefined;
    return {
      uid,
      version: resourceVersion,
      object: objects[0] ?? (problems.length > 0 ? lastGood(last, json) : undefined),
      problems: sameProblems ? before.problems : compactList(problems),
    };
  }
}

export interface ReflectedList<T> {
  /** The JSON text of an item. Throws where it is none. */
  add(text: string): void;
  /**
   * `mayConfirm`: enough time has passed since the list before to believe this one where both lack the same.
   * What is held back is in `doubted` then.
   */
  end(mayConfirm: boolean): Promise<ReflectedChange<T>>;
}

/** That it is being deleted is never missed: its finalizer would hold it, and its namespace, until somebody mends it. */
function lastGood<T extends Keyed>(
  last: T | undefined,
  json: Readonly<Record<string, unknown>>,
): T | undefined {
  if (last?.deleting !== false) return last;
  const metadata = json.metadata as { readonly deletionTimestamp?: unknown } | null | undefined;
  return typeof metadata?.deletionTimestamp === 'string' ? { ...last, deleting: true } : last;
}

function changeOf<T extends Keyed>(
  before: Entry<T> | undefined,
  now: Entry<T> | undefined,
  problemsDiffer: boolean,
): ReflectedChange<T> | undefined {
  const [old, object] = [before?.object, now?.object];
  const isAnother = old !== undefined && (object === undefined || before?.uid !== now?.uid);
  const differs = isAnother || !sameValue(old, object);
  if (!differs) return problemsDiffer ? { upserted: [], removed: [] } : undefined;
  return { upserted: object === undefined ? [] : [object], removed: isAnother ? [old] : [] };
}

function isMost(lost: number, of: number): boolean {
  return lost > 0 && (lost === of || (of > FEW && lost > of / 2));
}
