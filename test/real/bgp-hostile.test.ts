// A machine that is no host of the setting `hosts` sends what only hosts send: packets that are passed on, BFD, tables of HAProxy.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import { forgeBfd } from '../support/bgp/forged-bfd.ts';
import { echoMember, OpenConnections } from '../support/bgp/open-connections.ts';
import { sendAcknowledgements } from '../support/traffic/forged-segment.ts';
import { VIP_PORT, webObjects } from '../support/values/service-objects.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'conntrack', 'ip', 'nft', 'nsenter', 'openssl', 'perl', 'ss', 'sysctl'],
});

const VIP = '198.51.100.1';
const KERNEL_VIP = '198.51.100.2';
const ALL = ['a', 'b', 'c'];
const COUNT = 200;
/** Packets of each DSCP. */
const FORGED = 100;
const DSCPS = Array.from({ length: 64 }, (_, dscp) => dscp);

test.serial(
  'A machine that is no host breaks no connection, multiplies no packet, and is no peer of HAProxy',
  async (t) => {
    t.timeout(180_000);
    const world = await BgpWorld.create(t, {
      hosts: ALL,
      group: true,
      others: ['evil'],
      prepare: async (host, network) => {
        for (const name of ALL) await network.run(name, 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
        const members = [network.v4('router')];
        await host.write('web.yaml', webObjects({ address: VIP, members }));
        const annotations = { engine: 'kernel' };
        await host.write(
          'kernel.yaml',
          webObjects({ name: 'kernel', address: KERNEL_VIP, members, annotations }),
        );
      },
    });
    const { network } = world;
    await echoMember(network, 'router');
    for (const vip of [VIP, KERNEL_VIP]) await world.leadsTo(vip, ...ALL);
    for (const name of ALL)
      await until(
        `${name} passes packets on`,
        async () => (await world.host(name).bgp()).passing.next !== '',
      );
    await network.addToBack('evil');
    const all = [VIP, KERNEL_VIP].map((vip) => new OpenConnections(network, vip, VIP_PORT, COUNT));
    for (const each of all) await until('all are open', async () => (await each.count()).answered === COUNT);
    const areWhole = async (after: string): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      for (const each of all) t.like(await each.count(), { answered: COUNT, broken: [] }, after);
    };
    const passedBy = async (): Promise<number> => {
      // Counted every ten seconds.
      const rounds = await Promise.all(
        ALL.map(async (name) =>
          network.run(name, 'nft', 'list', 'counters', 'table', 'ip', await tableOf(name)),
        ),
      );
      return rounds
        .map((text) => Number(/counter passed \{\s*packets (\d+)/.exec(text)?.[1]))
        .reduce((sum, each) => sum + each, 0);
    };
    const tableOf = async (name: string): Promise<string> =>
      /table ip (\S+_passing)/.exec(await network.run(name, 'nft', 'list', 'tables'))?.[1] ?? '';

    const before = await passedBy();
    for (const [vip, host] of [
      [VIP, 'a'],
      [KERNEL_VIP, 'b'],
    ] as const) {
      await network.run('evil', 'ip', 'route', 'add', vip, 'via', network.back4(host), 'dev', 'back');
      await sendAcknowledgements(network, 'evil', vip, VIP_PORT, FORGED, DSCPS);
    }
    await areWhole('forged packets');
    const passed = (await passedBy()) - before;
    t.log(`${2 * DSCPS.length * FORGED} forged packets, ${passed} passed on`);
    t.true(passed <= 2 * DSCPS.length * FORGED * (ALL.length - 1), String(passed));

    const isUp = async (): Promise<boolean> => {
      const { hosts } = await world.host('a').host.status();
      return hosts?.hosts.every(({ bfd }) => bfd !== 'down') === true;
    };
    const [from, to] = [network.back4('b'), network.back4('a')];
    await network.run('evil', 'ip', 'address', 'add', `${from}/32`, 'dev', 'lo');
    await network.run('evil', 'ip', 'route', 'add', to, 'via', network.v4('a'), 'dev', 'eth0');
    await forgeBfd(network, 'evil', { from, to });
    t.true(await isUp(), 'BFD of the front network is no BFD of a host');
    await areWhole('forged BFD in front');

    const talk = `
    const socket = require('net').connect(9182, '${to}');
    let text = '';
    socket.on('connect', () => socket.write('HAProxyS 2.1\\nb\\na 1 0\\n'));
    socket.on('data', (chunk) => { text += chunk.toString('latin1'); }).on('error', () => 0);
    socket.on('close', () => { console.log(JSON.stringify(text.startsWith('200'))); process.exit(); });
    setTimeout(() => socket.destroy(), 5000);`;
    await network.run('evil', 'ip', 'route', 'del', to);
    t.is((await network.run('evil', process.execPath, '-e', talk)).trim(), 'false');

    // The back network is trusted: this ends BFD with a host, and its connections that come in elsewhere, but for the moment alone.
    await forgeBfd(network, 'evil', { from, to });
    await until('all live again', isUp);
    for (const vip of [VIP, KERNEL_VIP]) await world.leadsTo(vip, ...ALL);
    const last = new OpenConnections(network, VIP, VIP_PORT, COUNT);
    await until('new connections are answered', async () => (await last.count()).answered === COUNT);
  },
);
