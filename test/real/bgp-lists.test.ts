// Hosts whose settings `hosts` differ, as while an operator changes them one after the other: a packet that no host knows must not go
// round between them.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import { sendAcknowledgements } from '../support/traffic/forged-segment.ts';
import { VIP_PORT, webObjects } from '../support/values/service-objects.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'ip', 'nft', 'nsenter', 'openssl', 'perl', 'ss', 'sysctl'],
});

const VIP = '198.51.100.1';
const SENT = 100;

test.serial(
  'Packets end between hosts whose lists number them otherwise, and equal lists pass them on again',
  async (t) => {
    t.timeout(180_000);
    const names = ['a', 'd', 'e'];
    const world = await BgpWorld.create(t, {
      hosts: ['a', 'b', 'c', 'd', 'e'],
      later: ['b', 'c'],
      group: true,
      prepare: (host, network) =>
        host.write('web.yaml', webObjects({ address: VIP, members: [network.v4('client')] })),
    });
    const { network } = world;
    const passes = () =>
      Promise.all(
        names.map((name) =>
          until(`${name} passes packets on`, async () => (await world.host(name).bgp()).passing.next !== ''),
        ),
      );
    await world.leadsTo(VIP, ...names);
    await passes();
    // A packet that comes in at e has the same number for a and d, but d takes it for one that a has not seen.
    await world.host('a').without('b', 'c');
    await world.host('e').without('b', 'c');
    await world.host('d').without('e');
    for (const name of ['a', 'd'])
      await until(`${name} says it`, async () =>
        /its setting "hosts" is another/.test((await world.host(name).host.status()).hosts?.fault ?? ''),
      );
    await until('d passes nothing on', async () => (await world.host('d').bgp()).passing.next === '');
    await network.run('router', 'ip', 'route', 'replace', VIP, 'via', network.v4('e'), 'metric', '1');
    const packets = async (): Promise<number> => {
      const texts = await Promise.all(names.map((name) => network.run(name, 'cat', '/proc/net/dev')));
      return texts.reduce((sum, text) => sum + Number(/back:(?:\s+\d+){9}\s+(\d+)/.exec(text)?.[1]), 0);
    };
    const before = await packets();
    await sendAcknowledgements(network, 'client', VIP, VIP_PORT, SENT);
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const after = await packets();
    t.log(`${SENT} packets of unknown connections, ${after - before} on the back network`);
    t.true(after - before < 20 * SENT, String(after - before));
    for (const name of names) await world.host(name).without('b', 'c');
    await passes();
    for (const name of names)
      await until(`${name} has equal lists`, async () => {
        const { hosts } = await world.host(name).host.status();
        return hosts?.fault === '';
      });
  },
);
