// Holds the agent's own metrics: counters and histograms to which the agent adds, gauges that are read at each scrape.
// The only user of the prom-client package.

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { MetricFamily, MetricPart, MetricRow } from '../../agent/base/metric-family.ts';
import { escaped } from '../scrape/exposition.ts';

type LabelValues = readonly string[];
/** The name of each label in `Values`, in order. */
type LabelNames<Values extends LabelValues> = { readonly [At in keyof Values]: string };
/** One sample of a gauge. */
type GaugeSample = readonly [labels: Readonly<Record<string, string>>, value: number];

const PREFIX = 'headgate_';
const OF_PROCESS = new RegExp(`^${PREFIX}(process|nodejs)_`);
/** Gauges of prom-client that are named like counters; Prometheus can compute these sums. */
const SUMS = ['handles', 'requests', 'resources'].map((what) => `nodejs_active_${what}_total`);
/** Replaced by event-loop-metrics.ts. */
const LAGS = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'].map(
  (what) => `nodejs_eventloop_lag_${what}_seconds`,
);
/** The longest time that a timer takes: prom-client's timer for event loop lag should never expire. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A sample of a gauge with thousands of them. */
export interface SampleRow extends MetricRow {
  readonly sample: number;
}

export class MetricRegistry {
  readonly #registry = new Registry();
  readonly #tables: (() => MetricFamily)[] = [];

  /** With prom-client's metrics of the process. */
  constructor() {
    collectDefaultMetrics({
      register: this.#registry,
      prefix: PREFIX,
      eventLoopMonitoringPrecision: LONGEST_TIMER_MS,
    });
    for (const name of [...SUMS, ...LAGS]) this.#registry.removeSingleMetric(`${PREFIX}${name}`);
  }

  /**
   * The result counts one event. `known`: series that exist from the start with 0, because Prometheus' increase() does
   * not see the first event of a new series.
   */
  counter<Values extends LabelValues>(
    name: string,
    help: string,
    labelNames: LabelNames<Values>,
    known: Iterable<Values> = [],
  ): (...values: Values) => void {
    const counter = new Counter({ name, help, labelNames: [...labelNames], registers: [this.#registry] });
    for (const values of known) counter.labels(...values).inc(0);
    return (...values) => counter.labels(...values).inc();
  }

  /** A histogram of seconds; the result adds one. `buckets`: upper bounds in ascending order; `known`: as for a counter. */
  histogram<Values extends LabelValues = []>(
    name: string,
    help: string,
    buckets: number[],
    labelNames?: LabelNames<Values>,
    known: Iterable<Values> = [],
  ): (seconds: number, ...values: Values) => void {
    const names: string[] = [...(labelNames ?? [])];
    const histogram = new Histogram({ name, help, buckets, labelNames: names, registers: [this.#registry] });
    for (const values of known)
      histogram.zero(Object.fromEntries(names.map((each, at) => [each, values[at] ?? ''])));
    return (seconds, ...values) => histogram.labels(...values).observe(seconds);
  }

  /** Has the samples that `read` returns at each scrape, and no others. */
  gauge(name: string, help: string, labelNames: string[], read: () => Iterable<GaugeSample>): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      collect: () => {
        gauge.reset();
        // Without labels reset() leaves a sample with 0.
        if (labelNames.length === 0) gauge.remove({});
        for (const [labels, value] of read()) gauge.set(labels, value);
      },
    });
  }

  /** A gauge without labels. */
  number(name: string, help: string, read: () => number): void {
    this.gauge(name, help, [], () => [[{}, read()]]);
  }

  /** As gauge(), for thousands of samples, of which prom-client would keep a copy each. */
  table(name: string, help: string, read: () => readonly SampleRow[]): void {
    const value = (row: unknown): number => (row as SampleRow).sample;
    this.#tables.push(() => ({ name, help, type: 'gauge', parts: [{ labels: '', rows: read(), value }] }));
  }

  /** With their current values. */
  async families(): Promise<readonly MetricFamily[]> {
    const families: MetricFamily[] = [];
    for (const metric of this.#registry.getMetricsAsArray()) {
      const family = familyOf(await (metric as unknown as Collectable).get());
      families.push(family);
      // Dashboards and alerts for any process look for the names without a prefix.
      if (OF_PROCESS.test(family.name)) families.push({ ...family, name: family.name.slice(PREFIX.length) });
    }
    return [...families, ...this.#tables.map((make) => make())];
  }
}

/** prom-client's metrics; its own type has the type of get() instead. */
interface Collectable {
  get(): Promise<Collected>;
}

/** The result of get(); prom-client's own type lacks `metricName`. */
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
