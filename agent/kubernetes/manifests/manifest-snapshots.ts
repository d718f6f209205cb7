// Keeps the last good bytes of each manifest in a folder of the agent's own, so that a manifest that is broken when
// the agent starts is no loss. Written in the background, one file at a time; a full disk harms nothing but this.

import { hash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { mkdir, readdir, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { HeadgateError } from '../../errors.ts';

interface Snapshot {
  readonly bytes: Buffer;
  /** Of the manifest, milliseconds since the epoch; the snapshot gets the same. */
  readonly modified: number;
}

export interface SnapshotTimes {
  /** Milliseconds from a change to its snapshot: changes of one file in between cost one write. */
  readonly delay: number;
  /** Milliseconds to the next attempt after a failure. */
  readonly retry: number;
}

export class ManifestSnapshots {
  readonly #directory: string;
  readonly #onFailure: (error: HeadgateError) => void;
  readonly #times: SnapshotTimes;
  /** Manifest's path → what is to be written; undefined: the snapshot has to go. */
  readonly #waiting = new Map<string, Snapshot | undefined>();
  #timer: NodeJS.Timeout | undefined;
  /** Cuts the rests between writes short. */
  #hurry = new AbortController();
  /** The end of what is being done; one thing at a time. */
  #done: Promise<void> = Promise.resolve();

  constructor(
    directory: string,
    onFailure: (error: HeadgateError) => void,
    times: SnapshotTimes = { delay: 500, retry: 10_000 },
  ) {
    this.#directory = directory;
    this.#onFailure = onFailure;
    this.#times = times;
  }

  /** undefined where there is none, or an empty one, which a power loss may have left. */
  load(path: string): Buffer | undefined {
    if (this.#waiting.has(path)) return this.#waiting.get(path)?.bytes;
    try {
      const bytes = readFileSync(this.#fileOf(path));
      return bytes.length === 0 ? undefined : bytes;
    } catch {
      return undefined;
    }
  }

  /** Whether the snapshot on disk is of a manifest of this size and time. */
  has(path: string, size: number, modified: number): boolean {
    try {
      const stat = statSync(this.#fileOf(path), { throwIfNoEntry: false });
      return stat?.size === size && Math.abs(stat.mtimeMs - modified) < 0.01;
    } catch {
      return false;
    }
  }

  save(path: string, bytes: Buffer, modified: number): void {
    this.#waiting.set(path, { bytes, modified });
    this.#schedule(this.#times.delay);
  }

  remove(path: string): void {
    this.#waiting.set(path, undefined);
    this.#schedule(this.#times.delay);
  }

  /** Removes the snapshots of all other manifests, and what a crash has left half-written. */
  keepOnly(paths: Iterable<string>): void {
    const kept = new Set([...paths].map(nameOf));
    void this.#next(async () => {
      for (const name of await readdir(this.#directory).catch(() => [])) {
        if (OURS.test(name) && !kept.has(name)) await this.#try(() => rm(join(this.#directory, name)));
      }
    });
  }

  /** Writes what waits, whether its time has come or not; resolves when that has been tried once. */
  async flush(): Promise<void> {
    this.#hurry.abort();
    await this.#next(() => this.#writeAll());
    this.#hurry = new AbortController();
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #schedule(delay: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#next(() => this.#writeAll());
    }, delay).unref();
  }

  #next(work: () => Promise<void>): Promise<void> {
    this.#done = this.#done.then(work);
    return this.#done;
  }

  async #writeAll(): Promise<void> {
    for (const [path, snapshot] of this.#waiting) {
      const begin = performance.now();
      if (!(await this.#try(() => this.#write(path, snapshot)))) {
        this.#schedule(this.#times.retry);
        return;
      }
      // Unless it has changed meanwhile.
      if (this.#waiting.get(path) === snapshot) this.#waiting.delete(path);
      await this.#rest(REST * (performance.now() - begin));
    }
  }

  async #rest(milliseconds: number): Promise<void> {
    const { signal } = this.#hurry;
    await sleep(milliseconds, undefined, { ref: false, signal }).catch(() => undefined);
  }

  async #write(path: string, snapshot: Snapshot | undefined): Promise<void> {
    const file = this.#fileOf(path);
    if (snapshot === undefined) {
      await rm(file, { force: true });
      return;
    }
    const draft = `${file}.new`;
    await this.#writeDraft(draft, snapshot.bytes);
    const seconds = snapshot.modified / 1000;
    await utimes(draft, seconds, seconds);
    await rename(draft, file);
  }

  async #writeDraft(draft: string, bytes: Buffer): Promise<void> {
    try {
      await writeFile(draft, bytes, { mode: 0o600 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      await writeFile(draft, bytes, { mode: 0o600 });
    }
  }

  async #try(write: () => Promise<void>): Promise<boolean> {
    try {
      await write();
      return true;
    } catch (cause) {
      const message = `Cannot keep manifests in "${this.#directory}"`;
      this.#onFailure(new HeadgateError('FILE_WRITE', message, { retry: 'later', cause }));
      return false;
    }
  }

  #fileOf(path: string): string {
    return join(this.#directory, nameOf(path));
  }
}

/** The rest after each write, in times of the write: thousands of new manifests at a start take a quarter of a core. */
const REST = 3;

const OURS = /^[0-9a-f]{64}(?:\.new)?$/;

function nameOf(path: string): string {
  return hash('sha256', path);
}
