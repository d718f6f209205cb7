// Watches folders of manifests, subfolders too, and names each file that may have changed: at once where the kernel
// tells (inotify), within seconds where it does not (network file systems, mounts, symbolic links), within a minute
// where it should have (lost events).
// Reads directories and the times of files, never their content; all of it synchronous and cut into short slices.

import { basename, dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { HeadgateError } from '../../base/errors.ts';
import { Rounds } from '../../base/rounds.ts';
import {
  entriesIn,
  identityOf,
  isBare,
  isFolder,
  isLocal,
  isReadable,
  stampOf,
  statOf,
} from './folder-facts.ts';
import { FolderWatchers } from './folder-watchers.ts';

export interface FolderReports {
  /** The file may have changed, appeared or gone. Once a folder is gone, each of its files is named. */
  onFile(path: string): void;
  /** One of the folders given at the start is gone, or there again, or another one than before. */
  onFolder(folder: string, state: FolderState): void;
  /** Whether something of one of these folders counts that would not if the folder were empty. */
  isMissed(folder: string): boolean;
  /** A folder cannot be watched: it is looked through more often instead. */
  onFailure(error: HeadgateError): void;
  /** Whether a file of this stamp (`stampOf`) has been read already. */
  isRead(path: string, stamp: string): boolean;
}

/** Empty where the folder is missed: what a mount point is while its disk is away. */
export type FolderState = 'there' | 'gone' | 'empty';

export interface FolderTimes {
  /** Milliseconds between two looks at whether the folders are the same, and at what the kernel does not tell of. */
  readonly interval: number;
  /** The same while some folder cannot be watched or is gone. */
  readonly unwatchedInterval: number;
}

interface Folder {
  readonly path: string;
  /** Tells the directory behind the path from another one that takes its place. */
  readonly identity: string;
  readonly parent: Folder | undefined;
  readonly files: Set<string>;
  readonly subfolders: Set<string>;
  /** The kernel tells of all that changes in it. */
  isTold: boolean;
}

/** A look at the folders may hold up everything else for so long. */
const SLICE_MS = 4;
/** Of so many looks one is at everything. */
const THOROUGH = 6;
/** So many events at once may be more than the kernel's queue holds (16384): then look at everything. */
const BURST = 4096;

export class ManifestFolders {
  readonly #roots: readonly string[];
  readonly #reports: FolderReports;
  readonly #times: FolderTimes;
  readonly #folders = new Map<string, Folder>();
  readonly #watchers: FolderWatchers;
  /** Of the folders that the roots are in: they tell of a root that is a link being swapped, or is made again. */
  readonly #aboveRoots: FolderWatchers;
  readonly #looks: Rounds;
  /** Of each root, as it was when last looked at. */
  readonly #states = new Map<string, FolderState>();
  /** Folders to look through, with the folder each was found in. */
  readonly #queue = new Map<string, Folder | undefined>();
  #scan: Promise<void> | undefined;
  #lookCount = 0;
  #events = 0;
  #isClosed = false;

  constructor(
    roots: readonly string[],
    reports: FolderReports,
    times: FolderTimes = { interval: 10_000, unwatchedInterval: 1_000 },
  ) {
    this.#roots = roots;
    this.#reports = reports;
    this.#times = times;
    this.#watchers = new FolderWatchers({
      onEvent: (path, event, name) => this.#onEvent(path, event, name),
      onLost: (path, cause) => this.#onLost(path, cause),
    });
    this.#aboveRoots = new FolderWatchers({
      onEvent: (above, _, name) => {
        for (const root of roots)
          if (dirname(root) === above && basename(root) === name) this.#look(root, undefined);
      },
      // The next look at everything sees it, too.
      onLost: () => undefined,
    });
    this.#looks = new Rounds({
      intervalMs: () => (this.#isWatched() ? times.interval : times.unwatchedInterval),
      work: () => (++this.#lookCount % THOROUGH === 0 ? this.scan() : this.#scanUntold()),
      onFailed: (cause) => {
        const message = 'Cannot look through the folders of manifests';
        reports.onFailure(new HeadgateError('FILE_READ', message, { retry: 'later', cause }));
      },
    });
  }

  /** Resolves when every file has been named once. */
  async open(): Promise<void> {
    for (const above of new Set(this.#roots.map((root) => dirname(root)))) this.#aboveRoots.watch(above);
    await this.scan();
    if (!this.#isClosed) this.#looks.start();
  }

  /** Looks through everything; resolves when done. */
  scan(): Promise<void> {
    for (const root of this.#roots) this.#queue.set(root, undefined);
    return this.#drain();
  }

  close(): void {
    this.#isClosed = true;
    this.#looks.close();
    this.#aboveRoots.close();
    this.#watchers.close();
  }

  #drain(): Promise<void> {
    this.#scan ??= this.#lookThroughQueue().finally(() => {
      this.#scan = undefined;
      if (this.#queue.size > 0 && !this.#isClosed) void this.#drain();
    });
    return this.#scan;
  }

  async #lookThroughQueue(): Promise<void> {
    let begin = performance.now();
    for (const [path, parent] of this.#queue) {
      this.#queue.delete(path);
      for (const _ of this.#lookThrough(path, parent)) {
        if (this.#isClosed) return;
        if (performance.now() - begin < SLICE_MS) continue;
        await nextTurn();
        begin = performance.now();
      }
    }
  }

  /** Looks through those folders in which something may have changed that nobody has told. */
  #scanUntold(): Promise<void> {
    for (const root of this.#roots) if (!this.#folders.has(root)) this.#queue.set(root, undefined);
    for (const { path, parent, identity, isTold } of this.#folders.values()) {
      const stat = statOf(path);
      const isSame = isTold && this.#watchers.has(path) && isFolder(stat) && identityOf(stat) === identity;
      if (!isSame) this.#queue.set(path, parent);
    }
    return this.#drain();
  }

  #isWatched(): boolean {
    if (this.#roots.some((root) => this.#states.get(root) !== 'there')) return false;
    return [...this.#folders.keys()].every((path) => this.#watchers.has(path));
  }

  /** Yields after each entry, so that others get their turn. */
  *#lookThrough(path: string, parent: Folder | undefined): Generator<void> {
    const folder = this.#enter(path, parent);
    if (folder === undefined) return;
    const files = new Set<string>();
    const subfolders = new Set<string>();
    let isTold = isLocal(path);
    for (const { name, isLink } of entriesIn(path)) {
      yield;
      // What it leads to changes unseen.
      if (isLink) isTold = false;
      if (name.startsWith('.')) continue;
      const entry = join(path, name);
      const stat = statOf(entry);
      if (isFolder(stat)) {
        subfolders.add(entry);
        if (!isAbove(identityOf(stat), folder)) this.#queue.set(entry, folder);
      } else if (isManifestName(name)) {
        files.add(entry);
        if (!this.#reports.isRead(entry, stampOf(stat))) this.#reports.onFile(entry);
      }
    }
    folder.isTold = isTold;
    for (const gone of replace(folder.files, files)) this.#reports.onFile(gone);
    for (const gone of replace(folder.subfolders, subfolders)) this.#leave(this.#folders.get(gone));
  }

  /** The folder, watched; undefined where it is none (any more). */
  #enter(path: string, parent: Folder | undefined): Folder | undefined {
    const stat = statOf(path);
    const known = this.#folders.get(path);
    const identity = isFolder(stat) && isReadable(path) ? identityOf(stat) : undefined;
    const isNewRoot = this.#roots.includes(path) && known?.identity !== identity;
    const isEmpty = identity !== undefined && isNewRoot && this.#reports.isMissed(path) && isBare(path);
    if (identity === undefined || isEmpty) {
      this.#leave(known);
      const before = this.#states.get(path);
      const now = isEmpty ? 'empty' : 'gone';
      if (this.#roots.includes(path)) this.#states.set(path, now);
      if (before !== undefined && before !== now) this.#reports.onFolder(path, now);
      return undefined;
    }
    if (known?.identity === identity && this.#watchers.has(path)) return known;
    const folder: Folder = {
      path,
      identity,
      parent,
      files: known?.files ?? new Set(),
      subfolders: known?.subfolders ?? new Set(),
      isTold: false,
    };
    this.#folders.set(path, folder);
    const cause = this.#watchers.watch(path);
    if (cause !== undefined) this.#reportUnwatched(path, cause);
    if (isNewRoot) {
      this.#states.set(path, 'there');
      this.#reports.onFolder(path, 'there');
    }
    return folder;
  }

  #leave(folder: Folder | undefined): void {
    if (folder === undefined) return;
    this.#watchers.forget(folder.path);
    this.#folders.delete(folder.path);
    for (const file of folder.files) this.#reports.onFile(file);
    for (const subfolder of folder.subfolders) this.#leave(this.#folders.get(subfolder));
  }

  #onEvent(path: string, event: string, name: string | null): void {
    const folder = this.#folders.get(path);
    if (this.#isClosed || folder === undefined) return;
    if (++this.#events % BURST === 0) void this.scan();
    if (name === null) {
      this.#look(path, folder.parent);
    } else if (event === 'rename' && name === basename(path)) {
      // The folder itself has been moved or removed, and its watcher with it.
      this.#watchers.forget(path);
      this.#look(path, folder.parent);
    } else if (name.startsWith('.')) {
      // Kubernetes swaps this link to replace all files of a mounted ConfigMap at once.
      if (name === '..data') this.#look(path, folder.parent);
    } else if (isManifestName(name)) {
      const entry = join(path, name);
      folder.files.add(entry);
      this.#reports.onFile(entry);
    } else {
      const entry = join(path, name);
      if (isFolder(statOf(entry)) || folder.subfolders.has(entry)) this.#look(path, folder.parent);
    }
  }

  #onLost(path: string, cause: unknown): void {
    const folder = this.#folders.get(path);
    if (folder === undefined) return;
    this.#reportUnwatched(path, cause);
    this.#look(path, folder.parent);
  }

  #reportUnwatched(path: string, cause: unknown): void {
    const message = `Cannot watch folder "${path}", it is looked through every ${this.#times.unwatchedInterval} ms`;
    this.#reports.onFailure(new HeadgateError('FILE_READ', message, { retry: 'later', cause }));
    this.#looks.retime();
  }

  #look(path: string, parent: Folder | undefined): void {
    if (this.#isClosed) return;
    this.#queue.set(path, parent);
    void this.#drain();
  }
}

function isManifestName(name: string): boolean {
  return /\.(?:ya?ml|json)$/.test(name);
}

/** Makes `known` what `now` is; what was in it and is not any more comes back. */
function replace(known: Set<string>, now: ReadonlySet<string>): readonly string[] {
  const gone = [...known].filter((entry) => !now.has(entry));
  for (const entry of gone) known.delete(entry);
  for (const entry of now) known.add(entry);
  return gone;
}

/** Follows no symbolic link that leads back to where it came from. */
function isAbove(identity: string, folder: Folder): boolean {
  for (let above: Folder | undefined = folder; above !== undefined; above = above.parent) {
    if (above.identity === identity) return true;
  }
  return false;
}
