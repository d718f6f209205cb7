// A folder with exactly these files, for another program: written before it reads them, written again if another process removes
// them, removed when nothing needs them. One change at a time; owns the files.

import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { serial } from '../base/serial.ts';
import { Slice } from '../base/slice.ts';
import { replaceInMemory } from './atomic-file.ts';
import { type FileIdentity, identityOf, isSameFile } from './file-identity.ts';
import { KeptFile } from './kept-file.ts';
import { makeFolder } from './make-directory.ts';

export interface NamedText {
  readonly path: string;
  /** Equal ids at one path have equal texts. */
  readonly id: string;
  /** undefined: the file stays as it is, such as one of an earlier agent. */
  readonly text: () => string | undefined;
}

export interface FileSetOptions {
  readonly folder: string;
  readonly fileMode: number;
  readonly folderMode: number;
  /** The folder is in memory: its files are not flushed, and their content is not compared. */
  readonly isInMemory?: boolean;
}

interface Written {
  readonly id: string;
  /** Writes the file again if it is not as it was written. */
  readonly keep: () => void | Promise<void>;
}

export class FileSet {
  readonly #options: FileSetOptions;
  readonly #changes = serial();
  /** By path. */
  readonly #files = new Map<string, Written>();
  /** The folder after the last change: another one shows that another process has added or removed files. */
  #folder: FileIdentity | undefined;

  constructor(options: FileSetOptions) {
    this.#options = options;
  }

  /** Brings these files to their texts, which are asked for in turn; the others stay. Errors: FILE_WRITE. */
  write(files: Iterable<NamedText> | AsyncIterable<NamedText>): Promise<void> {
    return this.#change(async () => {
      const slice = new Slice();
      let hasFolder = false;
      for await (const { path, id, text: textOf } of files) {
        if (slice.isOver) await slice.breathe();
        if (this.#files.get(path)?.id === id) continue;
        const text = textOf();
        if (text === undefined) continue;
        if (!hasFolder) await this.#makeFolder();
        hasFolder = true;
        const keep = await this.#write(path, text);
        this.#files.set(path, { id, keep });
      }
    });
  }

  /** Writes files again that another process has removed or, on a disk, changed. Errors: FILE_WRITE. */
  async keep(): Promise<void> {
    const { folder, isInMemory } = this.#options;
    if (this.#files.size === 0 || (isInMemory && isSameFile(identityOf(folder), this.#folder))) return;
    await this.#change(async () => {
      await this.#makeFolder();
      for (const { keep } of this.#files.values()) await keep();
    });
  }

  /** Removes all other files, also those of an earlier agent. */
  keepOnly(used: ReadonlySet<string>): Promise<void> {
    const { folder } = this.#options;
    return this.#change(async () => {
      for (const file of await readdir(folder).catch(() => [])) {
        const path = join(folder, file);
        if (used.has(path)) continue;
        this.#files.delete(path);
        await rm(path, { force: true });
      }
    });
  }

  #change(work: () => Promise<void>): Promise<void> {
    return this.#changes.run(async () => {
      try {
        await work();
      } finally {
        this.#folder = identityOf(this.#options.folder);
      }
    });
  }

  #makeFolder(): Promise<unknown> {
    return makeFolder(this.#options.folder, this.#options.folderMode);
  }

  async #write(path: string, text: string): Promise<Written['keep']> {
    const { fileMode, isInMemory } = this.#options;
    if (isInMemory) {
      replaceInMemory(path, text, fileMode);
      return () => {
        if (identityOf(path) === undefined) replaceInMemory(path, text, fileMode);
      };
    }
    const file = new KeptFile(path, text, fileMode);
    await file.keep();
    return () => file.keep();
  }
}
