// The same as bgp.test.ts with FRR as the router, set up as docs/bgp.md shows.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import { startFrr } from '../support/bgp/frr-router.ts';
import { VIP_PORT, webObjects } from '../support/values/service-objects.ts';
import { order } from '../support/vrrp/agent-pair.ts';
import { SteadyClient } from '../support/vrrp/steady-client.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'vtysh', 'ip', 'nsenter', 'ss', 'sysctl'],
});

const VIP = '198.51.100.1';

test.serial(
  'FRR spreads connections, honours the last choice, and leaves out a host that is cut off',
  async (t) => {
    const world = await BgpWorld.create(t);
    const { network } = world;
    await startFrr(t, world);
    for (const { host } of world.hosts)
      await host.write('web.yaml', webObjects({ address: VIP, members: [network.v4('client')] }));
    await world.leadsTo(VIP, 'a', 'b');
    const client = new SteadyClient(network, 'client', VIP, VIP_PORT);
    t.true((await order(world.host('a').host, 'maintenance', 'on')).ok);
    t.deepEqual(await world.router.hopsOf(VIP), [network.v4('b')]);
    t.true((await order(world.host('a').host, 'maintenance', 'off')).ok);
    await world.leadsTo(VIP, 'a', 'b');
    const { answered, failures } = await client.stop();
    t.deepEqual(failures, {});
    t.true(answered > 20, String(answered));
    await network.cut('a');
    await world.leadsTo(VIP, 'b');
    await network.join('a');
    await world.leadsTo(VIP, 'a', 'b');
  },
);
