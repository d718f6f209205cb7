// A record log: a file of records by key that outlives the agent. Changes are appended, the last record of a key counts, and
// the file is rewritten once more than half of it is out of date. Each record has a checksum, so that a damaged record costs
// only itself. Owns the file; the caller begins a write only after the end of the last one.
// Why: docs/design/decisions/0026-record-log.md

import { closeSync, constants, openSync, readFileSync, readSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { HeadgateError } from '../base/errors.ts';
import { writeAtomically, writeChunks } from './atomic-file.ts';
import { type FileIdentity, identityOf, identityOfOpen, isSameFile } from './file-identity.ts';
import { makeFolder } from './make-directory.ts';

/** `json`: the value on one line; undefined: the key has no record any more. */
export type RecordChange = readonly [key: string, json: string | undefined];

/** A record's line in the file, with its newline. */
interface Position {
  readonly at: number;
  readonly length: number;
  readonly sum: number;
}

const { O_WRONLY, O_APPEND, O_CREAT } = constants;
const NEWLINE = 0x0a;
const BLANK = 0x20;
/** Fewer bytes out of date cause no rewrite. */
const SLACK_BYTES = 1024 * 1024;

export class RecordLog {
  readonly path: string;
  readonly #all: (() => Iterable<RecordChange>) | undefined;
  #positions: Map<string, Position> | undefined;
  /** The end of the last complete line. */
  #end = 0;
  /** Bytes of the records that count. */
  #live = 0;
  #damaged = 0;
  /** The file after this agent's last write. */
  #written: FileIdentity | undefined;

  /**
   * `all`: all records. With it the first write replaces the whole file, and so does a write after another process has
   * changed the file. Without it the records in the file count.
   */
  constructor(path: string, all?: () => Iterable<RecordChange>) {
    this.path = path;
    this.#all = all;
  }

  /** For the log, if lines are damaged or come from another version. */
  get damage(): HeadgateError | undefined {
    this.#index();
    if (this.#damaged === 0) return undefined;
    const message = `${this.#damaged} lines of "${this.path}" are damaged and ignored`;
    return new HeadgateError('FILE_READ', message, { retry: 'never' });
  }

  keys(): Iterable<string> {
    return this.#index().keys();
  }

  /** True if the key has this record; does not read the record. */
  has(key: string, json: string): boolean {
    const position = this.#index().get(key);
    return position !== undefined && position.sum === crc32(contentOf(key, json));
  }

  /** undefined if there is none, or if it is damaged. */
  read(key: string): unknown {
    const position = this.#index().get(key);
    return position && withFile(this.path, (file) => valueIn(lineAt(file, position)));
  }

  /** All records in the order of their writes. Reads the file once. */
  *values(): Generator<readonly [key: string, value: unknown], void, void> {
    const positions = [...this.#index()];
    const bytes = this.#bytes();
    for (const [key, { at, length }] of positions) {
      const value = valueIn(bytes.subarray(at, at + length));
      if (value !== undefined) yield [key, value];
    }
  }

  /** Appends the changes. Errors: FILE_WRITE, and those of reading; the older records stay then. */
  async write(changes: Iterable<RecordChange>): Promise<void> {
    const isOwn = isSameFile(identityOf(this.path), this.#written);
    if (this.#all !== undefined && (!isOwn || this.#written === undefined)) return this.#rewrite(this.#all());
    if (!isOwn) this.#positions = undefined;
    const positions = this.#index();
    const news = [...changes].filter(([key, json]) => json !== undefined || positions.has(key));
    if (news.length > 0) await this.#append(news);
    if (this.#end - this.#live <= Math.max(this.#live, SLACK_BYTES)) return;
    if (this.#all === undefined) await this.#compact(positions);
    else await this.#rewrite(this.#all());
  }

  async #append(changes: readonly RecordChange[]): Promise<void> {
    const lines = changes.map(([key, json]) => lineOf(key, json));
    // Unknown until the write has ended.
    this.#written = undefined;
    await makeFolder(dirname(this.path), 0o700);
    // The system's own words do not name the file of a failed write.
    await this.#appendLines(lines).catch((cause: unknown) => {
      throw new HeadgateError('FILE_WRITE', `Cannot write "${this.path}"`, { retry: 'later', cause });
    });
    for (const [at, [key]] of changes.entries()) this.#put(key, lines[at] as Buffer);
  }

  async #appendLines(lines: readonly Buffer[]): Promise<void> {
    const file = await open(this.path, O_WRONLY | O_APPEND | O_CREAT, 0o600);
    try {
      // An incomplete line of a crash.
      await file.truncate(this.#end);
      await writeChunks(file, lines);
      await file.datasync();
      this.#written = await identityOfOpen(file);
    } finally {
      await file.close();
    }
  }

  async #rewrite(records: Iterable<RecordChange>): Promise<void> {
    await makeFolder(dirname(this.path), 0o700);
    await this.#replace(records, ([key, json]) => [key, lineOf(key, json)]);
  }

  /** Keeps the lines that count. */
  async #compact(positions: ReadonlyMap<string, Position>): Promise<void> {
    const file = openSync(this.path, 'r');
    try {
      await this.#replace([...positions], ([key, position]) => [key, lineAt(file, position)]);
    } finally {
      closeSync(file);
    }
  }

  /** Replaces the file and its index. */
  async #replace<T>(items: Iterable<T>, lineOfItem: (item: T) => readonly [string, Buffer]): Promise<void> {
    this.#written = undefined;
    this.#forget();
    const put = (key: string, line: Buffer): void => this.#put(key, line);
    const lines = function* (): Generator<Buffer, void, void> {
      for (const item of items) {
        const [key, line] = lineOfItem(item);
        put(key, line);
        yield line;
      }
    };
    try {
      this.#written = await writeAtomically(this.path, lines());
    } catch (error) {
      this.#positions = undefined;
      throw error;
    }
  }

  #forget(): Map<string, Position> {
    this.#positions = new Map();
    this.#end = this.#live = this.#damaged = 0;
    return this.#positions;
  }

  /** Adds the next line of the file to the index. */
  #put(key: string, line: Buffer): void {
    const positions = this.#index();
    this.#live -= positions.get(key)?.length ?? 0;
    // The map has the order of the file.
    positions.delete(key);
    if (line.includes(BLANK, CONTENT)) {
      positions.set(key, { at: this.#end, length: line.length, sum: sumIn(line) });
      this.#live += line.length;
    }
    this.#end += line.length;
  }

  /** Read from the file when first needed. */
  #index(): Map<string, Position> {
    if (this.#positions !== undefined) return this.#positions;
    const positions = this.#forget();
    if (this.#all === undefined) this.#written = identityOf(this.path);
    const bytes = this.#bytes();
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, this.#end)) {
      const line = bytes.subarray(this.#end, end + 1);
      const key = keyIn(line);
      if (key !== undefined) this.#put(key, line);
      else {
        this.#damaged++;
        this.#end += line.length;
      }
    }
    return positions;
  }

  #bytes(): Buffer {
    return withFile(this.path, (file) => readFileSync(file)) ?? Buffer.alloc(0);
  }
}

/** A line: a checksum of its content, a blank, and the content: the key, a blank and the value, or only the key. */
const CONTENT = 'xxxxxxxx '.length;

function contentOf(key: string, json: string | undefined): string {
  // The first blank ends the key.
  const name = JSON.stringify(key).replaceAll(' ', '\\u0020');
  return json === undefined ? name : `${name} ${json}`;
}

function lineOf(key: string, json: string | undefined): Buffer {
  const content = contentOf(key, json);
  return Buffer.from(`${crc32(content).toString(16).padStart(8, '0')} ${content}\n`);
}

function sumIn(line: Buffer): number {
  return Number.parseInt(line.toString('latin1', 0, CONTENT - 1), 16);
}

/** undefined if the line is damaged. */
function keyIn(line: Buffer): string | undefined {
  if (crc32(line.subarray(CONTENT, -1)) !== sumIn(line)) return undefined;
  const blank = line.indexOf(BLANK, CONTENT);
  try {
    const key: unknown = JSON.parse(line.toString('utf8', CONTENT, blank < 0 ? line.length : blank));
    return typeof key === 'string' ? key : undefined;
  } catch {
    return undefined;
  }
}

/** undefined if the line is damaged. */
function valueIn(line: Buffer): unknown {
  return keyIn(line) === undefined
    ? undefined
    : JSON.parse(line.toString('utf8', line.indexOf(BLANK, CONTENT)));
}

function lineAt(file: number, { at, length }: Position): Buffer {
  const line = Buffer.allocUnsafe(length);
  return line.subarray(0, readSync(file, line, 0, length, at));
}

/** undefined if the file cannot be read. */
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
