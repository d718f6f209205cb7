// Metrics of how late the event loop is: a timer that goes off once a second is that much later than it should.
// In place of prom-client's, which count the timer's own period as lateness; that is why theirs is never to go off.

import { type Histogram, monitorEventLoopDelay } from 'node:perf_hooks';
import type { MetricRegistry } from './metric-registry.ts';

/** Milliseconds; each time wakes a process that may have nothing to do. */
const EVERY = 1_000;

type Reading = readonly [of: string, help: string, nanoseconds: (seen: Histogram) => number];

const lateness = (nanoseconds: number): number => Math.max(0, nanoseconds - EVERY * 1e6);

const READINGS: readonly Reading[] = [
  ['min', 'The least that the event loop was late since the last scrape', ({ min }) => lateness(min)],
  ['max', 'The most that it was late', ({ max }) => lateness(max)],
  ['mean', 'How late it was on average', ({ mean }) => lateness(mean)],
  ['stddev', 'The standard deviation', ({ stddev }) => stddev],
  ['p50', 'The median', (seen) => lateness(seen.percentile(50))],
  ['p90', 'The 90th percentile', (seen) => lateness(seen.percentile(90))],
  ['p99', 'The 99th percentile', (seen) => lateness(seen.percentile(99))],
];

export class EventLoopMetrics {
  readonly #seen: Histogram;
  #seconds: readonly number[] = READINGS.map(() => 0);

  constructor(registry: MetricRegistry, seen: Histogram = watched()) {
    this.#seen = seen;
    for (const [at, [of, help]] of READINGS.entries())
      registry.number(`headgate_nodejs_eventloop_lag_${of}_seconds`, help, () => this.#seconds[at] ?? 0);
  }

  /** A scrape shows what was seen since the one before; where that was less than a second ago, the same again. */
  read(): void {
    if (this.#seen.count === 0) return;
    this.#seconds = READINGS.map(([, , nanoseconds]) => nanoseconds(this.#seen) / 1e9);
    this.#seen.reset();
  }
}

/** How far apart the timer's moments are, in nanoseconds. */
function watched(): Histogram {
  const seen = monitorEventLoopDelay({ resolution: EVERY });
  seen.enable();
  return seen;
}
