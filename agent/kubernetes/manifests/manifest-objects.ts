// The objects of all manifests that count: those in the files, and those that are missing but may come back.
// Decides when a missing object stops counting, and which file's object counts; gives the differences.
// Owns a timer for each file with missing objects; reads no file.

import { type Clock, systemClock } from '../../base/clock.ts';
import { sameValue } from '../../base/same-value.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { ObjectsChange } from '../cluster.ts';
import type { KubernetesObject } from '../objects.ts';
import { FilePrecedence } from './file-precedence.ts';
import { KnownFile, type LossPolicy, MANY_OBJECTS } from './known-file.ts';

export interface ManifestObjectsOptions {
  readonly lossPolicy: LossPolicy;
  /** The file's folder is away: all of its objects count. */
  readonly isAway: (path: string) => boolean;
  /** Time to read the file once more, and to call `dropMissing()` then. */
  readonly onDue: (file: KnownFile) => void;
  /** Nothing of the file is missing any more. */
  readonly onSettled: (file: KnownFile) => void;
  readonly clock?: Clock;
}

export class ManifestObjects {
  readonly #options: ManifestObjectsOptions;
  readonly #clock: Clock;
  readonly #files = new Map<string, KnownFile>();
  readonly #precedence = new FilePrecedence();
  /** Identity → the object as it was reported last. */
  readonly #reported = new Map<string, KubernetesObject>();
  /** Identities whose object may differ from the reported one. */
  readonly #touched = new Set<string>();
  #problems: readonly Problem[] = [];
  #areProblemsTouched = false;

