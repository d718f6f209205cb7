// The source of objects that are files: reads folders of manifests, or single files, watches them, and reports the differences.
// Additions and changes are reported at once; a missing object, or a file that looks unfinished, counts only after a
// moment. What cannot be read of a file keeps its last good version; other objects and files are not affected.
// Reads files and keeps snapshots of them; owns the watchers.

import { hash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { DiskFile } from '../../base/disk-file.ts';
import type { HeadgateError } from '../../base/errors.ts';
import type { Problem } from '../../model/load-balancer.ts';
import type { ObjectsChange } from '../cluster.ts';
import {
  isBare,
  isIn,
  lastingIdentity,
  type ManifestContent,
  pathFault,
  readManifest,
} from './file-system.ts';
import { type KnownFile, LossPolicy } from './known-file.ts';
import { fileProblem, type Manifest, parseManifest } from './manifest-file.ts';
import { type FolderTimes, ManifestFolders } from './manifest-folders.ts';
import { ManifestObjects } from './manifest-objects.ts';
import { manifestPaths } from './manifest-paths.ts';
import { ManifestSnapshots } from './manifest-snapshots.ts';

export interface ManifestSourceOptions {
  /** Absolute paths of folders and single files. */
  readonly places: readonly string[];
  /** Where the last good content of each file is kept over a restart; undefined: nowhere. */
  readonly snapshotDirectory: string | undefined;
  readonly onChange: (change: ObjectsChange) => void;
  /** A fault without harm for now: a folder cannot be watched, a snapshot cannot be written. */
  readonly onFailure: (error: HeadgateError) => void;
  /** From the loss of an object, or from a content that looks unfinished, until it counts. */
  readonly lossDelayMs?: number;
  readonly folderTimes?: FolderTimes;
}

/** Reading files holds up the event loop for at most so long. */
const SLICE_MS = 4;
const DEFAULT_LOSS_DELAY_MS = 100;

export class ManifestSource {
  readonly #options: ManifestSourceOptions;
  /** The folders that it watches. */
  readonly #directories: readonly string[];
  readonly #lossPolicy: LossPolicy;
  readonly #folders: ManifestFolders;
  readonly #snapshots: ManifestSnapshots | undefined;
  readonly #objects: ManifestObjects;
  /** Paths of files to read. */
  readonly #dirty = new Set<string>();
  /** Files whose losses may be final. */
  readonly #due = new Set<KnownFile>();
  #isStarted = false;
  #isScheduled = false;
  #isClosed = false;

  constructor(options: ManifestSourceOptions) {
    const { snapshotDirectory, onFailure, folderTimes } = options;
    const places = manifestPaths(options.places);
    this.#options = options;
    this.#directories = places.folders;
    this.#lossPolicy = new LossPolicy(options.lossDelayMs ?? DEFAULT_LOSS_DELAY_MS);
    if (snapshotDirectory !== undefined)
      this.#snapshots = new ManifestSnapshots(snapshotDirectory, onFailure);
    this.#objects = new ManifestObjects({
      lossPolicy: this.#lossPolicy,
      isAway: (path) => this.#folders.isInAway(path),
      onDue: (file) => {
        this.#due.add(file);
        // After a stall timers come before events, which may say that the file is back.
        this.#schedule();
      },
      onSettled: (file) => this.#keep(file),
    });
    const reports = {
      onFile: (path: string) => this.#onFile(path),
      onFolder: (folder: string) => this.#onFolder(folder),
      isMissed: (folder: string) => this.#isMissed(folder),
      onFailure,
      isRead: (path: string, stamp: string) => this.#objects.known(path)?.stamp === stamp,
    };
    this.#folders = new ManifestFolders(places, reports, folderTimes);
  }

  /** Touches nothing. Errors: SETTINGS_INVALID if a folder or a file does not exist, and a folder has no snapshots. */
  check(): void {
    for (const directory of this.#directories) {
      const fault = pathFault(directory);
      if (fault !== undefined && !this.#snapshots?.pathsIn(directory).length) throw fault;
    }
  }

  /** Resolves when everything has been read once and reported in one change, if there is anything. Errors: as check(). */
  async start(): Promise<void> {
    const directories = this.#directories;
    for (const directory of directories) {
      const fault = pathFault(directory);
      if (fault === undefined && !this.#isOtherAndBare(directory)) continue;
      const isRestored = this.#restoreFiles(directory).length > 0;
      if (isRestored) this.#folders.assumeAway(directory, fault === undefined ? 'empty' : 'gone');
      else if (fault !== undefined) throw fault;
    }
    this.#objects.touchProblems();
    await this.#folders.open();
    while (this.#dirty.size > 0 && !this.#isClosed) {
      this.#readSome();
      await nextTurn();
    }
    if (this.#isClosed) return;
    const present = directories.filter((directory) => !this.#folders.isAway(directory));
    this.#objects.lose(present.flatMap((directory) => this.#restoreFiles(directory)));
    this.#isStarted = true;
    this.#report();
    this.#snapshots?.keepOnly(this.#objects.paths(), directories);
    for (const directory of directories) this.#keepFolder(directory);
  }

  /** Stops watching at once; resolves when the snapshots are written. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#folders.close();
    this.#objects.close();
    await this.#snapshots?.close();
  }

  /** The last good texts; undefined if they are not kept. */
  get file(): DiskFile | undefined {
    return this.#snapshots?.file;
  }

  /** The files that have the object, the one that counts first. `identity`: `Service default/web`. */
  pathsOf(identity: string): readonly string[] {
    return this.#objects.pathsOf(identity);
  }

  #onFile(path: string): void {
    this.#dirty.add(path);
    if (this.#isStarted) this.#schedule();
  }

  /** While a folder is away its objects count; once it is back, the time of missing objects begins again. */
  #onFolder(folder: string): void {
    if (this.#isStarted) this.#keepFolder(folder);
    this.#objects.touchProblems();
    for (const file of this.#objects.files()) {
      if (!isIn(file.path, folder)) continue;
      this.#objects.keepAll(file);
      this.#onFile(file.path);
    }
    if (this.#isStarted) this.#schedule();
  }

  /** After the events of this turn, so that a file with several events is read once. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (this.#isClosed) return;
      this.#readSome();
      // A loss is judged when all changed files are read: it depends on how much else is missing.
      if (this.#dirty.size === 0) this.#endLosses();
      this.#report();
      if (this.#dirty.size > 0 || this.#due.size > 0) this.#schedule();
    });
  }

  #readSome(): void {
    forOneSlice(this.#dirty, (path) => this.#read(path));
  }

  #endLosses(): void {
    forOneSlice(this.#due, (file) => {
      this.#read(file.path);
      this.#objects.dropMissing(file, performance.now());
      this.#objects.wake(file);
    });
  }

  #read(path: string): void {
    const read = readManifest(path, this.#directories);
    const file = this.#objects.file(path);
    file.stamp = read.stamp;
    const isBack = file.absent && read.kind !== 'Absent';
    if (isBack && [...file.missing.values()].some(({ doubted }) => doubted))
      this.#lossPolicy.fileReturned(performance.now());
    file.absent = read.kind === 'Absent';
    if (read.kind === 'Content') {
      this.#parse(file, read);
      return;
    }
    file.digest = '';
    file.doubtEnds = undefined;
    if (read.kind === 'Unreadable') this.#keepLast(file, [fileProblem(path, read.message)], new Map());
    else this.#objects.put(file, new Map(), []);
  }

  #parse(file: KnownFile, content: ManifestContent): void {
    const digest = hash('sha256', content.bytes, 'base64');
    if (digest === file.digest) {
      file.doubtEnds = undefined;
      return;
    }
    const manifest = parseManifest(file.path, content.bytes, file.documents);
    if (this.#isDoubtful(file, manifest)) {
      file.doubtEnds ??= performance.now() + this.#lossPolicy.delayMs;
      if (performance.now() < file.doubtEnds) {
        this.#objects.keepAll(file);
        this.#objects.wake(file);
        return;
      }
    }
    file.doubtEnds = undefined;
    file.digest = digest;
    if (manifest.broken) {
      this.#keepLast(file, manifest.problems, manifest.objects, content);
      return;
    }
    // A program may be writing it while the agent starts.
    if (content.bytes.length === 0) this.#restore(file);
    file.isRestored = true;
    file.unfinished = manifest.unfinished;
    if (file.documents === undefined || manifest.documents.size > 0) file.documents = manifest.documents;
    file.unsaved = content;
    this.#objects.put(file, manifest.objects, manifest.problems);
  }

  /** True if a program may still be writing the file. */
  #isDoubtful(file: KnownFile, manifest: Manifest): boolean {
    if (manifest.broken) return this.#isStarted;
    return manifest.unfinished && !file.unfinished && file.objects.size > 0;
  }

  /** Not all of the file can be read: the `readable` objects count, and of all others the last version. */
  #keepLast(
    file: KnownFile,
    problems: readonly Problem[],
    readable: Manifest['objects'],
    content?: ManifestContent,
  ): void {
    this.#restore(file);
    // A snapshot of a whole file is better than one of a part.
    if (file.objects.size === 0) file.unsaved = content;
    this.#objects.putReadable(file, readable);
    this.#objects.setProblems(
      file,
      problems.map((problem) => withRemainder(problem, file.objects)),
    );
  }

  /** An emptied folder has its old identity; a mount point has another one than the root of its disk. */
  #isOtherAndBare(directory: string): boolean {
    return isBare(directory) && !this.#snapshots?.hadFolder(directory, lastingIdentity(directory));
  }

  #keepFolder(directory: string): void {
    if (!this.#folders.isAway(directory)) this.#snapshots?.saveFolder(directory, lastingIdentity(directory));
  }

  /** The files below the folder that have a snapshot and have not been read. */
  #restoreFiles(directory: string): readonly KnownFile[] {
    return (this.#snapshots?.pathsIn(directory, this.#objects.paths()) ?? []).map((path) => {
      const file = this.#objects.file(path);
      this.#restore(file);
      return file;
    });
  }

  /** Takes the objects of the snapshot, unless the agent has read the file since. */
  #restore(file: KnownFile): void {
    if (file.isRestored) return;
    file.isRestored = true;
    const bytes = this.#snapshots?.load(file.path);
    if (bytes !== undefined) this.#objects.put(file, parseManifest(file.path, bytes).objects, []);
  }

  /** A file that may hold a Secret, readable or not, is not copied to another place. */
  #keep({ path, objects, unsaved }: KnownFile): void {
    if (objects.size === 0 || unsaved?.bytes.includes('Secret')) {
      if (this.#isStarted) this.#snapshots?.remove(path);
    } else if (unsaved !== undefined) this.#snapshots?.save(path, unsaved.bytes);
  }

  #report(): void {
    if (!this.#isStarted) return;
    const change = this.#objects.change(() => this.#folders.problems());
    if (change !== undefined) this.#options.onChange(change);
  }

  #isMissed(folder: string): boolean {
    return [...this.#objects.files()].some(({ path, objects }) => objects.size > 0 && isIn(path, folder));
  }
}

/** Adds to a problem of a broken file what counts in the meantime. */
function withRemainder(problem: Problem, objects: Manifest['objects']): Problem {
  const { object, reason, message } = problem;
  if (reason === 'InvalidObject') {
    const remains = objects.has(object) ? 'its last good version stays in force' : 'it is not in force';
    return { ...problem, message: `${message}; ${remains}` };
  }
  if (reason !== 'InvalidFile') return problem;
  const remains =
    objects.size > 0
      ? 'what could be read of the file, now or before, is in force'
      : 'nothing of the file is in force';
  return { ...problem, message: `${message}; ${remains}` };
}

/** Takes items from the set until it is empty or the time is over. */
function forOneSlice<T>(items: Set<T>, work: (item: T) => void): void {
  const end = performance.now() + SLICE_MS;
  for (const item of items) {
    items.delete(item);
    work(item);
    if (performance.now() > end) return;
  }
}
