// The program nft: one process for files, and a long-lived one for lines. Knows which processes are the agent's own. Owns them.

import { stat } from 'node:fs/promises';
import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';
import { COMMAND_TIMEOUT_MS, loadTimeoutMs } from './load-timeout.ts';
import { NftSession, type SessionOptions } from './session.ts';

/** nft keeps each line that it has read, and looks through them before the next one. */
const MAX_ANSWERS = 1_000;
/** The report of a change may come after the end of its process. */
const MAX_PROCESSES = 16;

export class Nft {
  readonly #options: SessionOptions;
  #session: NftSession | undefined;
  /** The processes of this agent, by which its own changes are known. */
  #processes: readonly number[] = [];

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** True if this has started the process for changes, lately. */
  hasStarted(process: number): boolean {
    return this.#processes.includes(process);
  }

  /** One process with these arguments; with `-f`, the last word is the file of the rules. Errors: those of runCommand(). */
  async run(...words: readonly string[]): ReturnType<typeof runCommand> {
    const { program, netns } = this.#options;
    const timeout = words.includes('-f')
      ? loadTimeoutMs((await stat(words.at(-1) ?? '')).size)
      : COMMAND_TIMEOUT_MS;
    const [outer, args] = inNamespace(netns, program, words);
    const onStart = (pid: number): void => {
      if (words[0] === '-f') this.#started(pid);
    };
    return runCommand(outer, args, { timeout, onStart });
  }

  /** One line at a time, through the long-lived process. Errors: those of NftSession. */
  async ask(line: string): Promise<string> {
    const session = this.#session?.isOpen === true ? this.#session : this.#newSession();
    const answer = await session.ask(line);
    if (session.answers >= MAX_ANSWERS) {
      session.close();
      this.#newSession();
    }
    return answer;
  }

  close(): void {
    this.#session?.close();
  }

  #newSession(): NftSession {
    const session = new NftSession(this.#options);
    this.#session = session;
    this.#started(session.process);
    return session;
  }

  #started(process: number): void {
    this.#processes = [process, ...this.#processes.slice(0, MAX_PROCESSES - 1)];
  }
}
