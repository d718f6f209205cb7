// The load of the demonstration, in a process of its own: some clients that keep their connection, and new connections
// at an even rate; modest, because it shares the processors with all it measures.
// demo-load.ts URL; demo-traffic.ts says what it understands.

import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { get } from './demo-request.ts';

export interface LoadReport {
  readonly requests: number;
  readonly failed: number;
  /** Sent again, because a kept connection had just been closed. */
  readonly resent: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Of the first few that failed. */
  readonly errors: readonly string[];
}

const KEEPING_CLIENTS = 8;
/** Milliseconds between a kept connection's answer and its next request, and between two new connections. */
const PAUSE = 20;
const EVERY = 5;

class Span {
  readonly #latencies: number[] = [];
  readonly #errors: string[] = [];
  #pending = 0;
  #failed = 0;
  #resent = 0;

  async count(url: string, agent: Agent | false): Promise<void> {
    this.#pending++;
    const began = performance.now();
    try {
      const { status, resent } = await get(url, agent);
      if (status !== 200) throw new Error(`Status ${status}`);
      if (resent) this.#resent++;
      this.#latencies.push(performance.now() - began);
    } catch (error) {
      this.#failed++;
      if (this.#errors.length < 3) this.#errors.push(String(error));
    }
    this.#pending--;
  }

  async nothingPending(): Promise<void> {
    while (this.#pending > 0) await delay(5);
  }

  /** Waits for the requests that are under way. */
  async report(): Promise<LoadReport> {
    await this.nothingPending();
    const sorted = this.#latencies.sort((a, b) => a - b);
    const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? 0;
    const requests = sorted.length + this.#failed;
    const [failed, resent, errors] = [this.#failed, this.#resent, this.#errors];
    return { requests, failed, resent, errors, p50: at(0.5), p99: at(0.99) };
  }
}

if (import.meta.main) {
  const [url = ''] = process.argv.slice(2);
  let span = new Span();
  let isHeld = false;
  process.on('message', async (message) => {
    if (message === 'report') {
      const past = span;
      span = new Span();
      process.send?.(await past.report());
    } else {
      isHeld = message === 'hold';
      if (isHeld) await span.nothingPending();
      process.send?.(message);
    }
  });
  process.once('disconnect', () => process.exit(0));
  setInterval(() => {
    if (!isHeld) void span.count(url, false);
  }, EVERY);
  for (let client = 0; client < KEEPING_CLIENTS; client++)
    void keep(new Agent({ keepAlive: true, maxSockets: 1 }));

  async function keep(agent: Agent): Promise<void> {
    for (;;) {
      if (!isHeld) await span.count(url, agent);
      await delay(PAUSE);
    }
  }
}
