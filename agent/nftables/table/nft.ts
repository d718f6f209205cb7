// The program nft: one process for files, and a long-lived one for lines. Knows which processes are the agent's own. Owns them.

import { inNamespace } from '../../host/namespace.ts';
import { runCommand } from '../../host/run-command.ts';
import { NftSession, type SessionOptions } from './session.ts';

const FILE_TIMEOUT_MS = 30_000;
/** The report of a change may come after the end of its process. */
const MAX_PROCESSES = 16;

export class Nft {
  readonly #options: SessionOptions;
  #session: NftSession | undefined;
  /** Of this agent, by which its own changes are known. */
  #processes: readonly number[] = [];

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** True if this has started the process for changes, lately. */
  hasStarted(process: number): boolean {
    return this.#processes.includes(process);
  }

  /** One process with these arguments. Errors: those of runCommand(). */
  run(...words: readonly string[]): ReturnType<typeof runCommand> {
    const { program, netns } = this.#options;
    const [outer, args] = inNamespace(netns, program, words);
    const onStart = (pid: number): void => {
      if (words[0] === '-f') this.#started(pid);
    };
    return runCommand(outer, args, { timeout: FILE_TIMEOUT_MS, onStart });
  }

  /** One line at a time, through the long-lived process. Errors: those of NftSession. */
  ask(line: string): Promise<string> {
    if (this.#session?.isOpen !== true) {
      this.#session = new NftSession(this.#options);
      this.#started(this.#session.process);
    }
    return this.#session.ask(line);
  }

  close(): void {
    this.#session?.close();
  }

  #started(process: number): void {
    this.#processes = [process, ...this.#processes.slice(0, MAX_PROCESSES - 1)];
  }
}
