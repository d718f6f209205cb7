// The source of objects that are files: reads folders of manifests, watches them, and reports what differs.
// Additions and changes are reported within milliseconds of the write; what seems to go away, or to be half written,
// has to stay so for a moment first. A broken file keeps its last good content; all others go on.
// Reads files and keeps snapshots of them; owns the watchers.

import { hash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { HeadgateError } from '../../base/errors.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { ObjectsChange } from '../cluster.ts';
import { AwayFolders, isIn } from './away-folders.ts';
import { folderFault, isBare, lastingIdentity } from './folder-facts.ts';
import type { KnownFile } from './known-file.ts';
import { LossPolicy } from './loss-policy.ts';
import { fileProblem, type Manifest, parseManifest } from './manifest-file.ts';
import { type FolderState, type FolderTimes, ManifestFolders } from './manifest-folders.ts';
import { ManifestObjects } from './manifest-objects.ts';
import { ManifestSnapshots, type SnapshotTimes } from './manifest-snapshots.ts';
import { type ManifestContent, readManifest } from './read-manifest.ts';

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

/** Reading files may hold up everything else for so long. */
const SLICE_MS = 4;

export class ManifestSource {
  readonly #options: ManifestSourceOptions;
  readonly #lossPolicy: LossPolicy;
  readonly #folders: ManifestFolders;
  readonly #snapshots: ManifestSnapshots | undefined;
  readonly #objects: ManifestObjects;
  /** Paths of files to read. */
  readonly #dirty = new Set<string>();
  /** Files with which the patience has ended. */
  readonly #due = new Set<KnownFile>();
  readonly #away = new AwayFolders();
  #isStarted = false;
  #isScheduled = false;
  #isClosed = false;

  constructor(options: ManifestSourceOptions) {
    const { directories, snapshotDirectory, onFailure, folderTimes, snapshotTimes } = options;
    this.#options = options;
    this.#lossPolicy = new LossPolicy(options.patience ?? 100);
    this.#snapshots =
      snapshotDirectory === undefined
        ? undefined
        : new ManifestSnapshots(snapshotDirectory, onFailure, snapshotTimes);
    this.#objects = new ManifestObjects({
      lossPolicy: this.#lossPolicy,
      isAway: (path) => this.#away.hold(path),
      onDue: (file) => {
        this.#due.add(file);
        // After a stall timers come first: the kernel may have more to tell.
        this.#schedule();
      },
      onSettled: (file) => this.#keep(file),
    });
    const reports = {
      onFile: (path: string) => this.#onFile(path),
      onFolder: (folder: string, state: FolderState) => this.#onFolder(folder, state),
      isMissed: (folder: string) => this.#isMissed(folder),
      onFailure,
      isRead: (path: string, stamp: string) => this.#objects.known(path)?.stamp === stamp,
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
    while (this.#dirty.size > 0 && !this.#isClosed) {
      this.#readSome();
      await nextTurn();
    }
    if (this.#isClosed) return;
    this.#doubtLosses();
    this.#isStarted = true;
    this.#report();
    this.#snapshots?.keepOnly(this.#objects.paths(), this.#options.directories);
    for (const directory of this.#options.directories) this.#keepFolder(directory);
  }

  /** Stops watching at once; resolves when the snapshots are written. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#folders.close();
    this.#objects.close();
    await this.#snapshots?.close();
  }

  #onFile(path: string): void {
    this.#dirty.add(path);
    if (this.#isStarted) this.#schedule();
  }

  /** While a folder is away what was in it counts on; once it is back its files get another chance to be there. */
  #onFolder(folder: string, state: FolderState): void {
    this.#away.set(folder, state);
    if (this.#isStarted) this.#keepFolder(folder);
    this.#objects.touchProblems();
    for (const file of this.#objects.files()) {
      if (!isIn(file.path, folder)) continue;
      this.#objects.keepAll(file);
      this.#onFile(file.path);
    }
    if (this.#isStarted) this.#schedule();
  }

  /** After the events at hand, so that a file that has several of them is read once. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (this.#isClosed) return;
      this.#readSome();
      if (this.#dirty.size === 0) this.#endPatience();
      this.#report();
      if (this.#dirty.size > 0 || this.#due.size > 0) this.#schedule();
    });
  }

  /** Only once all that has been told of is read: whether it is most of all that is missing decides what is believed. */
  #endPatience(): void {
    const end = performance.now() + SLICE_MS;
    for (const file of this.#due) {
      this.#due.delete(file);
      this.#read(file.path);
      this.#objects.dropMissing(file, performance.now());
      this.#objects.wake(file);
      if (performance.now() > end) return;
    }
  }

  #readSome(): void {
    const end = performance.now() + SLICE_MS;
    for (const path of this.#dirty) {
      this.#dirty.delete(path);
      this.#read(path);
      if (performance.now() > end) return;
    }
  }

  #read(path: string): void {
    const reading = readManifest(path);
    const file = this.#objects.file(path);
    file.stamp = reading.stamp;
    const isBack = file.absent && reading.kind !== 'Absent';
    if (isBack && [...file.missing.values()].some(({ doubted }) => doubted))
      this.#lossPolicy.fileReturned(performance.now());
    file.absent = reading.kind === 'Absent';
    if (reading.kind === 'Content') {
      this.#judge(file, reading);
      return;
    }
    file.digest = '';
    file.doubtEnds = undefined;
    if (reading.kind === 'Unreadable') this.#refuse(file, [fileProblem(path, reading.message)]);
    else this.#objects.put(file, new Map(), []);
  }

  #judge(file: KnownFile, content: ManifestContent): void {
    const digest = hash('sha256', content.bytes, 'base64');
    if (digest === file.digest) {
      file.doubtEnds = undefined;
      return;
    }
    const manifest = parseManifest(file.path, content.bytes, file.documents);
    if (this.#isDoubtful(file, manifest)) {
      file.doubtEnds ??= performance.now() + this.#lossPolicy.short;
      if (performance.now() < file.doubtEnds) {
        this.#objects.keepAll(file);
        this.#objects.wake(file);
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
    this.#objects.put(file, manifest.objects, manifest.problems);
  }

  /** Whether its writer may not have come to the end. */
  #isDoubtful(file: KnownFile, manifest: Manifest): boolean {
    if (manifest.broken) return this.#isStarted;
    return manifest.unfinished && !file.unfinished && file.objects.size > 0;
  }

  /** The last good content stays; where there has not been any since the start, that of the snapshot comes back. */
  #refuse(file: KnownFile, problems: readonly Problem[]): void {
    this.#objects.keepAll(file);
    if (file.lastGood === undefined) this.#restore(file);
    const remains = REMAINS[file.lastGood ?? 'Nothing'];
    this.#objects.setProblems(
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
    this.#objects.touchProblems();
    return true;
  }

  /** What has gone from a folder since the agent before us is gone, but not at once where that is most of a kind. */
  #doubtLosses(): void {
    const folders = this.#options.directories.filter((directory) => !this.#away.has(directory));
    this.#objects.lose(folders.flatMap((directory) => this.#restoreFiles(directory)));
  }

  /** Those below the folder that nothing has been read of, as they were before the start. */
  #restoreFiles(directory: string): readonly KnownFile[] {
    return (this.#snapshots?.pathsIn(directory, this.#objects.paths()) ?? []).map((path) => {
      const file = this.#objects.file(path);
      this.#restore(file);
      return file;
    });
  }

  #restore(file: KnownFile): void {
    const bytes = this.#snapshots?.load(file.path);
    const manifest = bytes === undefined ? undefined : parseManifest(file.path, bytes);
    if (manifest === undefined || manifest.broken) return;
    file.lastGood = 'Restored';
    this.#objects.put(file, manifest.objects, []);
  }

  /** What counts of the file is what it holds, so that may be kept over a restart. */
  #keep({ path, objects, unsaved }: KnownFile): void {
    if (objects.size === 0) {
      if (this.#isStarted) this.#snapshots?.remove(path);
    } else if (unsaved !== undefined) this.#snapshots?.save(path, unsaved.bytes);
  }

  #report(): void {
    if (!this.#isStarted) return;
    const change = this.#objects.change(() => this.#away.problems());
    if (change !== undefined) this.#options.onChange(change);
  }

  #isMissed(folder: string): boolean {
    return [...this.#objects.files()].some(({ path, objects }) => objects.size > 0 && isIn(path, folder));
  }
}

const REMAINS = {
  Read: 'the last good content of the file stays in force',
  Restored: 'the last good content of the file, kept from before the start, stays in force',
  Nothing: 'nothing of the file is in force',
} as const;
