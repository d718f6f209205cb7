// Checks the agent's sockets, pipes and small files every few seconds and restores those that another process removed or
// changed. Owns its timer.

import type { Clock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { Fault } from '../base/fault.ts';
import { Rounds } from '../base/rounds.ts';
import type { Log } from './log.ts';

export interface OwnFile {
  readonly path: string;
  readonly kind: 'socket' | 'file';
  /** False if it is gone, replaced or changed. */
  readonly isIntact: () => boolean | Promise<boolean>;
  /** Errors: any; the next check retries. */
  readonly restore: () => Promise<void>;
}

export interface OwnFilesOptions {
  readonly files: readonly OwnFile[];
  readonly onRestored: (kind: OwnFile['kind']) => void;
  readonly log: Log;
  readonly clock?: Clock;
}

const CHECK_INTERVAL_MS = 3_000;

export class OwnFiles {
  readonly #options: OwnFilesOptions;
  readonly #files: readonly { readonly file: OwnFile; readonly fault: Fault }[];
  readonly #rounds: Rounds;

  constructor(options: OwnFilesOptions) {
    const { files, log, clock } = options;
    this.#options = options;
    this.#files = files.map((file) => ({ file, fault: new Fault() }));
    this.#rounds = new Rounds({
      intervalMs: () => CHECK_INTERVAL_MS,
      work: () => this.#check(),
      onFailed: (error) => log.error("Cannot check the agent's files", { error: messageOf(error) }),
      ...(clock && { clock }),
    });
  }

  start(): void {
    this.#rounds.start();
  }

  close(): void {
    this.#rounds.close();
  }

  async #check(): Promise<void> {
    const { onRestored, log } = this.#options;
    for (const { file, fault } of this.#files) {
      const { path, kind } = file;
      try {
        if (!(await file.isIntact())) {
          await file.restore();
          log.warn('Restored a file of the agent that was removed or changed', { path });
          onRestored(kind);
        }
        fault.clear();
      } catch (error) {
        if (fault.set(messageOf(error)))
          log.error('Cannot restore a file of the agent', { path, error: fault.text });
      }
    }
  }
}
