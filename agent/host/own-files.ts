// The agent's sockets, pipes and small files that another process may remove or replace: one list, looked at every few
// seconds; what is not as the agent left it is made again. Owns its timer.

import type { Clock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { Fault } from '../base/fault.ts';
import { Rounds } from '../base/rounds.ts';
import type { Log } from './log.ts';

export interface OwnFile {
  readonly path: string;
  readonly kind: 'socket' | 'file';
  /** False if it is gone or replaced, or says something else. */
  readonly isIntact: () => boolean | Promise<boolean>;
  /** Errors: any; the next look tries again. */
  readonly restore: () => Promise<void>;
}

export interface OwnFilesOptions {
  readonly files: readonly OwnFile[];
  readonly onRestored: (kind: OwnFile['kind']) => void;
  readonly log: Log;
  readonly clock?: Clock;
}

const LOOK_INTERVAL_MS = 3_000;

export class OwnFiles {
  readonly #options: OwnFilesOptions;
  readonly #files: readonly { readonly file: OwnFile; readonly fault: Fault }[];
  readonly #rounds: Rounds;

  constructor(options: OwnFilesOptions) {
    const { files, log, clock } = options;
    this.#options = options;
    this.#files = files.map((file) => ({ file, fault: new Fault() }));
    this.#rounds = new Rounds({
      intervalMs: () => LOOK_INTERVAL_MS,
      work: () => this.#look(),
      onFailed: (error) => log.error("Cannot look at the agent's files", { error: messageOf(error) }),
      ...(clock && { clock }),
    });
  }

  start(): void {
    this.#rounds.start();
  }

  close(): void {
    this.#rounds.close();
  }

  async #look(): Promise<void> {
    const { onRestored, log } = this.#options;
    for (const { file, fault } of this.#files) {
      const { path, kind } = file;
      try {
        if (!(await file.isIntact())) {
          await file.restore();
          log.warn('A file of the agent was removed or changed: made again', { path });
          onRestored(kind);
        }
        fault.clear();
      } catch (error) {
        if (fault.set(messageOf(error)))
          log.error('Cannot make a file of the agent again', { path, error: fault.text });
      }
    }
  }
}
