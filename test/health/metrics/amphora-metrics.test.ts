import { readFileSync } from 'node:fs';
import test from 'ava';
import type { MetricFamily } from '../../../agent/base/metric-family.ts';
import { AmphoraMetrics, amphoraListenerFamilies } from '../../../health/metrics/amphora-metrics.ts';

const state = () => ({
  amphoraId: 'amp',
  loadBalancers: [{ id: 'lb', haproxy: { isRunning: true } }],
  heartbeat: { sent: 3, last: { at: new Date(2_000), bytes: 80 } },
});

function samples(families: readonly MetricFamily[]): ReadonlyMap<string, number> {
  const all = new Map<string, number>();
  for (const { name, parts } of families)
    for (const { rows, value } of parts)
      for (const row of rows) all.set(`${name}{${row.labels}}`, value(row));
  return all;
}

test('AmphoraMetrics has the last heartbeat and what became of the pushes', async (t) => {
  const metrics = new AmphoraMetrics('1.2.3', state);
  metrics.pushed('runtime');
  const read = samples(await metrics.families());
  t.is(read.get('headgate_pushes_total{result="runtime"}'), 1);
  t.is(read.get('headgate_pushes_total{result="reload"}'), 0);
  t.is(read.get('headgate_amphora_haproxy_running{loadbalancer="lb"}'), 1);
  t.is(read.get('headgate_heartbeats_sent{}'), 3);
  t.is(read.get('headgate_heartbeat_timestamp_seconds{}'), 2);
  t.is(read.get('headgate_heartbeat_bytes{}'), 80);
});

test('amphoraListenerFamilies() counts the members of a pool once, whatever listeners it has', (t) => {
  const pool = { id: 'p', members: { a: 'UP', b: 'UP 1/3', c: 'DOWN', d: 'no check' } };
  const read = samples(
    amphoraListenerFamilies([
      { id: 'web', status: 'OPEN', connections: 3, pools: [pool] },
      { id: 'gone', status: '', connections: 0, pools: [pool] },
    ]),
  );
  t.deepEqual(Object.fromEntries(read), {
    'headgate_amphora_listener_served{listener="web"}': 1,
    'headgate_amphora_listener_served{listener="gone"}': 0,
    'headgate_amphora_listener_connections{listener="web"}': 3,
    'headgate_amphora_listener_connections{listener="gone"}': 0,
    'headgate_amphora_members{pool="p",status="UP"}': 2,
    'headgate_amphora_members{pool="p",status="DOWN"}': 1,
    'headgate_amphora_members{pool="p",status="no check"}': 1,
  });
});

test('Every metric of an amphora is in its document', async (t) => {
  const page = readFileSync(new URL('../../../docs/octavia.md', import.meta.url), 'utf8');
  const documented = [...page.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name);
  const own = [...(await new AmphoraMetrics('1.2.3', state).families()), ...amphoraListenerFamilies([])]
    .map(({ name }) => name)
    .filter((name) => /^headgate_(amphora|push|heartbeat)/.test(name) && name !== 'headgate_amphora_info');
  t.deepEqual(own.sort(), documented.sort());
});
