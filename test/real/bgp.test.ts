// Hosts that announce VIPs by BGP: whole agents with the real BIRD, a real router, real connections through its ECMP.

import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava from 'ava';
import { birdPaths } from '../../agent/vips/bird/paths.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import type { TestRouter } from '../support/bgp/test-router.ts';
import type { TestHost } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { VIP_PORT, webObjects } from '../support/values/service-objects.ts';
import { order } from '../support/vrrp/agent-pair.ts';
import { SteadyClient } from '../support/vrrp/steady-client.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['bird', 'ip', 'nsenter', 'ss', 'sysctl'],
});

const VIP = '198.51.100.1';

const web = (host: TestHost, network: TestNetwork, address = VIP, name = 'web') =>
  host.write(`${name}.yaml`, webObjects({ name, address, members: [network.v4('client')] }));

test.serial(
  'A VIP is announced once it is served, leads clients to both hosts, and leaves with its Service',
  async (t) => {
    const world = await BgpWorld.create(t);
    const { network, hosts } = world;
    for (const { host } of hosts) await web(host, network);
    await world.leadsTo(VIP, 'a', 'b');
    t.is(await network.whoServes(VIP, VIP_PORT), 'member');
    for (const { host, agent, bgp } of hosts) {
      await until('the routes are reported', async () =>
        /is announced to/.test((await host.why()).announced.join()),
      );
      const { announced } = await host.why();
      t.regex(announced.join(), /^198\.51\.100\.1 is announced to 1 of 1 router since \d{4}-/);
      t.like(await bgp(), { vips: { first: 1, last: 0, withheld: 0 }, lowered: [], fault: '' });
      const { stdout, status } = await host.command('status');
      t.regex(
        stdout,
        /BGP: +AS 65001, 1 VIP announced\n +router tor-a, 10\.9\.0\.\d+, AS 65000: established since .*, 1 route, BFD up/,
      );
      t.is(status, 0, stdout);
      const metric = await agent.metrics();
      t.is(metric('bird_protocol_up', { name: 'tor-a' }), 1);
      t.is(metric('bird_protocol_prefix_export_count', { name: 'tor-a' }), 1);
    }
    for (const { host } of hosts) await host.remove('web.yaml');
    await world.leadsTo(VIP);
    await until(
      'the VIP is local no more',
      async () => !(await network.run('a', 'ip', 'route', 'show', 'table', 'local')).includes(VIP),
    );
  },
);

test.serial(
  'A host in maintenance is the last choice, no new connection fails, and all hosts in maintenance still serve',
  async (t) => {
    const world = await BgpWorld.create(t);
    const { network } = world;
    const [a, b] = [world.host('a'), world.host('b')];
    for (const { host } of world.hosts) await web(host, network);
    await world.leadsTo(VIP, 'a', 'b');
    const client = new SteadyClient(network, 'client', VIP, VIP_PORT);
    const locked = await order(a.host, 'maintenance', 'on');
    t.like(locked, { ok: true, status: 0 });
    t.regex(
      locked.message,
      /^This host is locked: its routes are the last choice of the routers; no new connection comes here, .*; \d+ connections? left$/,
    );
    t.true(locked.tookMs < 1_000, String(locked.tookMs));
    t.deepEqual(
      await world.router.hopsOf(VIP),
      [network.v4('b')],
      'the router has moved when the order returns',
    );
    t.like(await a.bgp(), { vips: { first: 0, last: 1, withheld: 0 }, lowered: ['maintenance'] });
    t.regex(
      (await a.host.why()).announced.join(),
      /to 1 of 1 router since .*, as the last choice: this host is lowered: maintenance$/,
    );
    const both = await order(b.host, 'maintenance', 'on');
    t.regex(both.message, /new connections still come here/);
    t.false(both.ok);
    await world.leadsTo(VIP, 'a', 'b');
    t.is(
      (await order(b.host, 'maintenance', 'off')).message,
      'This host is not locked; 1 of 1 router has its routes',
    );
    await world.leadsTo(VIP, 'b');
    t.true((await order(a.host, 'maintenance', 'off')).ok);
    await world.leadsTo(VIP, 'a', 'b');
    const { answered, failures } = await client.stop();
    t.deepEqual(failures, {});
    t.true(answered > 50, String(answered));
  },
);

