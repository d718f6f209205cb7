// VIPs that are added and removed on the standby, with the real keepalived: no reload moves a VIP.

import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { ANCHOR, type PairHost, startPair, until, vips } from '../support/vrrp/vrrp-pair.ts';

const test = requires(ava, { root: true, programs: ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl'] });

/** So short that some advertisements arrive during reloads of a thousand VIPs, when keepalived does not receive. */
const ADVERT_INTERVAL_MS = 200;
const RELOADS = 30;

const noFailover = test.macro(async (t, family: 'v4' | 'v6') => {
  const anchors = family === 'v4' ? [ANCHOR] : ['fd09::1'];
  const own = { instances: [{ virtualRouterId: 51, priority: 200, anchors }], family };
  const all = vips(0, 1_000);
  const pair = await startPair(t, all, { a: own, b: own });
  t.timeout(280_000);
  const { a, b } = pair;
  for (const host of [b, a]) {
    host.configure({ advertInterval: ADVERT_INTERVAL_MS });
    await until('it advertises as often', async () => (await host.ask()).advertInterval === 200, pair);
  }
  const before = await becameMaster(a, b);
  for (let reload = 0; reload < RELOADS; reload++) {
    const some = all.slice(0, 999 + (reload % 2));
    a.want(some);
    await until('a has them', async () => a.dataplane.status().vips === some.length, pair);
    await delay(randomInt(ADVERT_INTERVAL_MS));
  }
  t.true((a.counted.get('reload done') ?? 0) >= RELOADS);
  t.deepEqual(await becameMaster(a, b), before, a.log);
});

test.serial('A standby stays backup while VIPs are added and removed on it, over IPv4', noFailover, 'v4');
test.serial('A standby stays backup while VIPs are added and removed on it, over IPv6', noFailover, 'v6');

test.serial(
  'A standby that misses all advertisements during reloads stays backup, and takes over later',
  async (t) => {
    const pair = await startPair(t, vips(0, 1_000));
    const { network, a, b } = pair;
    for (const host of [b, a]) host.configure({ advertInterval: ADVERT_INTERVAL_MS });
    await until('both advertise as often', async () => (await b.ask()).advertInterval === 200, pair);
    const [before, pid] = [await becameMaster(a, b), await a.pid()];
    // More reloads than advertisements, for three times as long as a standby waits for an advertisement.
    await network.run('a', 'nft', DEAF);
    for (const over = performance.now() + 2_000; performance.now() < over; await delay(150))
      process.kill(pid, 'SIGHUP');
    await network.run('a', 'nft', 'delete', 'table', 'inet', 'deaf');
    const { advertsSent } = await b.ask();
    await until('time has gone by', async () => (await b.ask()).advertsSent > advertsSent + 5, pair);
    t.deepEqual(await becameMaster(a, b), before, a.log);
    await b.crash();
    await until('it takes over', async () => a.state() === 'master', pair);
  },
);

/** Drops all advertisements, as keepalived does during a reload. */
const DEAF = `table inet deaf {
  chain in { type filter hook input priority 0; meta l4proto 112 drop; }
}`;

async function becameMaster(...hosts: readonly PairHost[]): Promise<readonly number[]> {
  return Promise.all(hosts.map(async (host) => (await host.ask()).becameMaster));
}
