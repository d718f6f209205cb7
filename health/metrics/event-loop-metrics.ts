// Metrics of how late Node's event loop runs a timer that is due once a second. They replace prom-client's, which count
// the timer's own period as lateness.

import { type Histogram, monitorEventLoopDelay } from 'node:perf_hooks';
import type { MetricRegistry } from './metric-registry.ts';

/** Each expiry wakes an idle process. */
const INTERVAL_MS = 1_000;

type Reading = readonly [of: string, help: string, nanoseconds: (delays: Histogram) => number];

const lateness = (nanoseconds: number): number => Math.max(0, nanoseconds - INTERVAL_MS * 1e6);

const READINGS: readonly Reading[] = [
  ['min', 'Least delay of the event loop since the last scrape', ({ min }) => lateness(min)],
  ['max', 'Greatest delay of the event loop since the last scrape', ({ max }) => lateness(max)],
  ['mean', 'Mean delay of the event loop since the last scrape', ({ mean }) => lateness(mean)],
  [
    'stddev',
    'Standard deviation of the delay of the event loop since the last scrape',
    ({ stddev }) => stddev,
  ],
  [
    'p50',
    'Median of the delay of the event loop since the last scrape',
    (delays) => lateness(delays.percentile(50)),
  ],
  [
    'p90',
    '90th percentile of the delay of the event loop since the last scrape',
    (delays) => lateness(delays.percentile(90)),
  ],
  [
    'p99',
    '99th percentile of the delay of the event loop since the last scrape',
    (delays) => lateness(delays.percentile(99)),
  ],
];

export class EventLoopMetrics {
  readonly #delays: Histogram;
  #seconds: readonly number[] = READINGS.map(() => 0);

  /** `delays`: nanoseconds between two expiries of the timer. */
  constructor(registry: MetricRegistry, delays: Histogram = monitoredDelays()) {
    this.#delays = delays;
    for (const [at, [of, help]] of READINGS.entries())
      registry.number(`headgate_nodejs_eventloop_lag_${of}_seconds`, help, () => this.#seconds[at] ?? 0);
  }

  /** Takes the delays since the last call; after less than one interval the values stay. */
  read(): void {
    if (this.#delays.count === 0) return;
    this.#seconds = READINGS.map(([, , nanoseconds]) => nanoseconds(this.#delays) / 1e9);
    this.#delays.reset();
  }
}

function monitoredDelays(): Histogram {
  const delays = monitorEventLoopDelay({ resolution: INTERVAL_MS });
  delays.enable();
  return delays;
}
