// haproxy.cfg on disk: always complete and accepted by HAProxy, with a copy of the last file that a worker served.

import { existsSync } from 'node:fs';
import { link, readFile } from 'node:fs/promises';
import { serial } from '../../base/serial.ts';
import { copyAtomically, writeAtomically } from '../../host/atomic-file.ts';
import { type FileIdentity, identityOf, isSameFile } from '../../host/file-identity.ts';

export interface ConfigFileOptions {
  readonly mode?: number;
  /** Creates the folder and the other files that haproxy.cfg needs, if they are missing. Errors: FILE_WRITE. */
  readonly keepBeside?: () => Promise<void>;
  /** The file was written again because another process had changed it. */
  readonly onTampered?: () => void;
}

export class ConfigFile {
  readonly path: string;
  readonly #options: ConfigFileOptions;
  readonly #lastGood: string;
  #written: FileIdentity | undefined;
  /** A start can write while a reload still writes. */
  readonly #writes = serial();

  constructor(path: string, options: ConfigFileOptions = {}) {
    this.path = path;
    this.#options = options;
    this.#lastGood = `${path}.last-good`;
  }

  /** True if the file was written, or found with the right content, since the agent started. */
  get isKnown(): boolean {
    return this.#written !== undefined;
  }

  /** Called before each check and in each round of the monitor. Errors: FILE_WRITE. */
  async keepBeside(): Promise<void> {
    await this.#options.keepBeside?.();
  }

  /**
   * Does not touch a file that already has these bytes. Errors: FILE_WRITE; the file is then unchanged, or the last good
   * one if another process had removed it.
   */
  write(chunks: readonly Buffer[]): Promise<void> {
    return this.#writes.run(async () => {
      try {
        await this.#write(chunks);
      } catch (error) {
        // A hard link needs no room on a full disk; it fails if the file exists.
        await link(this.#lastGood, this.path).catch(() => undefined);
        throw error;
      }
    });
  }

  /** Copies the file, because a worker serves it. Errors: FILE_WRITE. */
  keepAsLastGood(): Promise<void> {
    return this.#writes.run(async () => {
      await copyAtomically(this.path, this.#lastGood);
    });
  }

  /** The same for a started or adopted worker: an existing copy stays. */
  async keepAsFirstGood(): Promise<void> {
    if (!existsSync(this.#lastGood)) await this.keepAsLastGood();
  }

  /** Restores the last good text, so that the next start of HAProxy finds a valid file. False if there is none yet. */
  restoreLastGood(): Promise<boolean> {
    return this.#writes.run(async () => {
      try {
        this.#written = await copyAtomically(this.#lastGood, this.path);
        return true;
      } catch {
        return false;
      }
    });
  }

  /** False if another process has changed or removed the file since the last write. */
  isUntouched(): boolean {
    return this.#written === undefined || isSameFile(identityOf(this.path), this.#written);
  }

  /**
   * `address port` of all listeners of a worker with this description; undefined if neither the file nor its last good
   * copy has that description.
   */
  async bindsUnder(description: string): Promise<ReadonlySet<string> | undefined> {
    for (const path of [this.path, this.#lastGood]) {
      const text = await readFile(path, 'utf8').catch(() => '');
      if (text.includes(`\n    description ${description}\n`)) return bindsIn(text);
    }
    return undefined;
  }

  async #write(chunks: readonly Buffer[]): Promise<void> {
    await this.keepBeside();
    if (this.#written === undefined) {
      const found = identityOf(this.path);
      if (await this.#hasContent(chunks)) {
        this.#written = found;
        return;
      }
    }
    const wasUntouched = this.isUntouched();
    this.#written = await writeAtomically(this.path, chunks, { mode: this.#options.mode ?? 0o600 });
    if (!wasUntouched) this.#options.onTampered?.();
  }

  async #hasContent(chunks: readonly Buffer[]): Promise<boolean> {
    const bytes = await readFile(this.path).catch(() => undefined);
    return bytes?.equals(Buffer.concat(chunks)) ?? false;
  }
}

/** The binds in a text of the agent's templates. */
function bindsIn(text: string): ReadonlySet<string> {
  const binds = new Set<string>();
  for (const [, v6, v4, port] of text.matchAll(/^ {4}bind (?:\[([^\]]+)\]|([0-9.]+)):(\d+)(?= |$)/gm))
    binds.add(`${v6 ?? v4} ${port}`);
  return binds;
}
