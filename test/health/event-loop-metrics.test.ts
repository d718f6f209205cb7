import { createHistogram } from 'node:perf_hooks';
import test from 'ava';
import { EventLoopMetrics } from '../../health/metrics/event-loop-metrics.ts';
import { MetricRegistry } from '../../health/metrics/metric-registry.ts';

const PERIOD = 1e9;

async function lateness(registry: MetricRegistry): Promise<Readonly<Record<string, number>>> {
  const families = await registry.families();
  return Object.fromEntries(
    families.flatMap(({ name, parts }) => {
      const [, of] = /^headgate_nodejs_eventloop_lag_(.+)_seconds$/.exec(name) ?? [];
      const rows = parts.flatMap(({ rows, value }) => rows.map(value));
      return of === undefined ? [] : [[of, Math.round((rows[0] ?? Number.NaN) * 100) / 100]];
    }),
  );
}

test("EventLoopMetrics does not count the timer's period as delay", async (t) => {
  const [registry, seen] = [new MetricRegistry(), createHistogram()];
  const metrics = new EventLoopMetrics(registry, seen);
  for (const nanoseconds of [PERIOD, PERIOD - 1e5, PERIOD]) seen.record(nanoseconds);
  metrics.read();
  t.deepEqual(await lateness(registry), { min: 0, max: 0, mean: 0, stddev: 0, p50: 0, p90: 0, p99: 0 });
});

test('EventLoopMetrics shows a delay in one scrape only', async (t) => {
  const [registry, seen] = [new MetricRegistry(), createHistogram()];
  const metrics = new EventLoopMetrics(registry, seen);
  for (const late of [0, 0.02e9, 0.25e9]) seen.record(PERIOD + late);
  metrics.read();
  t.like(await lateness(registry), { min: 0, max: 0.25, mean: 0.09, p50: 0.02, p99: 0.25 });
  seen.record(PERIOD);
  metrics.read();
  t.like(await lateness(registry), { max: 0, p99: 0 });
});

test('EventLoopMetrics shows the same values in two scrapes within a second', async (t) => {
  const [registry, seen] = [new MetricRegistry(), createHistogram()];
  const metrics = new EventLoopMetrics(registry, seen);
  seen.record(PERIOD + 0.25e9);
  metrics.read();
  metrics.read();
  t.like(await lateness(registry), { max: 0.25 });
});
