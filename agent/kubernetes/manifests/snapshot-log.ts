// The file that snapshots of manifests are kept in: one that is appended to, because a file for each would have to be
// made, renamed and removed at every change, which costs more than all else that follows from it. Each record is a
// header of fixed length and the manifest's bytes; the last one of a manifest counts. When half of it is out of date
// it is written anew. Knows where everything is; reads and writes that one file.

import { hash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readSync, renameSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { writeChunks } from '../../host/atomic-file.ts';
import { makeFolder } from '../../host/make-directory.ts';

/** What is to be kept of a manifest from now on; no bytes: nothing. */
export interface LogEntry {
  readonly path: string;
  readonly bytes: Buffer;
  /** Milliseconds since the epoch. */
  readonly modified: number;
}

interface Entry extends Omit<LogEntry, 'path'> {
  readonly key: string;
}

/** Where a record is, header included. */
interface Place {
  readonly at: number;
  readonly length: number;
  readonly modified: number;
}

const { O_WRONLY, O_APPEND } = constants;

const HEADER = /^([\w-]{43}) ([0-9a-f]{8}) ( *\d+) ( *-?\d[\d.e+]*)\n$/;
const HEADER_LENGTH = 43 + 1 + 8 + 1 + 12 + 1 + 24 + 1;
/** Bytes out of date that are left alone however few the others are. */
const SLACK = 1024 * 1024;
/** Bytes that are read at once when the file is written anew. */
const WINDOW = 256 * 1024;

export class SnapshotLog {
  readonly #path: string;
  /** Hash of a manifest's path → its last record. */
  #places: Map<string, Place> | undefined;
  /** Where the last whole record ends. */
  #end = 0;
  /** Bytes of the records that count. */
  #live = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** undefined where there is none, or where a power loss has left half of one. */
  read(path: string): Buffer | undefined {
    const key = keyOf(path);
    const place = this.#index().get(key);
    return place && withFile(this.#path, (file) => readRecord(file, key, place));
  }

  /** What is kept of all manifests but these; reads no more than that. */
  contents(except: Iterable<string>): readonly Buffer[] {
    const places = new Map(this.#index());
    for (const path of except) places.delete(keyOf(path));
    if (places.size === 0) return [];
    const records = withFile(this.#path, (file) =>
      [...places].map(([key, place]) => readRecord(file, key, place)),
    );
    return (records ?? []).filter((bytes) => bytes !== undefined);
  }

  /** Whether the last record of the manifest is one of this size and time. */
  has(path: string, size: number, modified: number): boolean {
    const place = this.#index().get(keyOf(path));
    return place?.length === HEADER_LENGTH + size && Math.abs(place.modified - modified) < 0.01;
  }

  /** Errors: those of the file system; what is kept is then what was. */
  async append(entries: readonly LogEntry[]): Promise<void> {
    const places = this.#index();
    const keyed = entries.map(({ path, ...entry }): Entry => ({ key: keyOf(path), ...entry }));
    await this.#append(
      places,
      keyed.filter(({ key, bytes }) => bytes.length > 0 || places.has(key)),
    );
  }

  /** Forgets all others. Errors: those of the file system. */
  async keepOnly(paths: readonly string[]): Promise<void> {
    const places = this.#index();
    const kept = new Set(paths.map(keyOf));
    const others = [...places.keys()].filter((key) => !kept.has(key));
    await this.#append(
      places,
      others.map((key): Entry => ({ key, bytes: Buffer.alloc(0), modified: 0 })),
    );
  }

  async #append(places: Map<string, Place>, entries: readonly Entry[]): Promise<void> {
    if (entries.length === 0) return;
    const file = await this.#open(places);
    try {
      await writeChunks(
        file,
        entries.flatMap((entry) => [headerOf(entry), entry.bytes]),
      );
    } finally {
      await file.close();
    }
    for (const { key, bytes, modified } of entries) this.#put(places, key, bytes.length, modified);
    if (this.#end - this.#live > Math.max(this.#live, SLACK)) await this.#compact(places);
  }

  /** The next record is one of this manifest. */
  #put(places: Map<string, Place>, key: string, size: number, modified: number): void {
    const length = HEADER_LENGTH + size;
    this.#live -= places.get(key)?.length ?? 0;
    if (size === 0) {
      places.delete(key);
    } else {
      places.set(key, { at: this.#end, length, modified });
      this.#live += length;
    }
    this.#end += length;
  }

  /** Read from the file when first needed: the headers only. */
  #index(): Map<string, Place> {
    if (this.#places !== undefined) return this.#places;
    const places = new Map<string, Place>();
    this.#places = places;
    withFile(this.#path, (file) => {
      const { size } = fstatSync(file);
      const header = Buffer.allocUnsafe(HEADER_LENGTH);
      while (readSync(file, header, 0, HEADER_LENGTH, this.#end) === HEADER_LENGTH) {
        const [, key, , length, modified] = HEADER.exec(header.toString('latin1')) ?? [];
        const end = this.#end + HEADER_LENGTH + Number(length);
        if (key === undefined || end > size) break;
        this.#put(places, key, Number(length), Number(modified));
      }
    });
    return places;
  }

  /** To be appended to: the file as we left it, made anew where somebody has removed or shortened it. */
  async #open(places: Map<string, Place>): Promise<FileHandle> {
    const file = await open(this.#path, O_WRONLY | O_APPEND).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
    if (file !== undefined) {
      const { size } = fstatSync(file.fd);
      // A record that was not written to its end, by us or by an agent before us.
      if (size > this.#end) await file.truncate(this.#end);
      if (size >= this.#end) return file;
      await file.close();
    }
    await makeFolder(dirname(this.#path), 0o700);
    places.clear();
    this.#end = this.#live = 0;
    return open(this.#path, 'w', 0o600);
  }

  /** Writes what counts into a new file, which takes the place of the old one once it is on the disk. */
  async #compact(places: Map<string, Place>): Promise<void> {
    const draft = `${this.#path}.new`;
    const kept = [...places].sort(([, a], [, b]) => a.at - b.at);
    const from = await open(this.#path, 'r');
    const to = await open(draft, 'w', 0o600);
    try {
      for (const window of windowsOf(kept.map(([, place]) => place)))
        await writeChunks(to, await readPlaces(from, window));
      await to.sync();
    } finally {
      await Promise.all([from.close(), to.close()]);
    }
    // Both at once for whoever reads: nothing can come between.
    renameSync(draft, this.#path);
    this.#end = this.#live = 0;
    for (const [key, { length, modified }] of kept) {
      places.delete(key);
      this.#put(places, key, length - HEADER_LENGTH, modified);
    }
  }
}

/** In groups that stand near each other, each to be read at once; of one or more. */
function* windowsOf(places: readonly Place[]): Generator<readonly Place[], void, void> {
  let window: Place[] = [];
  for (const place of places) {
    const [first = place] = window;
    if (window.length > 0 && place.at + place.length - first.at > WINDOW) {
      yield window;
      window = [];
    }
    window.push(place);
  }
  if (window.length > 0) yield window;
}

async function readPlaces(file: FileHandle, places: readonly Place[]): Promise<readonly Buffer[]> {
  const [first, last] = [places[0], places.at(-1)];
  if (first === undefined || last === undefined) return [];
  const bytes = Buffer.allocUnsafe(last.at + last.length - first.at);
  const { bytesRead } = await file.read(bytes, 0, bytes.length, first.at);
  if (bytesRead < bytes.length) throw new Error('The file has become shorter');
  return places.map(({ at, length }) => bytes.subarray(at - first.at, at - first.at + length));
}

function keyOf(path: string): string {
  return hash('sha256', path, 'base64url');
}

function sumOf(bytes: Buffer): string {
  return crc32(bytes).toString(16).padStart(8, '0');
}

function headerOf({ key, bytes, modified }: Entry): Buffer {
  const [length, time] = [String(bytes.length).padStart(12), String(modified).padStart(24)];
  return Buffer.from(`${key} ${sumOf(bytes)} ${length} ${time}\n`, 'latin1');
}

function readRecord(file: number, key: string, { at, length }: Place): Buffer | undefined {
  const record = Buffer.allocUnsafe(length);
  if (readSync(file, record, 0, length, at) < length) return undefined;
  const bytes = record.subarray(HEADER_LENGTH);
  const [, its, sum] = HEADER.exec(record.toString('latin1', 0, HEADER_LENGTH)) ?? [];
  return its === key && sum === sumOf(bytes) ? bytes : undefined;
}

/** undefined where it cannot be read. */
function withFile<T>(path: string, use: (file: number) => T): T | undefined {
  let file: number | undefined;
  try {
    file = openSync(path, 'r');
    return use(file);
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
