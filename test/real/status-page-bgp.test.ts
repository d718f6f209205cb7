// The status page of hosts that announce by BGP, in a real browser beside a real router.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import { Browser } from '../support/report/browser.ts';
import { order } from '../support/vrrp/agent-pair.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'chromium', 'ip', 'nsenter', 'sysctl', 'openssl'],
});

const VIP = '198.51.100.1';

test('The page shows sessions and hosts, and follows a lowered host, a lost host and a lost router', async (t) => {
  t.timeout(240_000);
  const world = await BgpWorld.create(t, {
    hosts: ['a', 'b'],
    group: true,
    prepare: (host, network) => host.serve({ address: VIP, port: 8080, members: [network.v4('client')] }),
  });
  await world.leadsTo(VIP, 'a', 'b');
  const chromium = await Browser.start();
  t.teardown(() => chromium.close());
  const [a, b] = [world.host('a'), world.host('b')];
  const page = await chromium.open();
  await page.go(`${a.agent.url}/`);
  const has = (place: string, words: string) =>
    page.until(`document.querySelector('${place}').innerText.includes(${JSON.stringify(words)})`);
  await has('#headline', 'All is well');
  await has('#sessions', '● established');
  await has('#sessions', `tor-a`);
  await has('#vitals', 'AS 65001, 1 VIP to 1 of 1 router');
  await has('#hosts', 'a (this host)');
  await page.until(`document.querySelectorAll('#hosts [data-tone=good]').length === 2`);

  await order(a.host, 'maintenance', 'on');
  await has('#headline', 'In maintenance');
  await has('#hosts', '! last choice');
  await has('#vitals', '1 VIP as the last choice');
  await order(a.host, 'maintenance', 'off');
  await has('#headline', 'All is well');

  await b.agent.kill();
  await has('#hosts', '✕ not connected');
  await has('#headline', 'Served, but not connected: b');

  await world.router.stop('SIGTERM');
  await has('#headline', '✕ No router has routes of this host');
  await has('#sessions', '✕ down');
  await has('#vitals', '1 VIP that no router has');
  t.deepEqual(page.complaints, []);
});
