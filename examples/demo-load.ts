// The process that creates the load of the demonstration: clients that keep their connection, and new connections at an
// even rate. The load is small, because it shares the processors with HAProxy and the agent.
// demo-load.ts URL. demo-traffic.ts sends it messages.

import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { get } from './demo-request.ts';

export interface LoadReport {
  readonly requests: number;
  readonly failed: number;
  /** Requests that were sent again, because HAProxy had just closed the kept connection. */
  readonly resent: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** The errors of the first failed requests. */
  readonly errors: readonly string[];
}

const KEEPING_CLIENTS = 8;
/** From an answer on a kept connection to its next request. */
const PAUSE_MS = 20;
/** Between two new connections. */
const CONNECT_INTERVAL_MS = 5;

/** The requests between two reports. */
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

  /** Waits for the answers to all requests of the span. */
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
  }, CONNECT_INTERVAL_MS);
  for (let client = 0; client < KEEPING_CLIENTS; client++)
    void keep(new Agent({ keepAlive: true, maxSockets: 1 }));

  async function keep(agent: Agent): Promise<void> {
    for (;;) {
      if (!isHeld) await span.count(url, agent);
      await delay(PAUSE_MS);
    }
  }
}
