// Metrics of a pushed text with Octavia's names: Octavia's own pair of files, and a scrape through a real HAProxy.

import { readFile } from 'node:fs/promises';
import ava from 'ava';
import { machineMetrics, octaviaMetrics } from '../../agent/pushed/metrics/octavia-metrics.ts';
import { requires } from '../support/basics/requirements.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { pushedHost, VIP_PORT } from '../support/octavia/pushed-host.ts';
import { SAMPLE_LISTENER } from '../support/octavia/render-haproxy.ts';

const test = requires(ava, { haproxy: true, root: true, programs: ['octavia-worker', 'ip', 'curl'] });

const OCTAVIA = '/usr/lib/python3/dist-packages/octavia/tests/common';

test("octaviaMetrics() makes of Octavia's sample of HAProxy's metrics exactly Octavia's sample", async (t) => {
  const haproxy = await readFile(`${OCTAVIA}/sample_haproxy_prometheus`, 'utf8');
  const octavia = await readFile(`${OCTAVIA}/sample_octavia_prometheus`, 'utf8');
  t.is(machineMetrics({ cpu: 50, memory: 23.5 }) + octaviaMetrics(haproxy), octavia);
});

test.serial("A listener of metrics answers with Octavia's names", async (t) => {
  const network = await TestNetwork.create(t, ['amphora']);
  const host = await pushedHost(t, { netns: network.netns('amphora') });
  const scrape = () => network.run('amphora', 'curl', '-sS', `http://${host.address(1)}:${VIP_PORT}/metrics`);
  const [text = ''] = await host.texts([[]], { listener: { proto: 'PROMETHEUS', include_pools: false } });
  t.true(text.includes('frontend prometheus-exporter-internal-endpoint'));
  t.is(await host.haproxy.run(text), 'reload');
  const scraped = await scrape();
  t.regex(scraped, /^octavia_loadbalancer_memory \d+\.\d$/m);
  t.regex(
    scraped,
    new RegExp(`^octavia_listener_status\\{listener="${SAMPLE_LISTENER}",state="UP"\\} 1$`, 'm'),
  );
  t.false(scraped.includes('haproxy_'));
  t.false(scraped.includes('prometheus-exporter'));
  const names = ((await host.haproxy.stats()) ?? []).map((row) => row.get('pxname'));
  t.false(names.some((name) => name?.includes('agent')));
  const next = host.restarted();
  await next.adopt();
  t.true((await scrape()).includes('octavia_loadbalancer_cpu'));
});