test.serial('BIRD outlives the agent, and is started again if it is killed', async (t) => {
  const world = await BgpWorld.create(t, { hosts: ['a'] });
  const { network, router } = world;
  const a = world.host('a');
  await web(a.host, network);
  await world.leadsTo(VIP, 'a');
  const before = (await a.bgp()).sessions[0]?.since;
  await a.agent.kill();
  t.is(await network.whoServes(VIP, VIP_PORT), 'member');
  a.agent = await a.host.start();
  await until('the session is reported', async () => (await a.bgp()).sessions[0]?.state === 'Established');
  t.is((await a.bgp()).sessions[0]?.since, before, 'the session has not ended');
  t.false((await router.log()).includes('Received:'), 'nothing was withdrawn');
  t.true(a.agent.hasLogged('Adopted BIRD'));

  const { pid } = await a.bgp();
  process.kill(pid, 'SIGKILL');
  await world.leadsTo(VIP);
  await world.leadsTo(VIP, 'a');
  t.not((await a.bgp()).pid, pid);
  t.is(await network.whoServes(VIP, VIP_PORT), 'member');

  await router.stop('SIGTERM');
  await until('the session is lost', async () => (await a.bgp()).sessions[0]?.state !== 'Established');
  await router.start();
  await world.leadsTo(VIP, 'a');
});

test.serial('What a router refuses is said in words', async (t) => {
  const prepare = (host: TestHost) => writeFile(join(host.directory, 'password'), 'right\n', { mode: 0o600 });
  const peer = { passwordFile: 'password' };
  const world = await BgpWorld.create(t, { hosts: ['a'], prepare, peer, neighbour: 'password "right";' });
  const { network, router } = world;
  const a = world.host('a');
  await web(a.host, network);
  await web(a.host, network, '198.51.100.2', 'web2');
  await world.leadsTo(VIP, 'a');
  const text = await readFile(birdPaths(a.host.runtimeDir).config, 'utf8');
  t.true(text.includes('password "right"'));
  t.is((await stat(birdPaths(a.host.runtimeDir).config)).mode & 0o777, 0o600);

  /** From the change of the router's settings, from an established session. BIRD is told within four seconds, and asked each second. */
  const says = async (pattern: RegExp, ...settings: Parameters<TestRouter['configure']>) => {
    await router.configure('password "right";');
    await until(
      'the session is established',
      async () => (await a.bgp()).sessions[0]?.state === 'Established',
    );
    await world.leadsTo(VIP, 'a');
    await router.configure(...settings);
    const began = performance.now();
    let seen = '';
    await until(
      `the router's refusal is said: ${pattern}`,
      async () => {
        const { problems } = await a.host.status();
        seen = problems
          .filter(({ reason }) => reason.startsWith('Bgp'))
          .map(({ message }) => message)
          .join();
        return pattern.test(seen);
      },
      { seen: () => seen, seconds: 5 },
    );
    t.log(`${pattern} after ${Math.round(performance.now() - began)} ms`);
  };
  await says(/it expects another ASN of this host than 65001/, 'password "right";', { hostAsn: 65_009 });
  await says(/its ASN is another than 65000/, 'password "right";', { asn: 65_007 });
  await says(/it takes fewer routes than this host announces/, 'password "right";', {
    limit: 'import limit 1 action disable;',
  });
  await says(
    /tor-a \(10\.9\.0\.\d+\) gets no routes of this host: it has another password: compare "passwordFile"/,
    'password "wrong"; connect delay time 1;',
  );
  t.is((await a.host.command('status')).stdout.includes('right'), false);
  t.false(a.agent.text.includes('"right"'), 'no password is in the log');
  const { announced } = await a.host.why();
  t.regex(announced.join(), /^198\.51\.100\.1 is not announced: tor-a: /);
});

test.serial(
  'Files that another process changes are restored, and a host without HAProxy withdraws',
  async (t) => {
    const world = await BgpWorld.create(t);
    const { network } = world;
    const a = world.host('a');
    for (const { host } of world.hosts) await web(host, network);
    await world.leadsTo(VIP, 'a', 'b');
    const paths = birdPaths(a.host.runtimeDir);
    await writeFile(paths.vips.v4, 'route 203.0.113.1/32 blackhole;\nroute 203.0');
    const isRestored = async () => (await readFile(paths.vips.v4, 'utf8')) === `route ${VIP}/32 blackhole;\n`;
    await until('the file is restored', isRestored);
    await network.run('a', 'ip', 'route', 'del', 'local', VIP, 'dev', 'lo', 'table', 'local');
    await until('the VIP is local again', async () =>
      (await network.run('a', 'ip', 'route', 'show', 'table', 'local')).includes(VIP),
    );
    t.deepEqual(await world.router.hopsOf(VIP), [network.v4('a'), network.v4('b')].sort());

    const processes = [await a.host.master(), await a.host.worker()];
    for (const pid of processes) process.kill(pid, 'SIGSTOP');
    await world.leadsTo(VIP, 'b');
    t.like(await a.bgp(), { vips: { first: 0, last: 0, withheld: 1 }, lowered: ['haproxy'] });
    t.regex(
      (await a.host.why()).announced.join(),
      /^198\.51\.100\.1 is not announced: HAProxy does not answer on this host/,
    );
    t.is(await network.whoServes(VIP, VIP_PORT), 'member');
    for (const pid of processes) process.kill(pid, 'SIGCONT');
    await world.leadsTo(VIP, 'a', 'b');
  },
);

