// Watches folders of manifests with their subfolders, or single files of a folder, and reports each file that may have changed: at once by inotify,
// within seconds if inotify does not cover it (network file systems, mounts, symbolic links), within a minute after lost
// events. Knows which folders are away: their objects still count.
// Reads directories and the times of files, never their content, in short slices.

import { basename, dirname, join } from 'node:path';
import { HeadgateError } from '../../base/errors.ts';
import { Rounds } from '../../base/rounds.ts';
import { Slice } from '../../base/slice.ts';
import type { Problem } from '../../model/load-balancer.ts';
import {
  entriesIn,
  identityOf,
  isBare,
  isFolder,
  isIn,
  isLocal,
  isReadable,
  stampOf,
  statOf,
} from './file-system.ts';
import { FolderWatchers } from './folder-watchers.ts';
import { fileProblem } from './manifest-file.ts';
import type { ManifestPaths } from './manifest-paths.ts';

export interface FolderReports {
  /** The file may have changed, appeared or gone. If its folder goes, each of its files is reported. */
  onFile(path: string): void;
  /** A root has gone, is back, or is another folder than before. */
  onFolder(folder: string): void;
  /** True if objects from this root count. */
  isMissed(folder: string): boolean;
  /** A folder cannot be watched: it is scanned more often instead. */
  onFailure(error: HeadgateError): void;
  /** True if a file of this stamp (`stampOf`) has been read already. */
  isRead(path: string, stamp: string): boolean;
}

/** `empty`: objects from it count, so it may be a mount point whose disk is away. */
type FolderState = 'there' | 'gone' | 'empty';

export interface FolderTimes {
  /** Between two scans of the folders that inotify does not cover, or that may have been replaced. */
  readonly intervalMs: number;
  /** The same while a folder is not watched or is gone. */
  readonly unwatchedIntervalMs: number;
}

interface Folder {
  readonly path: string;
  /** Differs if another directory is at the path (`identityOf`). */
  readonly identity: string;
  readonly parent: Folder | undefined;
  readonly files: Set<string>;
  readonly subfolders: Set<string>;
  /** inotify reports each change in it. */
  isCovered: boolean;
}

const DEFAULT_TIMES: FolderTimes = { intervalMs: 10_000, unwatchedIntervalMs: 1_000 };
/** One of so many scans is complete. */
const SCANS_PER_COMPLETE_ONE = 6;
/** After so many events a complete scan follows: the kernel's queue (16384 events) may have overflowed. */
const EVENTS_PER_SCAN = 4096;
const FAULTS = { gone: 'Cannot read the folder', empty: 'The folder is empty' } as const;

export class ManifestFolders {
  readonly #places: ManifestPaths;
  readonly #roots: readonly string[];
  readonly #reports: FolderReports;
  readonly #times: FolderTimes;
  readonly #folders = new Map<string, Folder>();
  readonly #watchers: FolderWatchers;
  /** Watches the folders above the roots: a root may be a link that is replaced, or be created again. */
  readonly #aboveRoots: FolderWatchers;
  readonly #scans: Rounds;
  /** By root, at its last scan. */
  readonly #states = new Map<string, FolderState>();
  /** Folders to scan → their parents. */
  readonly #queue = new Map<string, Folder | undefined>();
  #scanning: Promise<void> | undefined;
  #scanCount = 0;
  #events = 0;
  #isClosed = false;

