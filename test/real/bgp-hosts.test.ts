// Several hosts that know one another: whole agents with the real BIRD and HAProxy, and a network between the hosts.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava from 'ava';
import type { HostGroup } from '../../agent/model/host-group.ts';
import { HostBfd } from '../../agent/vips/bird/host-bfd.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import type { TestHost } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { MEMBER_PORT, VIP_PORT, webObjects } from '../support/values/service-objects.ts';
import { order } from '../support/vrrp/agent-pair.ts';
import { SteadyClient } from '../support/vrrp/steady-client.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'ip', 'nft', 'nsenter', 'openssl', 'ss', 'sysctl'],
});

const VIP = '198.51.100.1';

const web = (host: TestHost, network: TestNetwork, address = VIP, name = 'web') =>
  host.write(`${name}.yaml`, webObjects({ name, address, members: [network.v4('client')] }));

/** All agents report that all hosts are connected, alike and living. */
async function areAlike({ hosts }: BgpWorld): Promise<void> {
  for (const { name, host } of hosts)
    await until(`${name} has all hosts as it should`, async () => {
      const { hosts: known } = await host.status();
      return (
        known?.fault === '' &&
        known.hosts.length === hosts.length &&
        known.hosts.every(
          ({ parity, lowered, bfd }) =>
            parity.running === 'same' && lowered.length === 0 && bfd !== 'unknown',
        )
      );
    });
}

test.serial(
  'Three hosts know one another: a table in status, metrics, shared tables of HAProxy, and a looking glass',
  async (t) => {
    const world = await BgpWorld.create(t, { hosts: ['a', 'b', 'c'], group: true, prepare: web });
    const { network } = world;
    await world.leadsTo(VIP, 'a', 'b', 'c');
    await areAlike(world);
    const { host, agent } = world.host('a');
    const { stdout, status } = await host.command('status');
    t.is(status, 0, stdout);
    t.regex(stdout, /Hosts: +3, 3 of them connected and not lowered/);
    t.regex(stdout, / a, 127\.[0-9.]+: this host, HAProxy as desired, Headgate /);
    t.regex(stdout, / b, 127\.[0-9.]+: connected, desired state same, HAProxy same, Headgate [^,]+, BFD up/);
    const metric = await agent.metrics();
    for (const other of ['b', 'c']) {
      t.is(metric('headgate_host_up', { host: other }), 1);
      t.is(metric('headgate_host_connected', { host: other }), 1);
      t.is(metric('headgate_host_parity', { host: other, of: 'running' }), 1);
    }
    const file = await readFile(join(host.stateDir, 'haproxy', 'haproxy.cfg'), 'utf8');
    for (const each of ['a', 'b', 'c']) t.true(file.includes(`server ${network.back4(each)}:9182`), each);

    const seen = await host.command('why', [VIP]);
    t.regex(
      seen.stdout,
      /3 hosts of the setting "hosts":\n +a: announced to 1 of 1 router \(tor-a\)\n +b: announced .*\n +c: announced/,
    );
    t.regex((await order(world.host('b').host, 'maintenance', 'on')).message, /^This host is locked/);
    const lowered = await host.command('why', [VIP]);
    t.regex(lowered.stdout, / b: announced to 1 of 1 router \(tor-a\), as the last choice: .*maintenance/);
    await until('b is shown as lowered', async () =>
      (await host.command('status')).stdout.includes('BFD up, lowered: maintenance'),
    );
    await order(world.host('b').host, 'maintenance', 'off');

    const { workerPid } = (await host.status()).haproxy;
    await world.cut('c');
    await world.host('c').agent.stop();
    await until('c is away', async () => {
      const { hosts: known } = await host.status();
      return (
        known?.hosts.some(({ name, fault, bfd }) => name === 'c' && fault !== '' && bfd === 'down') === true
      );
    });
    t.regex((await host.command('why', [VIP])).stdout, / c: does not answer/);
    t.is((await agent.metrics())('headgate_host_up', { host: 'c' }), 0);
    t.is((await host.status()).haproxy.workerPid, workerPid, 'no reload for a host that is away');
    await world.host('a').without('c');
    await until('c is out of the list', async () => (await host.status()).hosts?.hosts.length === 2);
    await until('HAProxy has the others', async () => (await host.status()).haproxy.workerPid !== workerPid);
    t.regex((await host.status()).fault, /^Host b: its setting "hosts" is another than that of this host/);
    await world.host('b').without('c');
    await until('the lists are equal', async () => (await host.status()).fault === '');
  },
);

