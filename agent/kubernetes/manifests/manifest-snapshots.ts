// Keeps the last good text of each manifest, so that a manifest that is broken when the agent starts is no loss, and
// which folders they were in. Written in the background, what has gathered in the meantime at once; a full disk harms
// nothing but this.

import { basename, join } from 'node:path';
import { BackgroundWrite } from '../../base/background-write.ts';
import { HeadgateError } from '../../base/errors.ts';
import { RecordLog } from '../../host/record-log.ts';

export interface SnapshotTimes {
  /** Milliseconds from a change to its snapshot: changes of one file in between cost one write. */
  readonly delay: number;
  /** Milliseconds to the next attempt after a failure. */
  readonly retry: number;
}

/** In the place of a manifest's name; those begin with no dot. */
const FOLDER = '.folder';
/** Kept in memory no longer than it takes to write them: a start reads all manifests within a second. */
const MAX_WAITING_CHARACTERS = 4 * 1024 * 1024;

export class ManifestSnapshots {
  readonly #log: RecordLog;
  readonly #onFailure: (error: HeadgateError) => void;
  readonly #writing: BackgroundWrite;
  /** Manifest's path → its text as JSON, to be written; undefined: the snapshot has to go. */
  readonly #waiting = new Map<string, string | undefined>();
  /** Of what was given since the last write. */
  #waitingCharacters = 0;

  constructor(
    directory: string,
    onFailure: (error: HeadgateError) => void,
    times: SnapshotTimes = { delay: 2_000, retry: 10_000 },
  ) {
    this.#log = new RecordLog(join(directory, 'snapshots'));
    this.#onFailure = onFailure;
    this.#writing = new BackgroundWrite({
      write: () => this.#write(),
      delayMs: times.delay,
      retryMs: times.retry,
      onFault: (cause) =>
        onFailure(new HeadgateError('FILE_WRITE', `Cannot keep manifests in "${directory}"`, { cause })),
    });
  }

  /** undefined if there is none, or one that a crash or a disk has damaged. */
  load(path: string): Buffer | undefined {
    const waiting = this.#waiting.get(path);
    if (waiting === undefined && this.#waiting.has(path)) return undefined;
    const text = waiting === undefined ? this.#log.read(path) : JSON.parse(waiting);
    return typeof text === 'string' ? Buffer.from(text) : undefined;
  }

  /** Whether the snapshot on the disk says the same. */
  has(path: string, bytes: Buffer): boolean {
    return this.#log.has(path, jsonOf(bytes));
  }

  /** The manifests in a folder, or below it, of which there are snapshots on the disk; `others` than these. */
  pathsIn(folder: string, others: Iterable<string> = []): readonly string[] {
    const known = new Set(others);
    const isIn = (path: string) => path.startsWith(join(folder, '/')) && basename(path) !== FOLDER;
    return [...this.#log.keys()].filter((path) => isIn(path) && !known.has(path)).sort();
  }

  /** Whether the folder was this one when it was last kept. */
  hadFolder(folder: string, identity: string): boolean {
    return this.load(join(folder, FOLDER))?.toString() === identity;
  }

  saveFolder(folder: string, identity: string): void {
    if (!this.hadFolder(folder, identity)) this.save(join(folder, FOLDER), Buffer.from(identity));
  }

  /** `bytes`: in UTF-8; an empty manifest needs no snapshot. */
  save(path: string, bytes: Buffer): void {
    const json = bytes.length === 0 ? undefined : jsonOf(bytes);
    const isKept = json !== undefined && !this.#waiting.has(path) && this.#log.has(path, json);
    if (isKept) return;
    this.#waiting.set(path, json);
    this.#waitingCharacters += bytes.length;
    if (this.#waitingCharacters > MAX_WAITING_CHARACTERS) void this.#writing.now();
    else this.#writing.soon();
  }

  remove(path: string): void {
    this.#waiting.set(path, undefined);
    this.#writing.soon();
  }

  /** Forgets the snapshots of all other manifests and folders. */
  keepOnly(paths: Iterable<string>, folders: readonly string[] = []): void {
    const { damage } = this.#log;
    if (damage !== undefined) this.#onFailure(damage);
    const kept = new Set([...paths, ...folders.map((folder) => join(folder, FOLDER))]);
    for (const path of this.#log.keys()) if (!kept.has(path)) this.remove(path);
  }

  /** Writes what waits; resolves when that has been tried once. */
  async flush(): Promise<void> {
    await this.#writing.now();
  }

  async close(): Promise<void> {
    await this.#writing.close();
  }

  async #write(): Promise<void> {
    this.#waitingCharacters = 0;
    const some = [...this.#waiting];
    await this.#log.write(some);
    // Unless it has changed meanwhile.
    for (const [path, json] of some) if (this.#waiting.get(path) === json) this.#waiting.delete(path);
  }
}

function jsonOf(bytes: Buffer): string {
  return JSON.stringify(bytes.toString('utf8'));
}
