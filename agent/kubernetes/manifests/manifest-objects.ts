// The objects that count of all manifests: those that the files hold, and those that are missing but may come back.
// Decides when a missing object is believed to be gone, and which file's object counts; reports what differs.
// Owns a timer for each file that lacks something; reads nothing.

import { sameValue } from '../../base/same-value.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { ObjectsChange } from '../cluster.ts';
import type { KubernetesObject } from '../objects.ts';
import { type KnownFile, newFile } from './known-file.ts';
import { type LossPolicy, MANY } from './loss-policy.ts';
import { ManifestClaims } from './manifest-claims.ts';

export interface ManifestObjectsOptions {
  readonly lossPolicy: LossPolicy;
  /** The file's folder is away: nothing of it is believed to be gone. */
  readonly isAway: (path: string) => boolean;
  /** The patience with a file has ended: it is to be read once more, then `dropMissing()` asked. */
  readonly onDue: (file: KnownFile) => void;
  /** Nothing of the file is missing: what counts of it is what it holds. */
  readonly onSettled: (file: KnownFile) => void;
}

export class ManifestObjects {
  readonly #options: ManifestObjectsOptions;
  readonly #files = new Map<string, KnownFile>();
  readonly #claims = new ManifestClaims();
  /** Identity → the object as it was reported last. */
  readonly #reported = new Map<string, KubernetesObject>();
  /** Identities whose object may differ from that. */
  readonly #touched = new Set<string>();
  #problems: readonly Problem[] = [];
  #areProblemsTouched = false;

  constructor(options: ManifestObjectsOptions) {
    this.#options = options;
  }

  /** The file of the path, a new one if there is none yet. */
  file(path: string): KnownFile {
    let file = this.#files.get(path);
    if (file === undefined) {
      file = newFile(path);
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

  /** Makes these the file's objects; those that are missing now stay for a while. */
  put(file: KnownFile, objects: ReadonlyMap<string, KubernetesObject>, problems: readonly Problem[]): void {
    this.setProblems(file, problems);
    for (const [identity, object] of objects) {
      const wasMissing = file.missing.delete(identity);
      const isSame = sameValue(file.objects.get(identity), object);
      if (!isSame) file.objects.set(identity, object);
      if (!isSame || wasMissing) this.#touch(file, identity);
    }
    const missing = [...file.objects.keys()].filter((identity) => !objects.has(identity));
    // A large file that is being written again (`kubectl get ... > FILE` takes its time) is empty meanwhile.
    const isMass = !file.absent && file.objects.size >= MANY && missing.length * 2 > file.objects.size;
    this.#miss(file, missing, isMass);
    if (file.missing.size > 0) this.wake(file);
    else this.#settle(file);
  }

  /** The files, as they were restored, are not there any more: believed at once unless that is most of a kind. */
  lose(files: readonly KnownFile[]): void {
    for (const file of files) {
      file.absent = true;
      this.#miss(file, file.objects.keys(), true);
    }
    const isMost = this.#claims.isMostMissing(1);
    for (const file of files) {
      if (isMost) this.wake(file);
      else this.dropMissing(file, Number.POSITIVE_INFINITY);
    }
  }

  /** Nothing is missing any more, whatever the file says; what it lacks is missed again when it says the same again. */
  keepAll(file: KnownFile): void {
    if (file.missing.size > 0) file.digest = '';
    for (const identity of file.missing.keys()) {
      file.missing.delete(identity);
      this.#touch(file, identity);
    }
  }

  /** Lets go of what has been missing for long enough by `now` (performance.now()). */
  dropMissing(file: KnownFile, now: number): void {
    const { lossPolicy, isAway } = this.#options;
    if (file.missing.size === 0 || isAway(file.path)) return;
    for (const [identity, loss] of file.missing) {
      if (lossPolicy.ends(loss) > now) continue;
      // Of many files, or of all, as where a folder is made anew.
      loss.doubted ||= this.#claims.isMostMissing(MANY);
      if (lossPolicy.ends(loss) > now) continue;
      file.missing.delete(identity);
      file.objects.delete(identity);
      this.#touch(file, identity);
    }
    if (file.missing.size === 0) this.#settle(file);
  }

  /** Calls `onDue` when the patience with the file ends. */
  wake(file: KnownFile): void {
    const { lossPolicy, isAway, onDue } = this.#options;
    let due = file.doubtEnds ?? Number.POSITIVE_INFINITY;
    for (const loss of file.missing.values()) due = Math.min(due, lossPolicy.ends(loss));
    if (file.timer !== undefined || due === Number.POSITIVE_INFINITY || isAway(file.path)) return;
    file.timer = setTimeout(
      () => {
        file.timer = undefined;
        onDue(file);
      },
      Math.max(due - performance.now(), 0),
    ).unref();
  }

  setProblems(file: KnownFile, problems: readonly Problem[]): void {
    if (file.problems.length > 0 || problems.length > 0) this.#areProblemsTouched = true;
    file.problems = problems;
  }

  /** Problems that are no file's may have changed. */
  touchProblems(): void {
    this.#areProblemsTouched = true;
  }

  /** What differs since the last call; undefined if nothing does. `others`: problems that are no file's. */
  change(others: () => readonly Problem[]): ObjectsChange | undefined {
    const upserted: KubernetesObject[] = [];
    const removed: KubernetesObject[] = [];
    for (const identity of this.#touched) {
      const before = this.#reported.get(identity);
      const object = this.#claims.winner(identity);
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
    for (const { timer } of this.#files.values()) clearTimeout(timer);
  }

  #miss(file: KnownFile, identities: Iterable<string>, doubted: boolean): void {
    for (const identity of identities) {
      if (file.missing.has(identity)) continue;
      file.missing.set(identity, { since: performance.now(), doubted });
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
    if (this.#claims.update(identity, file)) this.#areProblemsTouched = true;
  }

  /** The same list as before if there is no difference. */
  #sortedProblems(others: readonly Problem[]): readonly Problem[] {
    const files = [...this.#files.values()].flatMap(({ problems }) => problems);
    const all = [...others, ...files, ...this.#claims.problems()];
    all.sort((a, b) => (a.message < b.message ? -1 : 1));
    return sameValue(all, this.#problems) ? this.#problems : all;
  }
}
