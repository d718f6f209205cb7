// IPv6 addresses of Services on a host whose interface has IPv6 off, in network namespaces.

import { setTimeout as delay } from 'node:timers/promises';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { ANCHOR, createPair, until, vip } from '../support/vrrp/vrrp-pair.ts';

const test = requires(ava, { root: true, programs: ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl'] });

const SYSCTL = 'net.ipv6.conf.eth0.disable_ipv6';
const V6 = 'fd00:9::77';
/** keepalived and the agent found the missing address again every five to eight seconds. */
const WHILE_MS = 15_000;

test.serial(
  'Without IPv6 a dual-stack Service has its IPv4 address and a problem, and keepalived is not reloaded again',
  async (t) => {
    const instances = [{ virtualRouterId: 51, priority: 200, anchors: [ANCHOR] }];
    const pair = await createPair(t, { b: { instances, auditInterval: 500 } });
    const { b, network } = pair;
    await network.run('b', 'sysctl', '-qw', `${SYSCTL}=1`);
    const addresses = [vip(0), V6];
    b.want(addresses);
    await b.dataplane.start();
    b.dataplane.standing([]);
    await until('b is master', async () => b.state() === 'master', pair);
    await until('b has the IPv4 address', async () => (await b.held()).includes(vip(0)), pair);
    const problems = () =>
      b.dataplane.problemsOf({
        key: 'default/web',
        vips: addresses.map((address) => ({
          address,
          family: address.includes(':') ? 'v6' : 'v4',
          source: 'status',
        })),
      });
    t.deepEqual(problems(), [
      {
        object: 'Service default/web',
        reason: 'AddressUnavailable',
        message: `Cannot announce ${V6}: IPv6 is off on eth0 (sysctl ${SYSCTL}), or this host has none`,
      },
    ]);
    t.is(b.dataplane.status().vips, 1);
    const reloads = () => b.counted.get('reload done') ?? 0;
    const before = reloads();
    await delay(WHILE_MS);
    t.is(reloads(), before);
    t.is(b.counted.get('keepalived') ?? 0, 0, 'no repair');

    await network.run('b', 'sysctl', '-qw', `${SYSCTL}=0`);
    await until('b has the IPv6 address', async () => (await b.held()).includes(V6), pair);
    t.deepEqual(problems(), []);

    await network.run('b', 'sysctl', '-qw', `${SYSCTL}=1`);
    await until('the problem is back', async () => problems().length === 1, pair);
    t.true((await b.held()).includes(vip(0)));
  },
);
