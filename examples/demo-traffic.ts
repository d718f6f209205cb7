// Controls the process of demo-load.ts with messages, each of which it answers.

import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { LoadReport } from './demo-load.ts';
import { nextMessage, start } from './demo-processes.ts';

const program = fileURLToPath(new URL('demo-load.ts', import.meta.url));

export class DemoTraffic {
  readonly #process: ChildProcess;

  /** Starts the load at once. */
  constructor(url: string) {
    this.#process = start(process.execPath, [program, url], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
  }

  /** Reports the requests that began since the last report. */
  async report(): Promise<LoadReport> {
    return (await this.#send('report')) as LoadReport;
  }

  /** Runs `act` without open requests. */
  async without(act: () => Promise<void>): Promise<void> {
    await this.#send('hold');
    await act();
    await this.#send('go');
  }

  #send(word: 'report' | 'hold' | 'go'): Promise<unknown> {
    const answer = nextMessage(this.#process, 'The load');
    this.#process.send(word);
    return answer;
  }
}
