// VIPs that come and go on the standby, again and again, with the real keepalived: no reload of it moves a VIP.

import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { ANCHOR, type PairHost, startPair, until, vips } from '../support/vrrp/vrrp-pair.ts';

const test = requires(ava, { root: true, programs: ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl'] });

/** Milliseconds. keepalived hears nothing while it reloads a thousand VIPs: one advertisement in ten or so falls into it. */
const ADVERT_INTERVAL = 200;
const RELOADS = 30;

const noFailover = test.macro(async (t, family: 'v4' | 'v6') => {
  const anchors = family === 'v4' ? [ANCHOR] : ['fd09::1'];
  const own = { instances: [{ virtualRouterId: 51, priority: 200, anchors }], family };
  const all = vips(0, 1_000);
  const pair = await startPair(t, all, { a: own, b: own });
  t.timeout(280_000);
  const { a, b } = pair;
  for (const host of [b, a]) {
    host.configure({ advertInterval: ADVERT_INTERVAL });
    await until('it advertises as often', async () => (await host.ask()).advertInterval === 200, pair);
  }
  const before = await becameMaster(a, b);
  for (let reload = 0; reload < RELOADS; reload++) {
    const some = all.slice(0, 999 + (reload % 2));
    a.want(some);
    await until('a has them', async () => a.dataplane.status().vips === some.length, pair);
    await delay(randomInt(ADVERT_INTERVAL));
  }
  t.true((a.counted.get('reload done') ?? 0) >= RELOADS);
  t.deepEqual(await becameMaster(a, b), before, a.log);
});

test.serial('A standby stays one while VIPs come and go on it, over IPv4', noFailover, 'v4');
test.serial('A standby stays one while VIPs come and go on it, over IPv6', noFailover, 'v6');

test.serial(
  'A standby that misses each advertisement by a reload stays one, and takes over later',
  async (t) => {
    const pair = await startPair(t, vips(0, 1_000));
    const { network, a, b } = pair;
    for (const host of [b, a]) host.configure({ advertInterval: ADVERT_INTERVAL });
    await until('both advertise as often', async () => (await b.ask()).advertInterval === 200, pair);
    const [before, pid] = [await becameMaster(a, b), await a.pid()];
    // More reloads than advertisements for two seconds, three times as long as a standby waits for one.
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

/** Drops all advertisements, as those that arrive while keepalived reloads. */
const DEAF = `table inet deaf {
  chain in { type filter hook input priority 0; meta l4proto 112 drop; }
}`;

async function becameMaster(...hosts: readonly PairHost[]): Promise<readonly number[]> {
  return Promise.all(hosts.map(async (host) => (await host.ask()).becameMaster));
}