  constructor(options: ManifestObjectsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** The file of the path; a new one if it is not known. */
  file(path: string): KnownFile {
    let file = this.#files.get(path);
    if (file === undefined) {
      file = new KnownFile(path);
      this.#files.set(path, file);
    }
    return file;
  }

  known(path: string): KnownFile | undefined {
    return this.#files.get(path);
  }

  files(): Iterable<KnownFile> {
    return this.#files.values();
  }

  paths(): Iterable<string> {
    return this.#files.keys();
  }

  /** The files that have the object, the one that counts first. */
  pathsOf(identity: string): readonly string[] {
    return this.#precedence.paths(identity);
  }

  /** The file has these objects now; missing ones count for a while. */
  put(file: KnownFile, objects: ReadonlyMap<string, KubernetesObject>, problems: readonly Problem[]): void {
    this.setProblems(file, problems);
    this.#upsert(file, objects);
    const missing = [...file.objects.keys()].filter((identity) => !objects.has(identity));
    // A large file is empty for a while if a program writes it again (`kubectl get ... > FILE`).
    const isMass =
      !file.absent && file.objects.size >= MANY_OBJECTS && missing.length * 2 > file.objects.size;
    this.#miss(file, missing, isMass);
    if (file.missing.size > 0) this.wake(file);
    else this.#settle(file);
  }

  /** Only these objects of the file can be read now: its others count as they were read last. */
  putReadable(file: KnownFile, objects: ReadonlyMap<string, KubernetesObject>): void {
    this.keepAll(file);
    this.#upsert(file, objects);
    this.#settle(file);
  }

  /** The restored files have gone: their objects stop counting at once, unless these are most of a kind. */
  lose(files: readonly KnownFile[]): void {
    for (const file of files) {
      file.absent = true;
      this.#miss(file, file.objects.keys(), true);
    }
    const isMost = this.#precedence.isMostMissing(1);
    for (const file of files) {
      if (isMost) this.wake(file);
      else this.dropMissing(file, Number.POSITIVE_INFINITY);
    }
  }

  /** Counts all objects again as if none were missing, until the file is parsed again. */
  keepAll(file: KnownFile): void {
    if (file.missing.size > 0) file.digest = '';
    for (const identity of file.missing.keys()) {
      file.missing.delete(identity);
      this.#touch(file, identity);
    }
  }

  /** Removes the objects that have been missing for long enough by `now` (monotonic time). */
  dropMissing(file: KnownFile, now: number): void {
    const { lossPolicy, isAway } = this.#options;
    if (file.missing.size === 0 || isAway(file.path)) return;
    for (const [identity, loss] of file.missing) {
      if (lossPolicy.ends(loss) > now) continue;
      // Many files are missing, for example if a program creates the folder again.
      loss.doubted ||= this.#precedence.isMostMissing(MANY_OBJECTS);
      if (lossPolicy.ends(loss) > now) continue;
      file.missing.delete(identity);
      file.objects.delete(identity);
      this.#touch(file, identity);
    }
    if (file.missing.size === 0) this.#settle(file);
  }

  /** Calls `onDue` when the first of the file's losses may be final. */
  wake(file: KnownFile): void {
    const { lossPolicy, isAway, onDue } = this.#options;
    let due = file.doubtEnds ?? Number.POSITIVE_INFINITY;
    for (const loss of file.missing.values()) due = Math.min(due, lossPolicy.ends(loss));
    if (file.cancelWake !== undefined || due === Number.POSITIVE_INFINITY || isAway(file.path)) return;
    file.cancelWake = this.#clock.after(due - this.#clock.monotonic(), () => {
      file.cancelWake = undefined;
      onDue(file);
    });
  }

  setProblems(file: KnownFile, problems: readonly Problem[]): void {
    if (file.problems.length > 0 || problems.length > 0) this.#areProblemsTouched = true;
    file.problems = problems;
  }

  /** Problems of no single file may have changed. */
  touchProblems(): void {
    this.#areProblemsTouched = true;
  }

  /** The difference to the last call; undefined if there is none. `others`: problems of no single file. */
  change(others: () => readonly Problem[]): ObjectsChange | undefined {
    const upserted: KubernetesObject[] = [];
    const removed: KubernetesObject[] = [];
    for (const identity of this.#touched) {
      const before = this.#reported.get(identity);
      const object = this.#precedence.first(identity);
      if (sameValue(before, object)) continue;
      if (object !== undefined) {
        this.#reported.set(identity, object);
        upserted.push(object);
      } else if (before !== undefined) {
        this.#reported.delete(identity);
        removed.push(before);
      }
    }
    this.#touched.clear();
    const problems = this.#areProblemsTouched ? this.#sortedProblems(others()) : this.#problems;
    this.#areProblemsTouched = false;
    if (upserted.length === 0 && removed.length === 0 && problems === this.#problems) return undefined;
    this.#problems = problems;
    return { upserted, removed, problems };
  }

  close(): void {
    for (const { cancelWake } of this.#files.values()) cancelWake?.();
  }

  #upsert(file: KnownFile, objects: ReadonlyMap<string, KubernetesObject>): void {
    for (const [identity, object] of objects) {
      const wasMissing = file.missing.delete(identity);
      const isSame = sameValue(file.objects.get(identity), object);
      if (!isSame) file.objects.set(identity, object);
      if (!isSame || wasMissing) this.#touch(file, identity);
    }
  }

  #miss(file: KnownFile, identities: Iterable<string>, doubted: boolean): void {
    for (const identity of identities) {
      if (file.missing.has(identity)) continue;
      file.missing.set(identity, { since: this.#clock.monotonic(), doubted });
      this.#touch(file, identity);
    }
  }

  #settle(file: KnownFile): void {
    if (file.absent) this.#files.delete(file.path);
    this.#options.onSettled(file);
    file.unsaved = undefined;
  }

  #touch(file: KnownFile, identity: string): void {
    this.#touched.add(identity);
    if (this.#precedence.update(identity, file, this.#reported.has(identity)))
      this.#areProblemsTouched = true;
  }

  /** The same list as before if it is equal. */
  #sortedProblems(others: readonly Problem[]): readonly Problem[] {
    const files = [...this.#files.values()].flatMap(({ problems }) => problems);
    const all = [...others, ...files, ...this.#precedence.problems()];
    all.sort((a, b) => (a.message < b.message ? -1 : 1));
    return sameValue(all, this.#problems) ? this.#problems : all;
  }
}
