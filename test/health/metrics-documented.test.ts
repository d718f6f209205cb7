import test from 'ava';
import type { Repair } from '../../agent/haproxy/worker/haproxy-monitor.ts';
import type { ReloadCause } from '../../agent/haproxy/worker/reload-arbiter.ts';
import type { NftablesOptions } from '../../agent/nftables/dataplane.ts';
import type { Refusal } from '../../agent/pair/peers/heard-peer.ts';
import type { StandingReason } from '../../agent/vips/announcer.ts';
import type { KeepalivedMetrics } from '../../agent/vips/keepalived/options.ts';
import { RELOAD_REASONS, REPAIRS } from '../../health/metrics/dataplane-metrics.ts';
import { PAIR_REFUSALS, STANDING_REASONS } from '../../health/metrics/pair-metrics.ts';
import { servedMetrics } from '../../scripts/metrics-page.ts';
import { everyMetric } from '../support/report/every-metric.ts';

test('Every metric of /metrics has a phrase as its HELP, and no label that Prometheus adds', async (t) => {
  const text = await everyMetric();

  const helps = [...text.matchAll(/^# HELP (\S+) (.*)$/gm)];
  t.true(helps.length > 100);
  // A metric browser shows it without the name's other words.
  for (const [, name = '', help = ''] of helps) t.true(help.split(' ').length >= 3, `${name}: ${help}`);

  for (const [name, { labels }] of servedMetrics(text)) {
    // Prometheus adds these labels to every target; with honor_labels the agent's would replace them.
    t.not(
      labels?.some((label) => label === 'job' || label === 'instance'),
      true,
      name,
    );
  }
});

test('Counters that begin at 0 cover all possible label values', (t) => {
  const causes: readonly ReloadCause[] = RELOAD_REASONS;
  const repairs: readonly (Repair | KeepalivedRepair | KernelRepair)[] = REPAIRS;
  const reasons: readonly StandingReason[] = STANDING_REASONS;
  const refusals: readonly Refusal[] = PAIR_REFUSALS;
  for (const known of [causes, repairs, reasons, refusals]) t.is(new Set(known).size, known.length);
  // The compiler reports a missing value.
  const all: [
    Missing<ReloadCause, (typeof RELOAD_REASONS)[number]>,
    Missing<Repair | KeepalivedRepair | KernelRepair, (typeof REPAIRS)[number]>,
    Missing<StandingReason, (typeof STANDING_REASONS)[number]>,
    Missing<Refusal, (typeof PAIR_REFUSALS)[number]>,
  ] = ['none', 'none', 'none', 'none'];
  t.is(all.length, 4);
});

type Missing<Possible, Known> = Exclude<Possible, Known> extends never ? 'none' : Exclude<Possible, Known>;
type KernelRepair = Parameters<NftablesOptions['metrics']['repaired']>[0];
type KeepalivedRepair = Parameters<KeepalivedMetrics['repaired']>[0];
