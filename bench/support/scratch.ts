// What one row makes on the machine: a directory, processes, sockets. All of it is removed in reverse order at the end of
// the row, also after a failure or a signal.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export class Scratch {
  readonly directory: string;
  readonly #undo: (() => Promise<void> | void)[] = [];
  #cleaning: Promise<void> | undefined;

  private constructor(directory: string) {
    this.directory = directory;
    this.defer(() => rm(directory, { recursive: true, force: true, maxRetries: 5 }));
  }

  /** The path is short because the path of a unix socket has at most 107 bytes. */
  static async make(): Promise<Scratch> {
    return new Scratch(await mkdtemp(join(tmpdir(), 'bench-')));
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  /** During the clean-up it undoes at once, and throws to stop the caller from making more. */
  defer(undo: () => Promise<void> | void): void {
    if (this.#cleaning !== undefined) {
      void undo();
      throw new Error('The benchmark is stopping');
    }
    this.#undo.push(undo);
  }

  /** Cleans once, even if it is called several times. */
  clean(): Promise<void> {
    this.#cleaning ??= this.#undoAll();
    return this.#cleaning;
  }

  async #undoAll(): Promise<void> {
    for (let undo = this.#undo.pop(); undo !== undefined; undo = this.#undo.pop()) {
      try {
        await undo();
      } catch (error) {
        console.error('Cannot clean up:', error);
      }
    }
  }
}

const open = new Set<Scratch>();

/** Runs `work` with a new scratch and cleans it afterwards. */
export async function withScratch<T>(work: (scratch: Scratch) => Promise<T>): Promise<T> {
  const scratch = await Scratch.make();
  open.add(scratch);
  try {
    return await work(scratch);
  } finally {
    await scratch.clean();
    open.delete(scratch);
  }
}

/** Cleans every open scratch, after a signal. */
export async function cleanAll(): Promise<void> {
  await Promise.all([...open].map((scratch) => scratch.clean()));
}
