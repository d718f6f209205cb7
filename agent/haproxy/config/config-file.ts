// haproxy.cfg on disk: always whole, always the last text that HAProxy has accepted, with the one that a worker was
// last seen to serve kept beside it.

import { existsSync } from 'node:fs';
import { link, readFile, unlink } from 'node:fs/promises';
import { copyAtomically, renameDurably, writeAtomically, writeDurably } from '../../host/atomic-file.ts';
import { type FileIdentity, identityOf, isSameFile } from '../../host/file-identity.ts';

export interface ConfigFileOptions {
  readonly mode?: number;
  /** Makes the folder, and what is in it that the file refers to, where it is not there. Errors: FILE_WRITE. */
  readonly keepBeside?: () => Promise<void>;
  /** The file was written again because of what someone else had made of it. */
  readonly onTampered?: () => void;
}

export class ConfigFile {
  readonly path: string;
  readonly #options: ConfigFileOptions;
  readonly #lastGood: string;
  #written: FileIdentity | undefined;
  /** One write after the other: a start may come while a reload is still at it. */
  #writing: Promise<unknown> = Promise.resolve();
  /** Stands beside the file, or will soon. */
  #draft:
    | { readonly chunks: readonly Buffer[]; readonly written: Promise<FileIdentity | undefined> }
    | undefined;

  constructor(path: string, options: ConfigFileOptions = {}) {
    this.path = path;
    this.#options = options;
    this.#lastGood = `${path}.last-good`;
  }

  /** Whether it was written, or found to hold what it should, since the start. */
  get isKnown(): boolean {
    return this.#written !== undefined;
  }

  /** To be called before HAProxy is shown any text, and from time to time. Errors: FILE_WRITE. */
  async keepBeside(): Promise<void> {
    await this.#options.keepBeside?.();
  }

  /**
   * Writes beside the file what `write` will most likely be given next, the very same list, which has only a name to
   * get then. Never throws: where this fails, `write` says why.
   */
  draft(chunks: readonly Buffer[]): void {
    const before = this.#draft?.written ?? Promise.resolve();
    const written = before
      .then(() => writeDurably(this.#draftPath, chunks, this.#mode))
      .catch(() => undefined);
    this.#draft = { chunks, written };
  }

  /**
   * At the start it does not touch a file that has these bytes. Errors: FILE_WRITE; the file is then as it was, or, where
   * somebody has removed it, the last good one.
   */
  write(chunks: readonly Buffer[]): Promise<void> {
    return this.#inTurn(async () => {
      try {
        await this.#write(chunks);
      } catch (error) {
        // A second name, which a full disk has room for; where the file is there this fails.
        await link(this.#lastGood, this.path).catch(() => undefined);
        throw error;
      }
    });
  }

  /** Keeps a copy of what stands in the file, because a worker was seen to serve it. Errors: FILE_WRITE. */
  keepAsLastGood(): Promise<void> {
    return this.#inTurn(async () => {
      await copyAtomically(this.path, this.#lastGood);
    });
  }

  /** The same for a worker that was not started by a reload: where there is a copy, that one is good as well. */
  async keepAsFirstGood(): Promise<void> {
    if (!existsSync(this.#lastGood)) await this.keepAsLastGood();
  }

  /**
   * Puts the last good text back, so that whoever starts HAProxy next finds a file that works. False where there is none
   * yet: the rejected file is no worse than no file.
   */
  restoreLastGood(): Promise<boolean> {
    return this.#inTurn(async () => {
      try {
        this.#written = await copyAtomically(this.#lastGood, this.path);
        return true;
      } catch {
        return false;
      }
    });
  }

  /** False where someone else has changed or removed the file since we wrote it. */
  isUntouched(): boolean {
    return this.#written === undefined || isSameFile(identityOf(this.path), this.#written);
  }

  /**
   * `address port` of all that a worker with this description listens on; undefined where neither the file nor the
   * last good one has that description.
   */
  async placesUnder(description: string): Promise<ReadonlySet<string> | undefined> {
    for (const path of [this.path, this.#lastGood]) {
      const text = await readFile(path, 'utf8').catch(() => '');
      if (text.includes(`\n    description ${description}\n`)) return placesIn(text);
    }
    return undefined;
  }

  #inTurn<T>(write: () => Promise<T>): Promise<T> {
    const turn = this.#writing.then(write);
    this.#writing = turn.catch(() => undefined);
    return turn;
  }

  async #write(chunks: readonly Buffer[]): Promise<void> {
    await this.keepBeside();
    if (this.#written === undefined) {
      const found = identityOf(this.path);
      if (await this.#holds(chunks)) {
        this.#written = found;
        return;
      }
    }
    const wasUntouched = this.isUntouched();
    const drafted = await this.#drafted(chunks);
    if (drafted !== undefined) await renameDurably(this.#draftPath, this.path);
    this.#written = drafted ?? (await writeAtomically(this.path, chunks, { mode: this.#mode }));
    if (!wasUntouched) this.#options.onTampered?.();
  }

  get #mode(): number {
    return this.#options.mode ?? 0o600;
  }

  get #draftPath(): string {
    return `${this.path}.draft`;
  }

  /** What the draft is where this list stands in it; another draft is thrown away. */
  async #drafted(chunks: readonly Buffer[]): Promise<FileIdentity | undefined> {
    const draft = this.#draft;
    if (draft === undefined) return undefined;
    const written = await draft.written;
    this.#draft = undefined;
    if (written !== undefined && draft.chunks === chunks) return written;
    await unlink(this.#draftPath).catch(() => undefined);
    return undefined;
  }

  async #holds(chunks: readonly Buffer[]): Promise<boolean> {
    const bytes = await readFile(this.path).catch(() => undefined);
    return bytes?.equals(Buffer.concat(chunks)) ?? false;
  }
}

/** As our own templates write them. */
function placesIn(text: string): ReadonlySet<string> {
  const places = new Set<string>();
  for (const [, v6, v4, port] of text.matchAll(/^ {4}bind (?:\[([^\]]+)\]|([0-9.]+)):(\d+)(?= |$)/gm))
    places.add(`${v6 ?? v4} ${port}`);
  return places;
}
