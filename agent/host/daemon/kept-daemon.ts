// Keeps a daemon running with a text: adopts the process that runs, starts one, starts it again if it ends, and reloads or
// replaces it for another text. Retries in the background; the daemon outlives the agent.
//
// A daemon that cannot reload runs with the text on disk, always: the file is absent while the process of another text ends.

import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import { Reconciler } from '../../base/reconciler.ts';
import { Rounds } from '../../base/rounds.ts';
import { contentOf, writeAtomically } from '../atomic-file.ts';
import { DaemonLog } from '../daemon-output.ts';
import type { Log } from '../log.ts';
import { DaemonProcess, type DaemonProgram } from './daemon-process.ts';

export interface KeptDaemonOptions {
  readonly program: DaemonProgram;
  /** The file of the daemon's messages, which is kept small. */
  readonly messages: string;
  /** Prepares what the daemon needs, such as folders, and gives its text; undefined for no daemon. An error is the fault. */
  readonly text: () => Promise<string | undefined>;
  /** Makes the process use the file as it is now. Without it a process of another text is replaced. */
  readonly reload?: (pid: number) => Promise<void>;
  readonly hooks?: KeptDaemonHooks;
  /** Gets the reason why the daemon does not run with the text, if it is new; '' when it is over. */
  readonly onFault: (reason: string) => void;
  readonly log: Log;
}

/** An error of a hook is the fault, and is retried. */
export interface KeptDaemonHooks {
  /** Another process serves than before. */
  readonly onServes?: () => Promise<void>;
  /** No daemon is to run, and none does. */
  readonly onRemoved?: () => Promise<void>;
  /** After each periodic check. */
  readonly onChecked?: () => Promise<void>;
}

const CHECK_INTERVAL_MS = 5_000;
/** The rest after a start or a reload, so that a daemon that keeps ending does not occupy the host. */
const SPACING_MS = 100;
const BACKOFF = { firstMs: 200, mostMs: 30_000 } as const;
const MAX_LOG_BYTES = 4 * 1024 * 1024;

export class KeptDaemon {
  readonly #options: KeptDaemonOptions;
  readonly #process: DaemonProcess;
  readonly #reconciler: Reconciler;
  readonly #rounds: Rounds;
  readonly #fault = new Fault();
  readonly #messages: DaemonLog;
  #isStale = false;
  /** The process of the last onServes(). */
  #served = 0;

  constructor(options: KeptDaemonOptions) {
    const { program, messages, onFault, log } = options;
    this.#options = options;
    this.#messages = new DaemonLog(messages, MAX_LOG_BYTES);
    this.#process = new DaemonProcess(program, () => void this.keep(), log);
    this.#reconciler = new Reconciler({
      step: () => this.#step(),
      onDone: () => {
        if (this.#fault.clear()) onFault('');
      },
      onFailed: (error) => {
        const message = messageOf(error);
        if (this.#fault.set(message)) onFault(message);
      },
      spacingMs: SPACING_MS,
      backoff: BACKOFF,
    });
    this.#rounds = new Rounds({
      intervalMs: () => CHECK_INTERVAL_MS,
      work: () => this.#check(),
      onFailed: (error) => this.#reconciler.fail(error),
    });
  }

  /** 0 if the daemon does not run. */
  get pid(): number {
    return this.#process.pid;
  }

  /** Why the daemon does not run with its text; '' if it does. */
  get fault(): string {
    return this.#fault.text;
  }

  /** Brings the daemon to its text, now and from now on. Never rejects: an error is the fault. */
  keep(): Promise<void> {
    return this.#reconciler.reconcile();
  }

  /** Ends the process that runs, whoever has started it; another follows unless this is closed. Errors: `failed` of the kind. */
  end(): Promise<void> {
    return this.#process.end();
  }

  /** The daemon continues. */
  async close(): Promise<void> {
    await this.#reconciler.close();
    this.#rounds.close();
    this.#messages.close();
  }

  /** After close(): removes a daemon that was started here, for demonstrations and tests. */
  async stop(): Promise<void> {
    if (this.#process.hasStarted) await this.#remove();
  }

  /** True if it has started or reloaded the daemon. */
  async #step(): Promise<boolean> {
    const { program, text: textOf, hooks } = this.#options;
    const before = this.pid;
    // Without its file no daemon is left of an earlier agent, and the search for one is not free.
    const hasLooked = before !== 0 || existsSync(program.config);
    if (hasLooked) await this.#process.refresh();
    const text = await textOf();
    if (text === undefined) {
      await this.#remove();
      return false;
    }
    this.#rounds.start();
    // Another process may have removed the file of one that runs.
    if (!hasLooked) await this.#process.refresh();
    if ((await contentOf(program.config)) !== text) await this.#put(text);
    const isStarted = this.pid === 0;
    if (isStarted) await this.#start();
    else if (this.pid !== before) this.#adopt();
    const isReloaded = await this.#reload();
    if (this.pid !== this.#served) await hooks?.onServes?.();
    this.#served = this.pid;
    return isStarted || isReloaded;
  }

  /** Errors: FILE_WRITE; `failed` of the kind. */
  async #put(text: string): Promise<void> {
    const { program, reload } = this.#options;
    this.#isStale = true;
    if (reload === undefined) {
      await rm(program.config, { force: true });
      await this.#process.end();
    }
    await writeAtomically(program.config, [text]);
  }

  async #start(): Promise<void> {
    await this.#process.start();
    this.#isStale = false;
  }

  /** An earlier agent may have ended between the file and the reload. */
  #adopt(): void {
    const { program, log } = this.#options;
    this.#isStale = true;
    log.info(`Adopted ${program.kind.name}, which runs already`, { pid: this.pid });
  }

  /** True if a reload was needed. */
  async #reload(): Promise<boolean> {
    const { program, reload, log } = this.#options;
    if (!this.#isStale || reload === undefined) return false;
    await reload(this.pid);
    this.#isStale = false;
    log.info(`Reloaded ${program.kind.name}`, { pid: this.pid });
    return true;
  }

  /** The file goes first, because a supervisor may start the daemon as long as it is there. */
  async #remove(): Promise<void> {
    const { program, hooks } = this.#options;
    this.#rounds.close();
    if (this.pid !== 0 || existsSync(program.config)) {
      await rm(program.config, { force: true });
      await this.#process.end();
    }
    await hooks?.onRemoved?.();
  }

  async #check(): Promise<void> {
    await this.keep();
    this.#messages.trim(this.pid);
    if (this.fault === '') await this.#options.hooks?.onChecked?.();
  }
}