test.serial(
  'Maintenance returns once routers have moved as the counts of all hosts prove, and says it if no other host could serve',
  async (t) => {
    const world = await BgpWorld.create(t, { hosts: ['a', 'b', 'c'], group: true, prepare: web });
    const { network } = world;
    await world.leadsTo(VIP, 'a', 'b', 'c');
    await areAlike(world);
    const clients = [1, 2, 3, 4].map(() => new SteadyClient(network, 'client', VIP, VIP_PORT));
    const [a, b, c] = world.hosts.map(({ host }) => host) as [TestHost, TestHost, TestHost];
    const locked = await order(a, 'maintenance', 'on');
    t.log(locked.message, locked.tookMs);
    t.regex(
      locked.message,
      /which have moved: the last \d+ new connections came to other hosts; \d+ connections? left$/,
    );
    t.like(locked, { ok: true, active: 'other hosts' });
    t.true(locked.tookMs < 1_000, String(locked.tookMs));
    t.deepEqual(await world.router.hopsOf(VIP), [network.v4('b'), network.v4('c')].sort());
    t.false(
      (await network.run('b', 'nft', 'list', 'tables')).includes('headgate_arrivals'),
      'b counts no more',
    );
    t.is((await order(b, 'maintenance', 'on')).active, 'other hosts');
    const last = await order(c, 'maintenance', 'on');
    t.like(last, { ok: false, active: 'this host' });
    t.regex(last.message, /but no other host is connected and not lowered: clients still come here/);
    await world.leadsTo(VIP, 'a', 'b', 'c');
    for (const each of [a, b, c])
      t.is(
        (await order(each, 'maintenance', 'off')).message,
        'This host is not locked; 1 of 1 router has its routes',
      );
    await world.leadsTo(VIP, 'a', 'b', 'c');
    for (const client of clients) {
      const { answered, failures } = await client.stop();
      t.deepEqual(failures, {});
      t.true(answered > 50, String(answered));
    }
  },
);

test.serial(
  'A host that loses its power is known to be dead within 0.3 s, and lives again once it is back',
  async (t) => {
    const names = ['a', 'b', 'c'];
    const world = await BgpWorld.create(t, { hosts: names, group: true, prepare: web });
    const { network } = world;
    await world.leadsTo(VIP, ...names);
    const hosts = names.map((name) => ({ name, address: '', back: [network.back4(name)], anchors: [] }));
    const group = { self: hosts[0], hosts } as HostGroup;
    const bfd = new HostBfd({
      socket: world.socketOf('a'),
      group: () => group,
      pid: () => 1,
      blind: () => new Set(),
      onBlind: () => undefined,
    });
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

test.serial(
  'A host whose BIRD is killed or hangs still lives for the others, and one that is gone does not',
  async (t) => {
    const world = await BgpWorld.create(t, { hosts: ['a', 'b', 'c'], group: true, prepare: web });
    await world.leadsTo(VIP, 'a', 'b', 'c');
    await areAlike(world);
    const { host } = world.host('a');
    const bfdOf = async (name: string) =>
      (await host.status()).hosts?.hosts.find((each) => each.name === name)?.bfd;
    const c = world.host('c');
    // BIRD has answered for three seconds.
    await new Promise((resolve) => setTimeout(resolve, 3_500));
    for (const signal of ['SIGKILL', 'SIGSTOP'] as const) {
      const { pid } = await c.bgp();
      process.kill(pid, signal);
      const seen = new Set<string | undefined>();
      for (const end = performance.now() + 3_000; performance.now() < end; ) seen.add(await bfdOf('c'));
      t.deepEqual([...seen], ['up'], signal);
      if (signal === 'SIGSTOP') process.kill(pid, 'SIGCONT');
      await world.leadsTo(VIP, 'a', 'b', 'c');
      await new Promise((resolve) => setTimeout(resolve, 3_500));
    }
    await world.cut('c');
    await until('c is dead', async () => (await bfdOf('c')) === 'down');
  },
);

/** Ten connections at once of each of 30 clients; gives the answers of each, as `member,router` if there were two. */
const AFFINITY = `
const { connect } = require('node:net');
const [, vip, port] = process.argv;
const ask = (localAddress) => new Promise((resolve) => {
  let text = '';
  connect({ host: vip, port: Number(port), localAddress, timeout: 5000 })
    .setEncoding('utf8').on('data', (chunk) => { text += chunk; })
    .on('error', () => 0).on('timeout', () => resolve('silent')).on('close', () => resolve(text));
});
(async () => {
  const all = {};
  await Promise.all(Array.from({ length: 30 }, async (_, at) => {
    const own = '10.9.1.' + (at + 1);
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask(own)));
    all[own] = [...new Set(answers)].sort().join();
  }));
  console.log(JSON.stringify(all));
})();
`;

test.serial(
  'A client keeps its member at all hosts, also if it comes to several at once and one is lost',
  async (t) => {
    const world = await BgpWorld.create(t, {
      hosts: ['a', 'b', 'c'],
      group: true,
      prepare: (host, network) =>
        host.write(
          'web.yaml',
          webObjects({
            address: VIP,
            members: [network.v4('client'), network.v4('router')],
            spec: { sessionAffinity: 'ClientIP' },
          }),
        ),
    });
    const { network } = world;
    network.serve('router', MEMBER_PORT);
    for (let at = 1; at <= 30; at++)
      await network.run('client', 'ip', 'address', 'add', `10.9.1.${at}/16`, 'dev', 'eth0');
    await world.leadsTo(VIP, 'a', 'b', 'c');
    await areAlike(world);
    const membersOf = async (): Promise<Readonly<Record<string, string>>> =>
      JSON.parse(await network.run('client', process.execPath, '-e', AFFINITY, VIP, String(VIP_PORT)));
    const first = await membersOf();
    const values = Object.values(first);
    t.deepEqual([...new Set(values)].sort(), ['member', 'router'], JSON.stringify(first));
    t.deepEqual(await membersOf(), first);
    await world.cut('c');
    await world.leadsTo(VIP, 'a', 'b');
    t.deepEqual(await membersOf(), first, 'no client has moved');
  },
);
