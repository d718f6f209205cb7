// Keeps the last good text of each manifest on disk, for an agent that starts while the manifest is broken, and the
// identities of the folders. Writes in the background, changes that come together at once.

import { basename, join } from 'node:path';
import { BackgroundWrite, type BackgroundWriteOptions } from '../../base/background-write.ts';
import type { DiskFile } from '../../base/disk-file.ts';
import { HeadgateError } from '../../base/errors.ts';
import { RecordLog } from '../../host/record-log.ts';

/** The key of a folder's identity instead of a manifest's name, which begins with no dot. */
const FOLDER = '.folder';
/** More are written at once: a start reads all manifests within a second. */
const MAX_WAITING_CHARACTERS = 4 * 1024 * 1024;

export class ManifestSnapshots {
  readonly #log: RecordLog;
  readonly #path: string;
  readonly #onFailure: (error: HeadgateError) => void;
  readonly #writing: BackgroundWrite;
  /** Manifest's path → its text as JSON; undefined: the snapshot is to be removed. */
  readonly #waiting = new Map<string, string | undefined>();
  /** Since the last write. */
  #waitingCharacters = 0;

  constructor(
    directory: string,
    onFailure: (error: HeadgateError) => void,
    times: Pick<BackgroundWriteOptions, 'delayMs' | 'retryMs'> = { delayMs: 2_000, retryMs: 10_000 },
  ) {
    this.#path = join(directory, 'snapshots');
    this.#log = new RecordLog(this.#path);
    this.#onFailure = onFailure;
    this.#writing = new BackgroundWrite({
      write: () => this.#write(),
      ...times,
      onFault: (cause) =>
        onFailure(new HeadgateError('FILE_WRITE', `Cannot keep manifests in "${directory}"`, { cause })),
    });
  }

  get file(): DiskFile {
    return this.#writing.file(this.#path);
  }

  /** undefined if there is none, or a damaged one. */
  load(path: string): Buffer | undefined {
    const waiting = this.#waiting.get(path);
    if (waiting === undefined && this.#waiting.has(path)) return undefined;
    const text = waiting === undefined ? this.#log.read(path) : JSON.parse(waiting);
    return typeof text === 'string' ? Buffer.from(text) : undefined;
  }

  /** True if the snapshot on disk is equal. */
  has(path: string, bytes: Buffer): boolean {
    return this.#log.has(path, jsonOf(bytes));
  }

  /** The manifests below a folder that have snapshots on disk, without `others`. */
  pathsIn(folder: string, others: Iterable<string> = []): readonly string[] {
    const known = new Set(others);
    const isIn = (path: string) => path.startsWith(join(folder, '/')) && basename(path) !== FOLDER;
    return [...this.#log.keys()].filter((path) => isIn(path) && !known.has(path)).sort();
  }

  /** True if the last folder at this path had the same identity. */
  hadFolder(folder: string, identity: string): boolean {
    return this.load(join(folder, FOLDER))?.toString() === identity;
  }

  saveFolder(folder: string, identity: string): void {
    if (!this.hadFolder(folder, identity)) this.save(join(folder, FOLDER), Buffer.from(identity));
  }

  /** `bytes` in UTF-8; an empty manifest has no snapshot. */
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

  /** Removes the snapshots of all other manifests and folders. */
  keepOnly(paths: Iterable<string>, folders: readonly string[] = []): void {
    const { damage } = this.#log;
    if (damage !== undefined) this.#onFailure(damage);
    const kept = new Set([...paths, ...folders.map((folder) => join(folder, FOLDER))]);
    for (const path of this.#log.keys()) if (!kept.has(path)) this.remove(path);
  }

  /** Writes now; resolves after one attempt. */
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
    // Unless it has changed in the meantime.
    for (const [path, json] of some) if (this.#waiting.get(path) === json) this.#waiting.delete(path);
  }
}

function jsonOf(bytes: Buffer): string {
  return JSON.stringify(bytes.toString('utf8'));
}
