// VIPs that come and go on the standby, again and again, with the real keepalived: it hears every advertisement.

import { randomInt } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { ANCHOR, type PairHost, startPair, until, vips } from '../support/vrrp/vrrp-pair.ts';

const test = requires(ava, { root: true, programs: ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl'] });

/** At random moments a reload of a thousand VIPs falls into one advertisement in ten or so, at this interval. */
const ADVERT_INTERVAL = 200;
const RELOADS = 30;

const everyAdvertisement = test.macro(async (t, family: 'v4' | 'v6') => {
  const anchors = family === 'v4' ? [ANCHOR] : ['fd09::1'];
  const own = { instances: [{ virtualRouterId: 51, priority: 200, anchors }], family };
  const all = vips(0, 1_000);
  const pair = await startPair(t, all, { a: own, b: own });
  t.timeout(280_000);
  const { network, a, b } = pair;
  for (const host of [b, a]) {
    host.configure({ advertInterval: ADVERT_INTERVAL });
    await until('it advertises as often', async () => (await host.ask()).advertInterval === 200, pair);
  }
  await network.run('a', 'nft', COUNTER);
  const lostBefore = await lost(a);
  const { becameMaster } = await a.ask();
  for (let reload = 0; reload < RELOADS; reload++) {
    const some = all.slice(0, 999 + (reload % 2));
    a.want(some);
    await until('a has them', async () => a.dataplane.status().vips === some.length, pair);
    await delay(randomInt(ADVERT_INTERVAL));
  }
  t.true((a.counted.get('reload done') ?? 0) >= RELOADS);
  t.is((await a.ask()).becameMaster, becameMaster, a.log);
  t.is((await lost(a)) - lostBefore, 0);
  const isAlone = async () => (await network.run('a', 'nft', 'list', 'tables')) === 'table inet arrived\n';
  await until('nothing of ours is left in nftables', isAlone, pair);
});

test.serial(
  'A standby hears every advertisement while VIPs come and go, over IPv4',
  everyAdvertisement,
  'v4',
);
test.serial(
  'A standby hears every advertisement while VIPs come and go, over IPv6',
  everyAdvertisement,
  'v6',
);

/** Counts the advertisements that get to the host, whether or not somebody hears them. */
const COUNTER = `table inet arrived {
  chain in { type filter hook input priority 0; meta l4proto 112 counter; }
}`;

/** How many of these keepalived has not heard; what arrives between two questions may count for either. */
async function lost(host: PairHost): Promise<number> {
  let [least, most] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  while (least < most) {
    const before = await arrivals(host);
    const { advertsReceived } = await host.ask();
    const after = await arrivals(host);
    least = Math.max(least, before - advertsReceived);
    most = Math.min(most, after - advertsReceived);
  }
  return most;
}

async function arrivals({ network, name }: PairHost): Promise<number> {
  const listed = await network.run(name, 'nft', 'list', 'table', 'inet', 'arrived');
  return Number(/counter packets (\d+)/.exec(listed)?.[1]);
}
