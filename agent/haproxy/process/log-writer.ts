// The HAProxy that writes the connection log to a file, from a socket, so that no worker with traffic waits for the disk. It
// outlives the agent, which adopts it, starts it again if it has ended, and makes the file again if it is gone.

import { existsSync, statSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { StartedDaemon } from '../../host/daemon/daemon-process.ts';
import { startedWith } from '../../host/daemon/find.ts';
import { KeptDaemon } from '../../host/daemon/kept-daemon.ts';
import { type DaemonKind, startDaemon, TO_APPEND } from '../../host/daemon/start.ts';
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

const WRITER: DaemonKind = { name: 'the log writer', missing: 'HAPROXY_MISSING', failed: 'HAPROXY_START' };
const START_TIMEOUT_MS = 5_000;
/** It has no connections to end. */
const END_TIMEOUT_MS = 1_000;

export class LogWriter {
  readonly #options: LogWriterOptions;
  readonly #config: string;
  readonly #messages: string;
  readonly #daemon: KeptDaemon;

  constructor(options: LogWriterOptions) {
    const { file, log } = options;
    const folder = dirname(options.socket);
    this.#options = options;
    this.#config = join(folder, 'log-writer.cfg');
    this.#messages = join(folder, 'log-writer.log');
    this.#daemon = new KeptDaemon({
      program: {
        kind: WRITER,
        config: this.#config,
        find: async () => (await this.running())[0],
        start: () => this.#start(),
        endTimeoutMs: END_TIMEOUT_MS,
      },
      messages: this.#messages,
      text: () => this.#text(),
      onFault: (reason) => {
        if (reason === '') log.info('The connection log is written again', { file });
        else log.error('Cannot write the connection log', { file, error: reason });
      },
      log,
    });
  }

  /** Adopts the writer that runs, or starts one. Never rejects: a fault is logged, and retried. */
  start(): Promise<void> {
    return this.#daemon.keep();
  }

  /** The writer continues. */
  close(): Promise<void> {
    return this.#daemon.close();
  }

  /** After close(). Errors: HAPROXY_START if the agent may not signal it. */
  stop(): Promise<void> {
    return this.#daemon.end();
  }

  /** The pids of writers, of this agent or an earlier one. */
  async running(): Promise<readonly number[]> {
    const command = ['-db', '-f', this.#config].join(' ');
    return [...(await startedWith((words) => words.join(' ').trimEnd().endsWith(command))).keys()];
  }

  /** A writer whose file is gone, or is another one, ends before. Errors: FILE_WRITE, HAPROXY_START. */
  async #text(): Promise<string | undefined> {
    const { file, socket, text } = this.#options;
    if (file === '') return undefined;
    if (!isOpenIn(this.#daemon.pid, file)) await this.#daemon.end();
    await makeFolder(dirname(socket), 0o711);
    return text;
  }

  /** Errors: HAPROXY_MISSING, HAPROXY_START with its messages; those of opening the file. */
  async #start(): Promise<StartedDaemon> {
    const { executable, file, socket } = this.#options;
    await rm(socket, { force: true });
    const output = await open(file, TO_APPEND, 0o640);
    try {
      const { child } = await startDaemon(WRITER, {
        command: [executable, ['-db', '-f', this.#config]],
        log: this.#messages,
        output: output.fd,
        find: async () => existsSync(socket) || undefined,
        timeoutMs: START_TIMEOUT_MS,
        excerpt: (messages) => messages.trim().slice(-2_000),
      });
      return { child, pid: child.pid ?? 0 };
    } finally {
      await output.close();
    }
  }
}

/** True if the output of this process is the file at this path. */
function isOpenIn(pid: number, file: string): boolean {
  const [here, there] = [file, `/proc/${pid}/fd/1`].map((path) => statSync(path, { throwIfNoEntry: false }));
  return here !== undefined && here.ino === there?.ino && here.dev === there.dev;
}
