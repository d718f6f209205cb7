// Several hosts that know one another: whole agents with the real BIRD and HAProxy, and a network between the hosts.

import ava from 'ava';
import type { HostGroup } from '../../agent/model/host-group.ts';
import { HostBfd } from '../../agent/vips/bird/host-bfd.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import type { TestHost } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { webObjects } from '../support/values/service-objects.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'ip', 'nsenter', 'openssl', 'ss', 'sysctl'],
});

const VIP = '198.51.100.1';

const web = (host: TestHost, network: TestNetwork, address = VIP, name = 'web') =>
  host.write(`${name}.yaml`, webObjects({ name, address, members: [network.v4('client')] }));

test.serial(
  'A host that loses its power is known to be dead within 0.3 s, and lives again once it is back',
  async (t) => {
    const names = ['a', 'b', 'c'];
    const world = await BgpWorld.create(t, { hosts: names, group: true, prepare: web });
    const { network } = world;
    await world.leadsTo(VIP, ...names);
    const hosts = names.map((name) => ({ name, address: '', back: [network.back4(name)] }));
    const group = { self: hosts[0], hosts } as HostGroup;
    const bfd = new HostBfd({ socket: world.socketOf('a'), group: () => group, pid: () => 1 });
    t.teardown(() => bfd.close());
    bfd.start();
    const living = () => [...bfd.living()].join(' ');
    await until('all live', () => living() === 'a b c');
    // A connection that has just been made keeps what it knew for a while.
    await until('BIRD has answered for a while', async () => {
      await new Promise((resolve) => setTimeout(resolve, 3_200));
      return true;
    });
    const took: number[] = [];
    for (let round = 0; round < 5; round++) {
      const changed = new Promise<void>((resolve) => {
        const end = bfd.follow(() => {
          end();
          resolve();
        });
      });
      await network.cutBack('c');
      const began = performance.now();
      await changed;
      took.push(Math.round(performance.now() - began));
      t.is(living(), 'a b');
      await network.cutBack('c', false);
      await until('c lives again', () => living() === 'a b c');
    }
    t.log('known after the loss, ms:', took.join(' '));
    t.true(took.filter((each) => each <= 300).length >= 3, took.join());
  },
);
