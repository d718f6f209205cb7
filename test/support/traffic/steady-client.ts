// A client that never gives up: one request after the other at a steady pace, each on a new connection. It remembers when it
// was served and when it was not.

import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import type { Place } from './traffic.ts';

const PAUSE_MS = 400;
const TIMEOUT_MS = 3_000;

export class SteadyClient {
  readonly #place: Place;
  readonly #host: string;
  readonly #over: Promise<void>;
  /** Milliseconds since the epoch, when the attempt began, and whether it got status 200. */
  readonly #attempts: (readonly [at: number, isServed: boolean])[] = [];
  #isStopped = false;

  /** `host`: the header. Ends with the test at the latest. */
  constructor(t: Pick<ExecutionContext<unknown>, 'teardown'>, place: Place, host = 'test') {
    this.#place = place;
    this.#host = host;
    this.#over = this.#run();
    t.teardown(() => this.stop());
  }

  stop(): Promise<void> {
    this.#isStopped = true;
    return this.#over;
  }

  /** How many attempts began in the time, and how many of them failed. */
  between(from: number, to: number): { readonly attempts: number; readonly failures: number } {
    const all = this.#attempts.filter(([at]) => at >= from && at < to);
    return { attempts: all.length, failures: all.filter(([, isServed]) => !isServed).length };
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const at = Date.now();
      this.#attempts.push([at, await this.#ask()]);
      await delay(PAUSE_MS);
    }
  }

  #ask(): Promise<boolean> {
    const { address, port } = this.#place;
    return new Promise((resolve) => {
      const asked = request({
        ...{ host: address, port, agent: false, timeout: TIMEOUT_MS },
        headers: { host: this.#host },
      });
      asked.once('response', (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      });
      asked.once('timeout', () => asked.destroy());
      asked.once('error', () => resolve(false)).once('close', () => resolve(false));
      asked.end();
    });
  }
}
