// Keeps the last good bytes of each manifest in a folder of the agent's own, so that a manifest that is broken when
// the agent starts is no loss, and which folders they were in. Written in the background, what has gathered in the
// meantime at once; a full disk harms nothing but this.

import { basename, join } from 'node:path';
import { HeadgateError } from '../../base/errors.ts';
import { SnapshotLog } from './snapshot-log.ts';

interface Snapshot {
  readonly bytes: Buffer;
  /** Of the manifest, milliseconds since the epoch. */
  readonly modified: number;
}

export interface SnapshotTimes {
  /** Milliseconds from a change to its snapshot: changes of one file in between cost one write. */
  readonly delay: number;
  /** Milliseconds to the next attempt after a failure. */
  readonly retry: number;
}

/** In the place of a manifest's name; those begin with no dot. */
const FOLDER = '.folder';

/** Bytes that are not kept in memory for longer than it takes to write them: a start reads all manifests within a second. */
const MOST_WAITING = 4 * 1024 * 1024;
const NOTHING: Snapshot = { bytes: Buffer.alloc(0), modified: 0 };

export class ManifestSnapshots {
  readonly #directory: string;
  readonly #onFailure: (error: HeadgateError) => void;
  readonly #times: SnapshotTimes;
  readonly #log: SnapshotLog;
  /** Manifest's path → what is to be written; `NOTHING`: the snapshot has to go. */
  readonly #waiting = new Map<string, Snapshot>();
  /** Bytes that were given since the last write. */
  #waitingBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  /** The end of what is being done; one thing at a time. */
  #done: Promise<void> = Promise.resolve();

  constructor(
    directory: string,
    onFailure: (error: HeadgateError) => void,
    times: SnapshotTimes = { delay: 2_000, retry: 10_000 },
  ) {
    this.#directory = directory;
    this.#onFailure = onFailure;
    this.#times = times;
    this.#log = new SnapshotLog(join(directory, 'snapshots'));
  }

  /** undefined where there is none, or one of no use, as a power loss may have left it. */
  load(path: string): Buffer | undefined {
    const waiting = this.#waiting.get(path)?.bytes;
    if (waiting !== undefined) return waiting.length === 0 ? undefined : waiting;
    return this.#log.read(path)?.subarray(titleOf(path).length);
  }

  /** Whether the snapshot that was written last is of a manifest of this size and time. */
  has(path: string, size: number, modified: number): boolean {
    return this.#log.has(path, titleOf(path).length + size, modified);
  }

  /** The manifests in a folder, or below it, of which there are snapshots on the disk; `others` than these. */
  pathsIn(folder: string, others: Iterable<string> = []): readonly string[] {
    const paths = this.#log.contents(others).map((bytes) => bytes.toString('utf8', 0, bytes.indexOf('\n')));
    return paths.filter((path) => path.startsWith(join(folder, '/')) && basename(path) !== FOLDER).sort();
  }

  /** Whether the folder was this one when it was last kept. */
  hadFolder(folder: string, identity: string): boolean {
    return this.load(join(folder, FOLDER))?.toString() === identity;
  }

  saveFolder(folder: string, identity: string): void {
    if (!this.hadFolder(folder, identity)) this.save(join(folder, FOLDER), Buffer.from(identity), 0);
  }

  save(path: string, bytes: Buffer, modified: number): void {
    this.#waiting.set(path, { bytes, modified });
    this.#waitingBytes += bytes.length;
    if (this.#waitingBytes > MOST_WAITING) void this.#next(() => this.#write());
    else this.#schedule(this.#times.delay);
  }

  remove(path: string): void {
    this.#waiting.set(path, NOTHING);
    this.#schedule(this.#times.delay);
  }

  /** Forgets the snapshots of all other manifests and folders. */
  keepOnly(paths: Iterable<string>, folders: readonly string[] = []): void {
    const kept = [...paths, ...folders.map((folder) => join(folder, FOLDER))];
    void this.#next(() => this.#log.keepOnly(kept));
  }

  /** Writes what waits, whether its time has come or not; resolves when that has been tried once. */
  async flush(): Promise<void> {
    await this.#next(() => this.#write());
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #schedule(delay: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#next(() => this.#write());
    }, delay).unref();
  }

  /** After what is being done already. Never rejects. */
  #next(work: () => Promise<void>): Promise<void> {
    this.#done = this.#done.then(work).catch((cause: unknown) => {
      const message = `Cannot keep manifests in "${this.#directory}"`;
      this.#onFailure(new HeadgateError('FILE_WRITE', message, { retry: 'later', cause }));
      if (this.#waiting.size > 0) this.#schedule(this.#times.retry);
    });
    return this.#done;
  }

  async #write(): Promise<void> {
    this.#waitingBytes = 0;
    const some = [...this.#waiting];
    await this.#log.append(
      some.map(([path, { bytes, modified }]) => ({
        path,
        bytes: bytes.length === 0 ? bytes : Buffer.concat([titleOf(path), bytes]),
        modified,
      })),
    );
    // Unless it has changed meanwhile.
    for (const [path, snapshot] of some) if (this.#waiting.get(path) === snapshot) this.#waiting.delete(path);
  }
}

/** Comes before the bytes of a manifest, which the log knows by its hash only. */
function titleOf(path: string): Buffer {
  return Buffer.from(`${path}\n`);
}
