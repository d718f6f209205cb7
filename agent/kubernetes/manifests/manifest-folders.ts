// Watches folders of manifests, subfolders too, and names each file that may have changed: at once where the kernel
// tells (inotify), within seconds where it does not (network file systems, mounts, symbolic links), within a minute
// where it should have (lost events).
// Reads directories and the times of files, never their content; all of it synchronous and cut into short slices.

import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { HeadgateError } from '../../base/errors.ts';
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
  readonly watcher: FSWatcher | undefined;
  readonly files: Set<string>;
  readonly subfolders: Set<string>;
  /** The kernel tells of all that changes in it. */
  isTold: boolean;
}

/** Milliseconds that a look at the folders may hold up everything else. */
const SLICE = 4;
/** Looks after which there is one at everything. */
const THOROUGH = 6;
/** So many events at once may be more than the kernel's queue holds (16384): then look at everything. */
const BURST = 4096;

export class ManifestFolders {
  readonly #roots: readonly string[];
  readonly #reports: FolderReports;
  readonly #times: FolderTimes;
  readonly #folders = new Map<string, Folder>();
  readonly #rootWatchers: FSWatcher[] = [];
  /** Of each root, as it was when last looked at. */
  readonly #states = new Map<string, FolderState>();
  /** Folders to look through, with the folder each was found in. */
  readonly #queue = new Map<string, Folder | undefined>();
  #scan: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #looks = 0;
  #events = 0;
  #closed = false;

  constructor(
    roots: readonly string[],
    reports: FolderReports,
    times: FolderTimes = { interval: 10_000, unwatchedInterval: 1_000 },
  ) {
    this.#roots = roots;
    this.#reports = reports;
    this.#times = times;
  }

  /** Resolves when every file has been named once. */
  async open(): Promise<void> {
    for (const root of this.#roots) this.#watchRoot(root);
    await this.scan();
    this.#scheduleScan();
  }

  /** Looks through everything; resolves when done. */
  scan(): Promise<void> {
    for (const root of this.#roots) this.#queue.set(root, undefined);
    return this.#drain();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const watcher of this.#rootWatchers) watcher.close();
    for (const { watcher } of this.#folders.values()) watcher?.close();
  }

  #drain(): Promise<void> {
    this.#scan ??= this.#lookThroughQueue().finally(() => {
      this.#scan = undefined;
      if (this.#queue.size > 0 && !this.#closed) void this.#drain();
    });
    return this.#scan;
  }

  async #lookThroughQueue(): Promise<void> {
    let begin = performance.now();
    for (const [path, parent] of this.#queue) {
      this.#queue.delete(path);
      for (const _ of this.#lookThrough(path, parent)) {
        if (this.#closed) return;
        if (performance.now() - begin < SLICE) continue;
        await nextTurn();
        begin = performance.now();
      }
    }
  }

  #scheduleScan(): void {
    if (this.#closed) return;
    const { interval, unwatchedInterval } = this.#times;
    const look = async () => {
      await (++this.#looks % THOROUGH === 0 ? this.scan() : this.#scanUntold());
      this.#scheduleScan();
    };
    this.#timer = setTimeout(() => void look(), this.#isWatched() ? interval : unwatchedInterval).unref();
  }

  /** Looks through those folders in which something may have changed that nobody has told. */
  #scanUntold(): Promise<void> {
    for (const root of this.#roots) if (!this.#folders.has(root)) this.#queue.set(root, undefined);
    for (const { path, parent, identity, isTold, watcher } of this.#folders.values()) {
      const stat = statOf(path);
      const isSame = isTold && watcher !== undefined && isFolder(stat) && identityOf(stat) === identity;
      if (!isSame) this.#queue.set(path, parent);
    }
    return this.#drain();
  }

  #isWatched(): boolean {
    if (this.#roots.some((root) => this.#states.get(root) !== 'there')) return false;
    return [...this.#folders.values()].every(({ watcher }) => watcher !== undefined);
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
    if (known?.identity === identity && known.watcher !== undefined) return known;
    known?.watcher?.close();
    const folder: Folder = {
      path,
      identity,
      parent,
      watcher: this.#watch(path),
      files: known?.files ?? new Set(),
      subfolders: known?.subfolders ?? new Set(),
      isTold: false,
    };
    this.#folders.set(path, folder);
    if (isNewRoot) {
      this.#states.set(path, 'there');
      this.#reports.onFolder(path, 'there');
    }
    return folder;
  }

  #leave(folder: Folder | undefined): void {
    if (folder === undefined) return;
    folder.watcher?.close();
    this.#folders.delete(folder.path);
    for (const file of folder.files) this.#reports.onFile(file);
    for (const subfolder of folder.subfolders) this.#leave(this.#folders.get(subfolder));
  }

  #watch(path: string): FSWatcher | undefined {
    try {
      const watcher = watch(path, (event, name) => this.#onEvent(path, event, name));
      watcher.on('error', (cause) => this.#onWatchError(path, watcher, cause));
      return watcher;
    } catch (cause) {
      this.#reportUnwatched(path, cause);
      return undefined;
    }
  }

  /** Tells of a root that is a symbolic link being swapped, or of one that is made anew. */
  #watchRoot(root: string): void {
    try {
      const watcher = watch(dirname(root), (_, name) => {
        if (name === basename(root)) this.#look(root, undefined);
      });
      watcher.on('error', () => watcher.close());
      this.#rootWatchers.push(watcher);
    } catch {
      // The next look at everything sees it too.
    }
  }

  #onEvent(path: string, event: string, name: string | null): void {
    const folder = this.#folders.get(path);
    if (this.#closed || folder === undefined) return;
    if (++this.#events % BURST === 0) void this.scan();
    if (name === null) {
      this.#look(path, folder.parent);
    } else if (event === 'rename' && name === basename(path)) {
      // The folder itself has been moved or removed, and its watcher with it.
      this.#forget(folder);
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

  #onWatchError(path: string, watcher: FSWatcher, cause: Error): void {
    const folder = this.#folders.get(path);
    watcher.close();
    if (this.#closed || folder?.watcher !== watcher) return;
    this.#reportUnwatched(path, cause);
    this.#forget(folder);
    this.#look(path, folder.parent);
  }

  #forget(folder: Folder): void {
    folder.watcher?.close();
    this.#folders.set(folder.path, { ...folder, watcher: undefined });
  }

  #look(path: string, parent: Folder | undefined): void {
    if (this.#closed) return;
    this.#queue.set(path, parent);
    void this.#drain();
  }

  #reportUnwatched(path: string, cause: unknown): void {
    const message = `Cannot watch folder "${path}", it is looked through every ${this.#times.unwatchedInterval} ms`;
    this.#reports.onFailure(new HeadgateError('FILE_READ', message, { retry: 'later', cause }));
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
