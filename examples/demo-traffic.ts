// The load of the demonstration, as seen from the outside: a process to which one sends a word and that answers each.

import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { LoadReport } from './demo-load.ts';
import { nextMessage, start } from './demo-processes.ts';

const program = fileURLToPath(new URL('demo-load.ts', import.meta.url));

export class DemoTraffic {
  readonly #process: ChildProcess;

  /** Begins at once. */
  constructor(url: string) {
    this.#process = start(process.execPath, [program, url], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
  }

  /** What came of the requests that began since the report before. */
  async report(): Promise<LoadReport> {
    return (await this.#say('report')) as LoadReport;
  }

  /** Does something while no request is under way, and none begins. */
  async without(act: () => Promise<void>): Promise<void> {
    await this.#say('hold');
    await act();
    await this.#say('go');
  }

  #say(word: 'report' | 'hold' | 'go'): Promise<unknown> {
    const answer = nextMessage(this.#process, 'The load');
    this.#process.send(word);
    return answer;
  }
}
