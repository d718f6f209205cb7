// The one process of a daemon, as far as the agent knows it: finds out which one runs, starts it or waits for a supervisor
// that does, and stops it. The process outlives the agent. Owns no timer.

import type { ChildProcess } from 'node:child_process';
import { sleep } from '../../base/clock.ts';
import { HeadgateError } from '../../base/errors.ts';
import type { Log } from '../log.ts';
import { runsWith } from './find.ts';
import { atBegin, type DaemonKind } from './start.ts';
import { stopDaemon } from './stop.ts';

export interface StartedDaemon {
  readonly child: ChildProcess;
  readonly pid: number;
}

export interface DaemonProgram {
  readonly kind: DaemonKind;
  /** The file that the daemon reads, which is on its command line. */
  readonly config: string;
  /** The pid of the process that runs; undefined or 0 for none. */
  readonly find: () => Promise<number | undefined>;
  /** Resolves when the daemon serves. Errors: `missing` and `failed` of the kind. */
  readonly start: () => Promise<StartedDaemon>;
  /** After SIGTERM, until SIGKILL. */
  readonly endTimeoutMs: number;
  /** How long to wait for a supervisor that starts the daemon; undefined if the agent starts it. */
  readonly supervisorMs?: number | undefined;
}

const POLL_INTERVAL_MS = 100;

export class DaemonProcess {
  readonly #program: DaemonProgram;
  readonly #onExit: () => void;
  readonly #log: Log;
  #pid = 0;
  #hasStarted = false;

  /** `onExit`: a process that was started here has ended. */
  constructor(program: DaemonProgram, onExit: () => void, log: Log) {
    this.#program = program;
    this.#onExit = onExit;
    this.#log = log;
  }

  /** 0 if the daemon does not run. */
  get pid(): number {
    return this.#pid;
  }

  /** True if a start was tried here: the daemon may be there even if the start failed. */
  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  /** Finds out which process runs now; true if one that ran before has ended. Errors: those of `find`; FILE_READ. */
  async refresh(): Promise<boolean> {
    const before = this.#pid;
    this.#pid = await this.#current();
    const hasEnded = before !== 0 && this.#pid !== before;
    if (hasEnded) this.#log.error(`${atBegin(this.#program.kind)} has ended`, { pid: before });
    return hasEnded;
  }

  /** `details`: for the log. Errors: those of `start`; `failed` if the supervisor does not start the daemon. */
  async start(details: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const { kind, start, supervisorMs } = this.#program;
    if (supervisorMs !== undefined) {
      this.#pid = await this.#startedBySupervisor(supervisorMs);
      this.#log.info(`The supervisor has started ${kind.name}`, { pid: this.#pid });
      return;
    }
    this.#hasStarted = true;
    const { child, pid } = await start();
    child.once('exit', this.#onExit);
    this.#pid = pid;
    this.#log.info(`Started ${kind.name}`, { pid, ...details });
  }

  /** Ends the process that runs, whoever has started it. Errors: `failed` if the agent may not signal it. */
  async end(): Promise<void> {
    const { kind, config, endTimeoutMs: waitMs } = this.#program;
    await stopDaemon(kind, await this.#current(), config, [
      { signal: 'SIGTERM', waitMs },
      { signal: 'SIGKILL', waitMs },
    ]);
    this.#pid = 0;
  }

  /** A pid that is known and lives counts, whatever `find` says. */
  async #current(): Promise<number> {
    if (await runsWith(this.#pid, this.#program.config)) return this.#pid;
    return (await this.#program.find()) ?? 0;
  }

  async #startedBySupervisor(waitMs: number): Promise<number> {
    const { kind, find } = this.#program;
    for (const until = performance.now() + waitMs; performance.now() < until; await sleep(POLL_INTERVAL_MS)) {
      const pid = await find();
      if (pid) return pid;
    }
    throw new HeadgateError(kind.failed, `${atBegin(kind)} does not run`, { retry: 'later' });
  }
}
