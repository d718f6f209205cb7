// The objects of one kind, and the difference that each list or event makes. The UID identifies an object; an unreadable
// object keeps its last good value; a list that lacks most of the objects counts only when a second list confirms it.
// Owns the objects; no clock, no socket.

import { compactList } from '../../base/compact.ts';
import { sameValue } from '../../base/same-value.ts';
import { Slice } from '../../base/slice.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { CurrentObject } from '../current-object.ts';
import type { CurrentService } from '../current-service.ts';
import type { CurrentReports } from '../host-report.ts';
import { type ApiObject, apiObjectOf } from './watch-events.ts';

export interface Keyed {
  readonly key: string;
  readonly uid: string;
  readonly deleting?: boolean;
}

/** First remove, then upsert: an object that was deleted and created again is in both. */
export interface ReflectedChange<T> {
  readonly upserted: readonly T[];
  /** Their last values. */
  readonly removed: readonly T[];
}

/** At most one object. */
export type ParseObject<T> = (json: Readonly<Record<string, unknown>>) => {
  readonly objects: readonly T[];
  readonly problems: readonly Problem[];
  /** The status of an object whose status the agent writes. */
  readonly current?: Current | undefined;
};

export type Current = CurrentService | CurrentObject | CurrentReports;

interface Entry<T> {
  readonly uid: string;
  /** '' if it comes from a snapshot. */
  readonly version: string;
  /** undefined if it has never been readable, or is ignored. */
  readonly object: T | undefined;
  readonly problems: readonly Problem[];
  readonly current: Current | undefined;
}

/** The loss of all but one of so few objects needs no confirmation. */
const FEW_OBJECTS = 4;

export class Reflected<T extends Keyed> {
  readonly #parse: ParseObject<T>;
  readonly #weighs: (object: T) => boolean;
  readonly #onCurrent: (key: string) => void;
  #entries = new Map<string, Entry<T>>();
  /** Keys of objects that still count although the last list lacked them. */
  #doubted = new Set<string>();
  #problems: readonly Problem[] | undefined;

  /**
   * `weighs`: objects that serve traffic; the loss of most of these needs a confirmation, too.
   * `onCurrent`: the API has shown a new version of the object, see `current()`.
   */
  constructor(
    parse: ParseObject<T>,
    weighs: (object: T) => boolean = () => true,
    onCurrent: (key: string) => void = () => undefined,
  ) {
    this.#parse = parse;
    this.#weighs = weighs;
    this.#onCurrent = onCurrent;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The number of objects that still count although the last list lacked them. */
  get doubted(): number {
    return this.#doubted.size;
  }

  *objects(): Generator<T, void, void> {
    for (const { object } of this.#entries.values()) if (object !== undefined) yield object;
  }

  /** The same list as before unless a problem has changed. */
  get problems(): readonly Problem[] {
    this.#problems ??= [...this.#entries.values()].flatMap(({ problems }) => problems);
    return this.#problems;
  }

  uidOf(key: string): string | undefined {
    return this.#entries.get(key)?.uid;
  }

  /** The object as the API has shown it last. */
  current(key: string): Current | undefined {
    return this.#entries.get(key)?.current;
  }

  /** The objects of a snapshot; ignored if there are objects already. */
  seed(objects: Iterable<T>): void {
    if (this.#entries.size > 0) return;
    for (const object of objects) {
      const { key, uid } = object;
      this.#entries.set(key, { uid, version: '', object, problems: [], current: undefined });
    }
  }

  /** undefined if neither the parsed object nor its problems differ. */
  put(found: ApiObject): ReflectedChange<T> | undefined {
    const before = this.#entries.get(found.key);
    const now = this.#entryOf(found, before);
    const change = changeOf(before, now, before?.problems !== now.problems);
    // An equal value is not reported, so the old one, which the receivers have, stays.
    const isSame = change === undefined || change.upserted.length + change.removed.length === 0;
    this.#entries.set(found.key, isSame ? { ...now, object: before?.object } : now);
    this.#doubted.delete(found.key);
    if (before?.problems !== now.problems) this.#problems = undefined;
    if (now.current !== undefined) this.#onCurrent(found.key);
    return change;
  }

  /** undefined if there is no such object. */
  delete({ key }: ApiObject): ReflectedChange<T> | undefined {
    const before = this.#entries.get(key);
    if (before === undefined) return undefined;
    this.#entries.delete(key);
    this.#doubted.delete(key);
    if (before.problems.length > 0) this.#problems = undefined;
    return changeOf(before, undefined, before.problems.length > 0);
  }

  /** Takes a list item by item; the objects change only at its end. */
  beginList() {
    const fresh = new Map<string, Entry<T>>();
    return {
      /** The JSON text of an item. Errors: SyntaxError. */
      add: (text: string): void => {
        const found = apiObjectOf(JSON.parse(text));
        if (found === undefined) throw new SyntaxError('An item of the list is not an object');
        const before = this.#entries.get(found.key);
        const isSame =
          before?.uid === found.uid && before.version === found.resourceVersion && before.version !== '';
        fresh.set(found.key, isSame ? before : this.#entryOf(found, before));
      },
      /** `mayConfirm`: enough time has passed to confirm what the list before lacked, too. */
      end: (mayConfirm: boolean) => this.#replace(fresh, mayConfirm),
    };
  }

  async #replace(fresh: Map<string, Entry<T>>, mayConfirm: boolean): Promise<ReflectedChange<T>> {
    const upserted: T[] = [];
    const removed: T[] = [];
    const shown: string[] = [];
    const slice = new Slice();
    for (const [key, now] of fresh) {
      if (slice.isOver) await slice.breathe();
      const before = this.#entries.get(key);
      if (before !== now && now.current !== undefined) shown.push(key);
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
    for (const key of shown) this.#onCurrent(key);
    return { upserted, removed };
  }

  /** Keys that the list lacks, but that count until a second list lacks them, too. */
  #missing(fresh: ReadonlyMap<string, unknown>, mayConfirm: boolean): Set<string> {
    const news = new Set<string>();
    const lost: T[] = [];
    const there: T[] = [];
    for (const [key, { object }] of this.#entries) {
      const isMissing = !fresh.has(key);
      // This is the second list.
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
    const { objects, problems, current } = this.#parse(json);
    const sameProblems = before !== undefined && sameValue(before.problems, problems);
    const last = before?.uid === uid ? before : undefined;
    return {
      uid,
      version: resourceVersion,
      object: objects[0] ?? (problems.length > 0 ? lastGood(last?.object, json) : undefined),
      current: current ?? last?.current,
      problems: sameProblems ? before.problems : compactList(problems),
    };
  }
}

/** A deletion counts even if the object is unreadable: otherwise its finalizer would block its namespace. */
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
  return lost > 0 && (lost === of || (of > FEW_OBJECTS && lost > of / 2));
}
