// The source of objects that are files: reads folders of manifests, watches them, and reports what differs.
// Additions and changes are reported within milliseconds of the write; what seems to go away, or to be half written,
// has to stay so for a moment first. A broken file keeps its last good content; all others go on.
// Reads files and keeps snapshots of them; owns the watchers and timers for that.

import { hash } from 'node:crypto';
import { accessSync, constants, statSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { HeadgateError } from '../../base/errors.ts';
import { sameValue } from '../../base/same-value.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { ObjectsChange } from '../cluster.ts';
import type { KubernetesObject } from '../objects.ts';
import { AwayFolders, isIn } from './away-folders.ts';
import { isBare, lastingIdentity } from './folder-facts.ts';
import { type KnownFile, newFile } from './known-file.ts';
import { ManifestClaims } from './manifest-claims.ts';
import { fileProblem, type Manifest, parseManifest } from './manifest-file.ts';
import { type FolderState, type FolderTimes, ManifestFolders } from './manifest-folders.ts';
import { ManifestSnapshots, type SnapshotTimes } from './manifest-snapshots.ts';
import { MANY, Patience } from './patience.ts';
import { type ManifestContent, readManifest } from './read-manifest.ts';
import { ReportedObjects } from './reported-objects.ts';

export interface ManifestSourceOptions {
  /** Absolute paths. */
  readonly directories: readonly string[];
  /** Where the last good content of each file is kept over a restart; undefined: nowhere. */
  readonly snapshotDirectory: string | undefined;
  readonly onChange: (change: ObjectsChange) => void;
  /** Something that harms nothing now: a folder that cannot be watched, a snapshot that cannot be written. */
  readonly onFailure: (error: HeadgateError) => void;
  /** Milliseconds that an object has to be missing, or a file to look half written, before it counts. */
  readonly patience?: number;
  readonly folderTimes?: FolderTimes;
  readonly snapshotTimes?: SnapshotTimes;
}

/** Milliseconds that reading files may hold up everything else. */
const SLICE = 4;

export class ManifestSource {
  readonly #options: ManifestSourceOptions;
  readonly #patience: Patience;
  readonly #folders: ManifestFolders;
  readonly #snapshots: ManifestSnapshots | undefined;
  readonly #files = new Map<string, KnownFile>();
  readonly #claims = new ManifestClaims();
  readonly #reported = new ReportedObjects();
  /** Paths of files to read. */
  readonly #dirty = new Set<string>();
  /** Those whose patience ends. */
  readonly #due = new Set<KnownFile>();
  readonly #away = new AwayFolders();
  #problems: readonly Problem[] = [];
  #problemsTouched = false;
  #started = false;
  #scheduled = false;
  #closed = false;

  constructor(options: ManifestSourceOptions) {
    const { directories, snapshotDirectory, onFailure, folderTimes, snapshotTimes } = options;
    this.#options = options;
    this.#patience = new Patience(options.patience ?? 100);
    this.#snapshots =
      snapshotDirectory === undefined
        ? undefined
        : new ManifestSnapshots(snapshotDirectory, onFailure, snapshotTimes);
    const reports = {
      onFile: (path: string) => this.#onFile(path),
      onFolder: (folder: string, state: FolderState) => this.#onFolder(folder, state),
      isMissed: (folder: string) => this.#isMissed(folder),
      onFailure,
      isRead: (path: string, stamp: string) => this.#files.get(path)?.stamp === stamp,
    };
    this.#folders = new ManifestFolders(directories, reports, folderTimes);
  }

  /**
   * Resolves when everything has been read once and, unless there is nothing at all, reported in one change.
   * Throws SETTINGS_INVALID where a folder does not exist, unless there are snapshots of what was in it.
   */
  async start(): Promise<void> {
    for (const directory of this.#options.directories) {
      const fault = folderFault(directory);
      if (fault === undefined && !this.#isOtherAndBare(directory)) continue;
      const isRestored = this.#restoreFolder(directory, fault === undefined ? 'empty' : 'gone');
      if (fault !== undefined && !isRestored) throw fault;
    }
    await this.#folders.open();
    while (this.#dirty.size > 0 && !this.#closed) {
      this.#readSome();
      await nextTurn();
    }
    if (this.#closed) return;
    this.#doubtLosses();
    this.#started = true;
    this.#report();
    this.#snapshots?.keepOnly(this.#files.keys(), this.#options.directories);
    for (const directory of this.#options.directories) this.#keepFolder(directory);
  }

  /** Stops watching at once; resolves when the snapshots are written. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#folders.close();
    for (const { timer } of this.#files.values()) clearTimeout(timer);
    await this.#snapshots?.close();
  }

  #onFile(path: string): void {
    this.#dirty.add(path);
    if (this.#started) this.#schedule();
  }

  /** While a folder is away what was in it counts on; once it is back its files get another chance to be there. */
  #onFolder(folder: string, state: FolderState): void {
    this.#away.set(folder, state);
    if (this.#started) this.#keepFolder(folder);
    this.#problemsTouched = true;
    for (const file of this.#files.values()) {
      if (!isIn(file.path, folder)) continue;
      this.#keepAll(file);
      this.#onFile(file.path);
    }
    if (this.#started) this.#schedule();
  }

  /** After the events at hand, so that a file that has several of them is read once. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      if (this.#closed) return;
      this.#readSome();
      if (this.#dirty.size === 0) this.#endPatience();
      this.#report();
      if (this.#dirty.size > 0 || this.#due.size > 0) this.#schedule();
    });
  }

  /** Only once all that has been told of is read: whether it is most of all that is missing decides what is believed. */
  #endPatience(): void {
    const end = performance.now() + SLICE;
    for (const file of this.#due) {
      this.#due.delete(file);
      file.timer = undefined;
      this.#read(file.path);
      this.#dropMissing(file, performance.now());
      this.#wake(file);
      if (performance.now() > end) return;
    }
  }

  #readSome(): void {
    const end = performance.now() + SLICE;
    for (const path of this.#dirty) {
      this.#dirty.delete(path);
      this.#read(path);
      if (performance.now() > end) return;
    }
  }

  #read(path: string): void {
    const reading = readManifest(path);
    const file = this.#files.get(path) ?? newFile(path);
    this.#files.set(path, file);
    file.stamp = reading.stamp;
    const isBack = file.absent && reading.kind !== 'Absent';
    if (isBack && [...file.missing.values()].some(({ doubted }) => doubted))
      this.#patience.fileReturned(performance.now());
    file.absent = reading.kind === 'Absent';
    if (reading.kind === 'Content') {
      this.#judge(file, reading);
      return;
    }
    file.digest = '';
    file.doubtEnds = undefined;
    if (reading.kind === 'Unreadable') this.#refuse(file, [fileProblem(path, reading.message)]);
    else this.#take(file, new Map(), []);
  }

  #judge(file: KnownFile, content: ManifestContent): void {
    const digest = hash('sha256', content.bytes, 'base64');
    if (digest === file.digest) {
      file.doubtEnds = undefined;
      return;
    }
    const manifest = parseManifest(file.path, content.bytes, file.documents);
    if (this.#isDoubtful(file, manifest)) {
      file.doubtEnds ??= performance.now() + this.#patience.short;
      if (performance.now() < file.doubtEnds) {
        this.#keepAll(file);
        this.#wake(file);
        return;
      }
    }
    file.doubtEnds = undefined;
    file.digest = digest;
    if (manifest.broken) {
      this.#refuse(file, manifest.problems);
      return;
    }
    // Somebody may be writing it while we start.
    if (file.lastGood === undefined && content.bytes.length === 0) this.#restore(file);
    file.lastGood = 'Read';
    file.unfinished = manifest.unfinished;
    if (file.documents === undefined || manifest.documents.size > 0) file.documents = manifest.documents;
    file.unsaved = content;
    this.#take(file, manifest.objects, manifest.problems);
  }

  /** Whether its writer may not have come to the end. */
  #isDoubtful(file: KnownFile, manifest: Manifest): boolean {
    if (manifest.broken) return this.#started;
    return manifest.unfinished && !file.unfinished && file.objects.size > 0;
  }

  /** The last good content stays; where there has not been any since the start, that of the snapshot comes back. */
  #refuse(file: KnownFile, problems: readonly Problem[]): void {
    this.#keepAll(file);
    if (file.lastGood === undefined) this.#restore(file);
    const remains = REMAINS[file.lastGood ?? 'Nothing'];
    this.#setProblems(
      file,
      problems.map((problem) => ({ ...problem, message: `${problem.message}; ${remains}` })),
    );
  }

  /** Emptied it would be the same folder; a mount point is another one than the root of its disk. */
  #isOtherAndBare(directory: string): boolean {
    return isBare(directory) && !this.#snapshots?.hadFolder(directory, lastingIdentity(directory));
  }

  #keepFolder(directory: string): void {
    if (!this.#away.has(directory)) this.#snapshots?.saveFolder(directory, lastingIdentity(directory));
  }

  /** As if it had gone away while we ran: a disk may come later than we do. False where nothing is known of it. */
  #restoreFolder(directory: string, state: 'gone' | 'empty'): boolean {
    const files = this.#restoreFiles(directory);
    if (files.length === 0) return false;
    this.#away.set(directory, state);
    this.#problemsTouched = true;
    return true;
  }

  /** What has gone from a folder since the agent before us is gone, but not at once where that is most of a kind. */
  #doubtLosses(): void {
    const folders = this.#options.directories.filter((directory) => !this.#away.has(directory));
    const lost = folders.flatMap((directory) => this.#restoreFiles(directory));
    for (const file of lost) {
      file.absent = true;
      for (const identity of file.objects.keys()) {
        file.missing.set(identity, { since: performance.now(), doubted: true });
        this.#touch(file, identity);
      }
    }
    const isMost = this.#claims.isMostMissing(1);
    for (const file of lost) {
      if (isMost) this.#wake(file);
      else this.#dropMissing(file, Number.POSITIVE_INFINITY);
    }
  }

  /** Those below the folder that nothing has been read of, as they were before the start. */
  #restoreFiles(directory: string): readonly KnownFile[] {
    return (this.#snapshots?.pathsIn(directory, this.#files.keys()) ?? []).map((path) => {
      const file = newFile(path);
      this.#files.set(path, file);
      this.#restore(file);
      return file;
    });
  }

  #restore(file: KnownFile): void {
    const bytes = this.#snapshots?.load(file.path);
    const manifest = bytes === undefined ? undefined : parseManifest(file.path, bytes);
    if (manifest === undefined || manifest.broken) return;
    file.lastGood = 'Restored';
    this.#take(file, manifest.objects, []);
  }

  /** Makes these the file's objects; those that are missing now stay for a while. */
  #take(file: KnownFile, objects: ReadonlyMap<string, KubernetesObject>, problems: readonly Problem[]): void {
    this.#setProblems(file, problems);
    for (const [identity, object] of objects) {
      const wasMissing = file.missing.delete(identity);
      const isSame = sameValue(file.objects.get(identity), object);
      if (!isSame) file.objects.set(identity, object);
      if (!isSame || wasMissing) this.#touch(file, identity);
    }
    const missing = [...file.objects.keys()].filter((identity) => !objects.has(identity));
    // A large file that is being written again (`kubectl get ... > FILE` takes its time) is empty meanwhile.
    const isMass = !file.absent && file.objects.size >= MANY && missing.length * 2 > file.objects.size;
    for (const identity of missing) {
      if (file.missing.has(identity)) continue;
      file.missing.set(identity, { since: performance.now(), doubted: isMass });
      this.#touch(file, identity);
    }
    if (file.missing.size > 0) this.#wake(file);
    else this.#settle(file);
  }

  /** Nothing is missing any more, whatever the file says; what it lacks is missed anew when it says the same again. */
  #keepAll(file: KnownFile): void {
    if (file.missing.size > 0) file.digest = '';
    for (const identity of file.missing.keys()) {
      file.missing.delete(identity);
      this.#touch(file, identity);
    }
  }

  /** Sees to it that the file is looked at again when its patience ends. */
  #wake(file: KnownFile): void {
    let due = file.doubtEnds ?? Number.POSITIVE_INFINITY;
    for (const loss of file.missing.values()) due = Math.min(due, this.#patience.ends(loss));
    if (file.timer !== undefined || due === Number.POSITIVE_INFINITY || this.#away.hold(file.path)) return;
    file.timer = setTimeout(
      () => {
        this.#due.add(file);
        // After a stall timers come first: the kernel may have more to tell.
        this.#schedule();
      },
      Math.max(due - performance.now(), 0),
    ).unref();
  }

  #dropMissing(file: KnownFile, now: number): void {
    if (file.missing.size === 0 || this.#away.hold(file.path)) return;
    for (const [identity, loss] of file.missing) {
      if (this.#patience.ends(loss) > now) continue;
      // Of many files, or of all, as where a folder is made anew.
      loss.doubted ||= this.#claims.isMostMissing(MANY);
      if (this.#patience.ends(loss) > now) continue;
      file.missing.delete(identity);
      file.objects.delete(identity);
      this.#touch(file, identity);
    }
    if (file.missing.size === 0) this.#settle(file);
  }

  /** Nothing is missing: what counts is what the file holds, so that may be kept. */
  #settle(file: KnownFile): void {
    const { path, unsaved } = file;
    if (file.absent) this.#files.delete(path);
    if (file.objects.size === 0) {
      if (this.#started) this.#snapshots?.remove(path);
    } else if (unsaved !== undefined) {
      const isKept = !this.#started && this.#snapshots?.has(path, unsaved.bytes);
      if (!isKept) this.#snapshots?.save(path, unsaved.bytes);
    }
    file.unsaved = undefined;
  }

  #touch(file: KnownFile, identity: string): void {
    this.#reported.touch(identity);
    if (this.#claims.update(identity, file)) this.#problemsTouched = true;
  }

  #setProblems(file: KnownFile, problems: readonly Problem[]): void {
    if (file.problems.length > 0 || problems.length > 0) this.#problemsTouched = true;
    file.problems = problems;
  }

  #report(): void {
    if (!this.#started) return;
    const { upserted, removed } = this.#reported.changes((identity) => this.#claims.winner(identity));
    const problems = this.#allProblems();
    if (upserted.length === 0 && removed.length === 0 && problems === this.#problems) return;
    this.#problems = problems;
    this.#options.onChange({ upserted, removed, problems });
  }

  /** Sorted; the same list as before where there is no difference. */
  #allProblems(): readonly Problem[] {
    if (!this.#problemsTouched) return this.#problems;
    this.#problemsTouched = false;
    const files = [...this.#files.values()].flatMap(({ problems }) => problems);
    const all = [...this.#away.problems(), ...files, ...this.#claims.problems()];
    all.sort((a, b) => (a.message < b.message ? -1 : 1));
    return sameValue(all, this.#problems) ? this.#problems : all;
  }

  #isMissed(folder: string): boolean {
    return [...this.#files.values()].some(({ path, objects }) => objects.size > 0 && isIn(path, folder));
  }
}

const REMAINS = {
  Read: 'the last good content of the file stays in force',
  Restored: 'the last good content of the file, kept from before the start, stays in force',
  Nothing: 'nothing of the file is in force',
} as const;

function folderFault(path: string): HeadgateError | undefined {
  const retry = 'never';
  try {
    if (statSync(path).isDirectory()) {
      accessSync(path, constants.R_OK | constants.X_OK);
      return undefined;
    }
  } catch (cause) {
    const message = `Cannot read the folder of manifests "${path}"`;
    return new HeadgateError('SETTINGS_INVALID', message, { retry, cause });
  }
  return new HeadgateError('SETTINGS_INVALID', `Cannot read manifests from "${path}": it is not a folder`, {
    retry,
  });
}
