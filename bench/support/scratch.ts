// What one row leaves behind on the machine, so that it can be taken away again: a directory, processes, sockets.
// Undone in reverse order at the end of the row, also after a failure or a signal.

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

  /** Short, because the address of a unix socket has room for 107 bytes only. */
  static async make(): Promise<Scratch> {
    return new Scratch(await mkdtemp(join(tmpdir(), 'bench-')));
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  /** Where it is too late it is undone at once, and what goes on making things is stopped by an error. */
  defer(undo: () => Promise<void> | void): void {
    if (this.#cleaning !== undefined) {
      void undo();
      throw new Error('The benchmark is being stopped');
    }
    this.#undo.push(undo);
  }

  /** Once, however often it is called. */
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

/** Runs `work` with a scratch of its own and cleans up behind it. */
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

/** After a signal: everything that is open now. */
export async function cleanAll(): Promise<void> {
  await Promise.all([...open].map((scratch) => scratch.clean()));
}