test.serial(
  'A VIP with a listener that cannot be served on one host is the last choice there alone',
  async (t) => {
    const world = await BgpWorld.create(t);
    const { network } = world;
    const other = '198.51.100.2';
    // Another process has the port of this VIP on the host a.
    const script = `require('net').createServer().listen(${VIP_PORT}, '${other}', () => console.log())`;
    await network.run('a', 'ip', 'address', 'add', `${other}/32`, 'dev', 'lo');
    network.start('a', process.execPath, '-e', script);
    await until('the port is taken', async () =>
      (await network.run('a', 'ss', '-Htln')).includes(`${other}:${VIP_PORT}`),
    );
    for (const { host } of world.hosts) await web(host, network);
    await world.leadsTo(VIP, 'a', 'b');
    for (const { host } of world.hosts) await web(host, network, other, 'web2');
    await world.leadsTo(other, 'b');
    await until('it is the last choice', async () => (await world.host('a').bgp()).vips.last === 1);
    t.regex(
      (await world.host('a').host.why('default/web2')).announced.join(),
      /as the last choice: a listener on it is not served/,
    );
  },
);

test.serial('Settings with which a session does not come back are undone', async (t) => {
  const world = await BgpWorld.create(t, { hosts: ['a'] });
  const { network } = world;
  const a = world.host('a');
  await web(a.host, network);
  await world.leadsTo(VIP, 'a');
  await a.configure({}, { communities: ['65001:100'] });
  await until('the community is there', async () => (await world.router.routes()).includes('(65001,100)'));
  await a.configure({}, { asn: 65_007 });
  await until(
    'it is said',
    async () =>
      /The session of tor-a does not come back with what has changed: the former version stays/.test(
        (await a.bgp()).fault,
      ),
    {
      seconds: 40,
    },
  );
  await world.leadsTo(VIP, 'a');
  t.pass();
  await a.configure({}, { asn: 65_000 });
  await until('the fault is over', async () => (await a.bgp()).fault === '');
  await world.leadsTo(VIP, 'a');
});

test.serial(
  'A host that is set to announce by BGP no more ends BIRD, and its VIP is local no more',
  async (t) => {
    const world = await BgpWorld.create(t);
    const { network } = world;
    const a = world.host('a');
    for (const { host } of world.hosts) await web(host, network);
    await world.leadsTo(VIP, 'a', 'b');
    const { pid } = await a.bgp();
    await a.agent.stop();
    await writeFile(join(a.host.directory, 'headgate.yaml'), '');
    a.agent = await a.host.start();
    await world.leadsTo(VIP, 'b');
    await until(
      'the VIP is local no more',
      async () => !(await network.run('a', 'ip', 'route', 'show', 'table', 'local')).includes(VIP),
    );
    t.is(await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''), '', 'BIRD has ended');
    t.is((await a.host.status()).bgp, undefined);
  },
);

test.serial(
  'A host that is cut off is left out at once, and is back soon after it is there again',
  async (t) => {
    const world = await BgpWorld.create(t);
    const { network } = world;
    for (const { host } of world.hosts) await web(host, network);
    await world.leadsTo(VIP, 'a', 'b');
    const began = performance.now();
    await network.cut('a');
    await world.leadsTo(VIP, 'b');
    const tookMs = performance.now() - began;
    t.log(`left out after ${Math.round(tookMs)} ms`);
    // Without BFD it would be the hold time, 9 s.
    t.true(tookMs < 6_000, `${tookMs} ms`);
    t.is(await network.whoServes(VIP, VIP_PORT), 'member');
    await network.join('a');
    await world.leadsTo(VIP, 'a', 'b');
  },
);
