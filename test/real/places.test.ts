// Addresses and ports that HAProxy cannot listen on: the agent leaves each one out, reports it, and adds it again
// automatically.

import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { statSync } from 'node:fs';
import type { Server } from 'node:net';
import { promisify } from 'node:util';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { signal, TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { occupied, vacated } from '../support/host/occupied.ts';
import { startMembers } from '../support/traffic/members.ts';
import { ask, Load } from '../support/traffic/traffic.ts';
import { VIP_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true });
const asRoot = requires(ava, { haproxy: true, root: true, programs: ['ip'] });
const run = promisify(execFile);

test.serial(
  'The agent leaves out and reports a port of another program, and serves it when it is free',
  async (t) => {
    const host = await TestHost.create(t);
    await startMembers(t, host);
    const other = await occupied(t, host.place(2));
    await host.serve();
    await host.serve({ name: 'shop', address: host.address(2) });
    const agent = await host.start();
    t.true(await host.answers());
    const { verdict, problems } = await host.why('default/shop');
    t.is(verdict, 'not served');
    t.is(problems[0]?.reason, 'AddressUnavailable');
    t.regex(problems[0]?.message ?? '', new RegExp(`${host.address(2)} port ${VIP_PORT}`));
    t.is((await agent.metrics())('headgate_problems', { reason: 'AddressUnavailable' }), 1);
    t.is((await host.status()).haproxy.blocked.length, 1);
    await vacated(other);
    await host.soon('it is served', () => host.answers(2));
    await host.until('nothing is reported', async () => (await host.status()).problems.length === 0);
    await host.until('the log says so', async () => agent.hasLogged('Solved: '));
    await host.until('`why` says so', async () => (await host.why('default/shop')).verdict === 'served');
  },
);

test.serial('A new Service on a port of another program does not affect other Services', async (t) => {
  const host = await TestHost.create(t);
  await startMembers(t, host);
  await occupied(t, host.place(2));
  await host.serve();
  await host.start();
  const load = new Load(t, host.place());
  await host.serve({ name: 'shop', address: host.address(2) });
  await host.until('it is reported', async () => (await host.why('default/shop')).problems.length === 1);
  await host.serve({ name: 'third', address: host.address(3) });
  await host.until('a third one is served', () => host.answers(3));
  await load.answered(30);
  t.deepEqual((await load.stop()).failures, []);
});

asRoot.serial(
  'In a network namespace, where only HAProxy can try an address, one that is taken keeps no other new Service waiting',
  async (t) => {
    const network = await TestNetwork.create(t, ['lb', 'client', 'member']);
    network.serve('member', 17_090);
    for (const address of ['10.9.2.1', '10.9.2.2'])
      await network.run('lb', 'ip', 'address', 'add', `${address}/32`, 'dev', 'lo');
    const other = `require('net').createServer((socket) => socket.destroy()).listen(8080, '10.9.2.2')`;
    network.start('lb', process.execPath, '-e', other);
    await network.run('client', 'ip', 'route', 'add', '10.9.2.0/24', 'via', network.v4('lb'));
    const host = await TestHost.create(t, { flags: ['--netns', network.netns('lb')] });
    await host.start();
    const members = [network.v4('member')];
    for (const [n, name] of ['web', 'shop'].entries())
      await host.serve({ name, address: `10.9.2.${1 + n}`, port: 8080, members });
    const verdict = async (name: string) => (await host.why(`default/${name}`)).verdict;
    await host.until('the other one is served', async () => (await verdict('web')) === 'served');
    t.is(await verdict('shop'), 'not served');
  },
);

test.serial('An agent restart does not change HAProxy while a port is occupied', async (t) => {
  const host = await TestHost.create(t);
  await startMembers(t, host);
  await occupied(t, host.place(2));
  await host.serve();
  await host.serve({ name: 'shop', address: host.address(2) });
  await (await host.start()).stop();
  const before = [await host.worker(), await host.reloads()];
  const agent = await host.start();
  t.true(await host.answers());
  await host.until(
    'it is reported again',
    async () => (await host.why('default/shop')).problems.length === 1,
  );
  t.true(agent.hasLogged('"ours":true'));
  t.deepEqual([await host.worker(), await host.reloads()], before);
});

test.serial('The agent leaves out a port that another program took while HAProxy was down', async (t) => {
  const host = await TestHost.create(t);
  await startMembers(t, host);
  await host.serve();
  await host.serve({ name: 'shop', address: host.address(2) });
  const agent = await host.start();
  const pids = [await host.master(), await host.worker()];
  await agent.kill();
  for (const pid of pids) signal(pid, 'SIGKILL');
  let other: Server | undefined;
  await host.until('the port is free to be taken', async () => {
    other = await occupied(t, host.place(2));
    return true;
  });
  await host.start();
  t.true(await host.answers());
  t.regex((await host.why('default/shop')).problems[0]?.message ?? '', /Cannot listen on/);
  if (other !== undefined) await vacated(other);
  await host.soon('the second one is served', () => host.answers(2));
});

asRoot.serial('An address that is not on this host is left out, and served once it is there', async (t) => {
  const host = await TestHost.create(t);
  await startMembers(t, host);
  const address = `198.18.${randomInt(0, 255)}.${randomInt(1, 255)}`;
  const change = async (action: 'add' | 'del'): Promise<void> => {
    await run('ip', ['address', action, `${address}/32`, 'dev', 'lo']);
  };
  await host.serve();
  await host.serve({ name: 'shop', address });
  await host.start();
  t.true(await host.answers());
  const { verdict, problems } = await host.why('default/shop');
  t.is(verdict, 'not served');
  t.regex(problems[0]?.message ?? '', /no address of this host/);
  await change('add');
  t.teardown(() => change('del').catch(() => undefined));
  await host.soon('it is served', async () => (await ask({ address, port: VIP_PORT })) === host.address(11));
  // The address disappears while HAProxy listens on it: other listeners and a reload continue.
  await change('del');
  await host.serve({ name: 'third', address: host.address(3) });
  await host.until('a third one is served', () => host.answers(3));
  t.true(await host.answers());
});

asRoot.serial('An ordinary user serves what it may bind, and port 80 is reported', async (t) => {
  const host = await TestHost.create(t, { uid: 65_534 });
  await startMembers(t, host, 2);
  await host.serve();
  await host.serve({ name: 'low', address: host.address(2), port: 80 });
  const agent = await host.start();
  t.true(await host.answers());
  t.is(statSync(`/proc/${await host.worker()}`).uid, 65_534);
  const { verdict, problems } = await host.why('default/low');
  t.is(verdict, 'not served');
  t.regex(problems[0]?.message ?? '', /ports below 1024 need root or CAP_NET_BIND_SERVICE/);
  await host.serve({ members: [host.address(12)] });
  await host.until('a change is carried out', async () => (await ask(host.place())) === host.address(12));
  await host.serve({ name: 'third', address: host.address(3) });
  await host.until('a third one is served', () => host.answers(3));
  const worker = await host.worker();
  await agent.stop();
  await host.start();
  t.is(await host.worker(), worker);
});

/** Starts another program that listens on the port. */
