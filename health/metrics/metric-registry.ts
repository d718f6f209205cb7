// Where the agent's own metrics are kept: counters and histograms that others add to, gauges that are read at each
// scrape; gives them all as families to write out. The only user of the prom-client package.

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { MetricFamily, MetricPart } from '../../agent/base/metric-family.ts';
import { escaped } from '../text-format.ts';

export type { Counter, Histogram } from 'prom-client';

export type Labels = Readonly<Record<string, string>>;
/** One sample of a gauge. */
export type GaugeRow = readonly [labels: Labels, value: number];

/** Gauges of prom-client's that are named like counters, and that anyone can have as a sum. */
const SUMS = ['handles', 'requests', 'resources'].map((what) => `nodejs_active_${what}_total`);

/** Those of which event-loop-metrics.ts has its own. */
const LAGS = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'].map(
  (what) => `nodejs_eventloop_lag_${what}_seconds`,
);
/** Milliseconds until prom-client's timer for them goes off: the longest that a timer takes, 24 days. */
const NEVER = 2 ** 31 - 1;

export class MetricRegistry {
  readonly #registry = new Registry();

  /** With what prom-client tells of the process. */
  constructor() {
    collectDefaultMetrics({
      register: this.#registry,
      prefix: 'headgate_',
      eventLoopMonitoringPrecision: NEVER,
    });
    for (const name of [...SUMS, ...LAGS]) this.#registry.removeSingleMetric(`headgate_${name}`);
  }

  /**
   * `known`: label sets that begin with 0, as all do that are known beforehand: of a row that appears with its first
   * event, Prometheus' increase() would not see that event.
   */
  counter(name: string, help: string, labelNames: string[], known: Iterable<Labels> = []): Counter {
    const counter = new Counter({ name, help, labelNames, registers: [this.#registry] });
    for (const labels of known) counter.inc(labels, 0);
    return counter;
  }

  /** Seconds; the upper bounds of the buckets in ascending order. */
  histogram(name: string, help: string, buckets: number[], labelNames: string[] = []): Histogram {
    return new Histogram({ name, help, buckets, labelNames, registers: [this.#registry] });
  }

  /** Has the rows that `read` gives at each scrape, and no others. */
  gauge(name: string, help: string, labelNames: string[], read: () => Iterable<GaugeRow>): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      collect: () => {
        gauge.reset();
        // Without labels that leaves a row with 0.
        if (labelNames.length === 0) gauge.remove({});
        for (const [labels, value] of read()) gauge.set(labels, value);
      },
    });
  }

  /** A gauge without labels. */
  number(name: string, help: string, read: () => number): void {
    this.gauge(name, help, [], () => [[{}, read()]]);
  }

  /** As they are now. */
  async families(): Promise<readonly MetricFamily[]> {
    const families: MetricFamily[] = [];
    for (const metric of this.#registry.getMetricsAsArray())
      families.push(familyOf(await (metric as unknown as Collectable).get()));
    return families;
  }
}

/** What prom-client has; its own type is that of what it gives. */
interface Collectable {
  get(): Promise<Collected>;
}

/** What prom-client gives; its own type leaves out `metricName`. */
interface Collected {
  readonly name: string;
  readonly help: string;
  readonly type: MetricFamily['type'];
  readonly values: readonly {
    readonly labels: Readonly<Record<string, string | number>>;
    readonly value: number;
    readonly metricName?: string;
  }[];
}

function familyOf({ name, help, type, values }: Collected): MetricFamily {
  return {
    name,
    help,
    type: type === 'counter' && !name.endsWith('_total') ? 'gauge' : type,
    parts: values.map((each): MetricPart => {
      const labels = Object.entries(each.labels).map(
        ([label, value]) => `${label}="${escaped(String(value))}"`,
      );
      return {
        suffix: (each.metricName ?? name).slice(name.length),
        labels: '',
        rows: [{ labels: labels.join(',') }],
        value: () => each.value,
      };
    }),
  };
}
