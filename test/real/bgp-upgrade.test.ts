// Three hosts whose agents are replaced by another version one after the other, under the eyes of clients with open connections and
// with new ones.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import { echoMember, OpenConnections } from '../support/bgp/open-connections.ts';
import { otherVersion } from '../support/host/other-version.ts';
import { VIP_PORT, webObjects } from '../support/values/service-objects.ts';
import { order } from '../support/vrrp/agent-pair.ts';
import { SteadyClient } from '../support/vrrp/steady-client.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'ip', 'nft', 'nsenter', 'openssl', 'ss', 'sysctl'],
});

const [VIP, OPEN_VIP] = ['198.51.100.1', '198.51.100.2'];
const ALL = ['a', 'b', 'c'];
const COUNT = 200;

test.serial(
  'Hosts of different versions know one another, and an upgrade of all of them costs no connection',
  async (t) => {
    t.timeout(240_000);
    // One that tells less than this one, and one that tells more.
    const less = '{ ...report, announcesAll: undefined, isBlind: undefined, arrivals: undefined }';
    const more = "{ weather: { sky: 'clear' }, ...report, capacity: 7 }";
    const older = await otherVersion(t, { version: '0.0.1', tells: less });
    const newer = await otherVersion(t, { version: '99.0.0', tells: more });
    const world = await BgpWorld.create(t, {
      hosts: ALL,
      group: true,
      prepare: async (host, network) => {
        host.headgate = older;
        await host.write('web.yaml', webObjects({ address: VIP, members: [network.v4('client')] }));
        await host.write(
          'open.yaml',
          webObjects({ name: 'open', address: OPEN_VIP, members: [network.v4('router')] }),
        );
      },
    });
    const { network } = world;
    await echoMember(network, 'router');
    const whole = async (): Promise<void> => {
      for (const vip of [VIP, OPEN_VIP]) await world.leadsTo(vip, ...ALL);
      for (const name of ALL)
        await until(
          `${name} passes packets on`,
          async () => (await world.host(name).bgp()).passing.next !== '',
        );
    };
    const versionsSeenBy = async (name: string): Promise<readonly string[]> =>
      (await world.host(name).host.status()).hosts?.hosts.map(({ version }) => version) ?? [];
    await whole();
    const opened = new OpenConnections(network, OPEN_VIP, VIP_PORT, COUNT);
    await until('all are open', async () => (await opened.count()).answered === COUNT);
    const clients = new SteadyClient(network, 'client', VIP, VIP_PORT);
    for (const [at, name] of ALL.entries()) {
      const each = world.host(name);
      const locked = await order(each.host, 'maintenance', 'on');
      t.true(locked.ok, locked.message);
      await each.agent.stop();
      each.host.headgate = newer;
      each.agent = await each.host.start();
      const unlocked = await order(each.host, 'maintenance', 'off');
      t.like(unlocked, { ok: true, active: 'this host' }, unlocked.message);
      await whole();
      await until('all are alike', async () => {
        const { hosts } = await each.host.status();
        return hosts?.fault === '' && hosts.hosts.every(({ parity }) => parity.running === 'same');
      });
      const expected = ALL.map((_, other) => (other <= at ? '99.0.0' : '0.0.1'));
      for (const other of ALL)
        await until(
          `${other} sees the versions of all`,
          async () => (await versionsSeenBy(other)).join() === expected.join(),
        );
      t.like(await opened.count(), { answered: COUNT, broken: [] }, name);
    }
    const { answered, failures } = await clients.stop();
    t.deepEqual(failures, {});
    t.true(answered > 100, String(answered));
  },
);