  constructor(places: ManifestPaths, reports: FolderReports, times: FolderTimes = DEFAULT_TIMES) {
    const roots = places.folders;
    this.#places = places;
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
          if (dirname(root) === above && basename(root) === name) this.#scanFolder(root, undefined);
      },
      onLost: () => undefined,
    });
    this.#scans = new Rounds({
      intervalMs: () => (this.#isWatched() ? times.intervalMs : times.unwatchedIntervalMs),
      work: () => (++this.#scanCount % SCANS_PER_COMPLETE_ONE === 0 ? this.scan() : this.#scanUncovered()),
      onFailed: (cause) => {
        const message = 'Cannot scan the folders of manifests';
        reports.onFailure(new HeadgateError('FILE_READ', message, { retry: 'later', cause }));
      },
    });
  }

  /** Resolves when each file has been reported once. */
  async open(): Promise<void> {
    for (const above of new Set(this.#roots.map((root) => dirname(root)))) this.#aboveRoots.watch(above);
    await this.scan();
    if (!this.#isClosed) this.#scans.start();
  }

  /** A complete scan; resolves at its end. */
  scan(): Promise<void> {
    for (const root of this.#roots) this.#queue.set(root, undefined);
    return this.#drain();
  }

  close(): void {
    this.#isClosed = true;
    this.#scans.close();
    this.#aboveRoots.close();
    this.#watchers.close();
  }

  /** The root was away when the agent started. */
  assumeAway(root: string, state: 'gone' | 'empty'): void {
    this.#states.set(root, state);
  }

  isAway(root: string): boolean {
    return (this.#states.get(root) ?? 'there') !== 'there';
  }

  /** True for a file in a root that is away. */
  isInAway(path: string): boolean {
    return this.#roots.some((root) => this.isAway(root) && isIn(path, root));
  }

  problems(): readonly Problem[] {
    return [...this.#states].flatMap(([root, state]) =>
      state === 'there' ? [] : fileProblem(root, `${FAULTS[state]}; what was in it stays in force`),
    );
  }

  #drain(): Promise<void> {
    this.#scanning ??= this.#scanQueue().finally(() => {
      this.#scanning = undefined;
      if (this.#queue.size > 0 && !this.#isClosed) void this.#drain();
    });
    return this.#scanning;
  }

  async #scanQueue(): Promise<void> {
    const slice = new Slice();
    for (const [path, parent] of this.#queue) {
      this.#queue.delete(path);
      for (const _ of this.#entriesOf(path, parent)) {
        if (this.#isClosed) return;
        if (slice.isOver) await slice.breathe();
      }
    }
  }

  #scanUncovered(): Promise<void> {
    for (const root of this.#roots) if (!this.#folders.has(root)) this.#queue.set(root, undefined);
    for (const { path, parent, identity, isCovered } of this.#folders.values()) {
      const stat = statOf(path);
      const isSame = isCovered && this.#watchers.has(path) && isFolder(stat) && identityOf(stat) === identity;
      if (!isSame) this.#queue.set(path, parent);
    }
    return this.#drain();
  }

  #isWatched(): boolean {
    if (this.#roots.some((root) => this.#states.get(root) !== 'there')) return false;
    return [...this.#folders.keys()].every((path) => this.#watchers.has(path));
  }

  /** Scans a folder; yields between its entries. */
  *#entriesOf(path: string, parent: Folder | undefined): Generator<void> {
    const folder = this.#enter(path, parent);
    if (folder === undefined) return;
    const files = new Set<string>();
    const subfolders = new Set<string>();
    let isCovered = isLocal(path);
    for (const { name, isLink } of entriesIn(path)) {
      yield;
      // inotify does not report changes behind a link.
      if (isLink) isCovered = false;
      if (!this.#mayCount(path, name)) continue;
      const entry = join(path, name);
      const stat = statOf(entry);
      if (isFolder(stat)) {
        subfolders.add(entry);
        if (!isAbove(identityOf(stat), folder)) this.#queue.set(entry, folder);
      } else if (this.#isManifest(path, name)) {
        files.add(entry);
        if (!this.#reports.isRead(entry, stampOf(stat))) this.#reports.onFile(entry);
      }
    }
    folder.isCovered = isCovered;
    for (const gone of replace(folder.files, files)) this.#reports.onFile(gone);
    for (const gone of replace(folder.subfolders, subfolders)) this.#leave(this.#folders.get(gone));
  }

  /** The folder, which is watched then; undefined if there is none. */
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
      if (before !== undefined && before !== now) this.#reports.onFolder(path);
      return undefined;
    }
    if (known?.identity === identity && this.#watchers.has(path)) return known;
    const folder: Folder = {
      path,
      identity,
      parent,
      files: known?.files ?? new Set(),
      subfolders: known?.subfolders ?? new Set(),
      isCovered: false,
    };
    this.#folders.set(path, folder);
    const cause = this.#watchers.watch(path);
    if (cause !== undefined) this.#reportUnwatched(path, cause);
    if (isNewRoot) {
      this.#states.set(path, 'there');
      this.#reports.onFolder(path);
    }
    return folder;
  }

  /** False for an entry that is ignored, whatever it is. */
  #mayCount(folder: string, name: string): boolean {
    return this.#places.namesIn(folder)?.has(name) ?? !name.startsWith('.');
  }

  #isManifest(folder: string, name: string): boolean {
    return this.#places.namesIn(folder) !== undefined || isManifestName(name);
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
    if (++this.#events % EVENTS_PER_SCAN === 0) void this.scan();
    if (name === null) {
      this.#scanFolder(path, folder.parent);
    } else if (event === 'rename' && name === basename(path)) {
      // The folder itself was moved or removed, and its watcher with it.
      this.#watchers.forget(path);
      this.#scanFolder(path, folder.parent);
    } else if (!this.#mayCount(path, name)) {
      // Kubernetes replaces this link to replace all files of a mounted ConfigMap at once.
      if (name === '..data') this.#scanFolder(path, folder.parent);
    } else if (this.#isManifest(path, name)) {
      const entry = join(path, name);
      folder.files.add(entry);
      this.#reports.onFile(entry);
    } else {
      const entry = join(path, name);
      if (isFolder(statOf(entry)) || folder.subfolders.has(entry)) this.#scanFolder(path, folder.parent);
    }
  }

  #onLost(path: string, cause: unknown): void {
    const folder = this.#folders.get(path);
    if (folder === undefined) return;
    this.#reportUnwatched(path, cause);
    this.#scanFolder(path, folder.parent);
  }

  #reportUnwatched(path: string, cause: unknown): void {
    const message = `Cannot watch folder "${path}", scanning it every ${this.#times.unwatchedIntervalMs} ms instead`;
    this.#reports.onFailure(new HeadgateError('FILE_READ', message, { retry: 'later', cause }));
    this.#scans.retime();
  }

  #scanFolder(path: string, parent: Folder | undefined): void {
    if (this.#isClosed) return;
    this.#queue.set(path, parent);
    void this.#drain();
  }
}

function isManifestName(name: string): boolean {
  return /\.(?:ya?ml|json)$/.test(name);
}

/** Makes `known` equal to `now`; gives the entries that it removed. */
function replace(known: Set<string>, now: ReadonlySet<string>): readonly string[] {
  const gone = [...known].filter((entry) => !now.has(entry));
  for (const entry of gone) known.delete(entry);
  for (const entry of now) known.add(entry);
  return gone;
}

/** True for a folder above, to which a symbolic link leads back. */
function isAbove(identity: string, folder: Folder): boolean {
  for (let above: Folder | undefined = folder; above !== undefined; above = above.parent) {
    if (above.identity === identity) return true;
  }
  return false;
}
