// The HAProxy that writes the connection log to a file, from a socket, so that no worker with traffic waits for the disk. It
// outlives the agent, which adopts it, starts it again if it has ended, and makes the file again if it is gone.

import { existsSync, statSync } from 'node:fs';
import { open, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import { Rounds } from '../../base/rounds.ts';
import { writeAtomically } from '../../host/atomic-file.ts';
import { runsWith, startedWith } from '../../host/daemon/find.ts';
import { type DaemonKind, startDaemon, TO_APPEND } from '../../host/daemon/start.ts';
import { stopDaemon } from '../../host/daemon/stop.ts';
import { DaemonLog } from '../../host/daemon-output.ts';
import type { Log } from '../../host/log.ts';
import { makeFolder } from '../../host/make-directory.ts';

export interface LogWriterOptions {
  /** The program of HAProxy. */
  readonly executable: string;
  /** The file; '' for none: a writer of an earlier agent is stopped. */
  readonly file: string;
  readonly socket: string;
  /** Its configuration. */
  readonly text: string;
  readonly log: Log;
}

const WRITER: DaemonKind = { name: 'The log writer', missing: 'HAPROXY_MISSING', failed: 'HAPROXY_START' };
const CHECK_INTERVAL_MS = 5_000;
const START_TIMEOUT_MS = 5_000;
/** It has no connections to end. */
const END_TIMEOUT_MS = 1_000;
const MAX_LOG_BYTES = 1024 * 1024;

export class LogWriter {
  readonly #options: LogWriterOptions;
  readonly #config: string;
  readonly #messagesFile: string;
  readonly #messages: DaemonLog;
  readonly #rounds: Rounds;
  readonly #fault = new Fault();
  #pid = 0;

  constructor(options: LogWriterOptions) {
    const folder = dirname(options.socket);
    this.#options = options;
    this.#config = join(folder, 'log-writer.cfg');
    this.#messagesFile = join(folder, 'log-writer.log');
    this.#messages = new DaemonLog(this.#messagesFile, MAX_LOG_BYTES);
    this.#rounds = new Rounds({
      intervalMs: () => CHECK_INTERVAL_MS,
      work: () => this.#check(),
      onFailed: (error) => this.#failed(error),
    });
  }

  /** Adopts the writer that runs, or starts one. Never rejects: a fault is logged, and retried. */
  async start(): Promise<void> {
    await this.#rounds.now();
    if (this.#options.file !== '') this.#rounds.start();
  }

  /** The writer continues. */
  close(): void {
    this.#rounds.close();
    this.#messages.close();
  }

  /** After close(). Errors: HAPROXY_START if the agent may not signal it. */
  async stop(): Promise<void> {
    for (const pid of await this.running())
      await stopDaemon(WRITER, pid, this.#config, [
        { signal: 'SIGTERM', waitMs: END_TIMEOUT_MS },
        { signal: 'SIGKILL', waitMs: END_TIMEOUT_MS },
      ]);
    this.#pid = 0;
  }

  async #check(): Promise<void> {
    const { file, text, log } = this.#options;
    if (file === '') {
      // Without its configuration there has been no writer.
      if (!existsSync(this.#config)) return;
      await this.stop();
      await rm(this.#config, { force: true });
      return;
    }
    if (!(await runsWith(this.#pid, this.#config))) await this.#adopt();
    const isOurs = (await contentOf(this.#config)) === text && isOpenIn(this.#pid, file);
    if (!isOurs) await this.#start();
    this.#messages.trim(this.#pid);
    if (this.#fault.clear()) log.info('The connection log is written again', { file });
  }

  async #adopt(): Promise<void> {
    const [found = 0] = await this.running();
    if (found === 0 && this.#pid !== 0)
      this.#options.log.warn('The log writer has ended', { pid: this.#pid });
    this.#pid = found;
  }

  /** The pids of writers, of this agent or an earlier one. */
  async running(): Promise<readonly number[]> {
    const command = ['-db', '-f', this.#config].join(' ');
    return [...(await startedWith((words) => words.join(' ').trimEnd().endsWith(command))).keys()];
  }

  /** Errors: FILE_WRITE, HAPROXY_MISSING, HAPROXY_START with its messages; those of opening the file. */
  async #start(): Promise<void> {
    const { executable, file, socket, text, log } = this.#options;
    await this.stop();
    await makeFolder(dirname(socket), 0o711);
    await writeAtomically(this.#config, [text]);
    await rm(socket, { force: true });
    const output = await open(file, TO_APPEND, 0o640);
    try {
      const { child } = await startDaemon(WRITER, {
        command: [executable, ['-db', '-f', this.#config]],
        log: this.#messagesFile,
        output: output.fd,
        find: async () => existsSync(socket) || undefined,
        timeoutMs: START_TIMEOUT_MS,
        excerpt: (messages) => messages.trim().slice(-2_000),
      });
      this.#pid = child.pid ?? 0;
    } finally {
      await output.close();
    }
    log.info('Started the log writer', { pid: this.#pid, file });
  }

  #failed(error: unknown): void {
    const message = messageOf(error);
    const { file, log } = this.#options;
    if (this.#fault.set(message)) log.error('Cannot write the connection log', { file, error: message });
  }
}

/** True if the output of this process is the file at this path. */
function isOpenIn(pid: number, file: string): boolean {
  const [here, there] = [file, `/proc/${pid}/fd/1`].map((path) => statSync(path, { throwIfNoEntry: false }));
  return here !== undefined && here.ino === there?.ino && here.dev === there.dev;
}

/** undefined if there is no such file. */
function contentOf(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(() => undefined);
}
