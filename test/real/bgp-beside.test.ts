// The agent's BIRD beside another BGP speaker on the host, as docs/bgp.md has it: an address and a port of its own.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import { HOST_ASN } from '../support/bgp/test-router.ts';

const test = requires(ava, { haproxy: true, root: true, programs: ['bird', 'ip', 'nsenter', 'sysctl'] });

const VIP = '198.51.100.1';
const OTHER = '203.0.113.0/24';
const OWN = '10.9.0.200';

test('A speaker that has port 179 of all addresses stays as it is, and both have sessions with BFD', async (t) => {
  t.timeout(120_000);
  const peer = { source: OWN, localPort: 1790 };
  const world = await BgpWorld.create(t, {
    hosts: ['a'],
    peer,
    prepare: async (host, network) => {
      await network.run('a', 'ip', 'address', 'add', `${OWN}/24`, 'dev', 'eth0');
      const file = join(host.directory, 'other.conf');
      await writeFile(
        file,
        `router id 10.9.0.201; protocol device { } protocol bfd { }
protocol static { ipv4; route ${OTHER} blackhole; }
protocol bgp tor { local ${network.v4('a')} as ${HOST_ASN}; neighbor ${network.v4('router')} as 65000; bfd on;
  ipv4 { import none; export all; next hop self; }; }`,
      );
      const other = network.start('a', 'bird', '-f', '-c', file, '-s', join(host.directory, 'other.sock'));
      t.teardown(() => other.kill());
      await host.serve({ address: VIP, port: 8080, members: [network.v4('client')] });
    },
  });
  const { network, router } = world;
  // Two addresses of one network, of which a session has the second.
  await router.add(`protocol bgp own_a { local ${network.v4('router')} as 65000; neighbor ${OWN} port 1790 as ${HOST_ASN};
  passive on; hold time 9; bfd on; ipv4 { import all; export none; }; }`);
  await until(
    'both have led here',
    async () => {
      const [vip, other] = await Promise.all([
        router.hopsOf(VIP),
        network.run('router', 'ip', 'route', 'show', OTHER),
      ]);
      return vip.length === 1 && other.includes(network.v4('a'));
    },
    { seconds: 30, seen: () => world.host('a').agent.text.slice(-2_000) },
  );
  await until('BFD of ours is up', async () => (await world.host('a').bgp()).sessions[0]?.bfd === 'Up', {
    seconds: 15,
  });
  const lines = (await router.socket.ask('show bfd sessions')).lines.join('\n');
  t.is([...lines.matchAll(/ Up /g)].length, 2, lines);
});
