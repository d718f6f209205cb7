// The whole agent on a pair of hosts: HAProxy and keepalived in one network namespace per host, the agents outside.

import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { keepalivedPaths } from '../../agent/vips/keepalived/paths.ts';
import { requires } from '../support/basics/requirements.ts';
import { haproxyExecutable } from '../support/haproxy/haproxy.ts';
import { type RunningAgent, signal, TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { goneBack, readMetrics } from '../support/report/metrics-text.ts';
import { MEMBER_PORT, VIP_PORT, webObjects } from '../support/values/service-objects.ts';
import { keepalivedFlags } from '../support/vrrp/keepalived.ts';

const test = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl'],
});

const VIP = '10.9.1.1';

interface Host {
  readonly name: 'a' | 'b';
  readonly host: TestHost;
  readonly agent: RunningAgent;
}

test.serial('Clients reach the members through either host, with or without its agent', async (t) => {
  const { network, hosts } = await startPair(t);
  const master = await masterOf(hosts);
  const other = otherThan(master, hosts);
  await isServed(master, network);
  t.deepEqual([...(await network.held(master.name))].sort(), ['10.9.0.1', VIP]);
  t.deepEqual(await network.held(other.name), []);

  const { stdout, status } = await master.host.command('status');
  t.regex(stdout, /VRRP: +vrrp-51 master since .*, priority 200, 1 VIP/);
  t.is(status, 0, stdout);
  const metric = await master.agent.metrics();
  t.is(metric('headgate_vrrp_state', { vrrp_instance: 'vrrp-51', state: 'master' }), 1);
  t.is(metric('headgate_vrrp_vips', { vrrp_instance: 'vrrp-51' }), 1);

  for (const { agent } of hosts) await agent.kill();
  await network.cut(master.name);
  await isServed(other, network);
  t.deepEqual([...(await network.held(other.name))].sort(), ['10.9.0.1', VIP]);
});

test.serial(
  'A host whose HAProxy does not start again becomes backup, and a new VIP is set on the master',
  async (t) => {
    const { network, hosts } = await startPair(t);
    const master = await masterOf(hosts);
    const other = otherThan(master, hosts);
    await isServed(master, network);
    await writeFile(join(master.host.directory, 'broken'), '');
    signal(await master.host.worker(), 'SIGKILL');
    signal(await master.host.master(), 'SIGKILL');
    await other.host.until('the other host is master', async () => (await stateOf(other)) === 'master');
    await isServed(other, network);

    for (const { host } of hosts)
      await host.write(
        'two.yaml',
        webObjects({ name: 'two', address: '10.9.1.2', members: [network.v4('member')] }),
      );
    await other.host.until(
      'the new VIP is served',
      async () => (await network.whoServes('10.9.1.2', VIP_PORT)) === 'member',
    );
    t.deepEqual(await network.held(master.name), []);
  },
);

test.serial('A Service that requests an address of a host gets the problem AddressNotMovable', async (t) => {
  const { network, hosts } = await startPair(t);
  const ask = async (address: string): Promise<void> => {
    const members = [network.v4('member')];
    for (const { host } of hosts) await host.write('own.yaml', webObjects({ name: 'own', address, members }));
  };
  const own = network.v4('a');
  await ask(own);
  const found = async ({ host }: Host) => (await host.why('default/own')).problems;
  for (const one of hosts) {
    await one.host.until('the problem is reported', async () => (await found(one)).length > 0);
    const [problem] = await found(one);
    t.is(problem?.reason, 'AddressNotMovable');
    t.true(problem?.message.startsWith(`${own} does not go with the active host: it is `), problem?.message);
    const { stdout } = await one.host.command('status');
    t.regex(stdout, /Service default\/own: .* does not go with the active host/);
  }
  await ask('10.9.1.3');
  for (const one of hosts) await one.host.until('all is well', async () => (await found(one)).length === 0);
  const master = await masterOf(hosts);
  await master.host.until('it moves', async () => (await network.held(master.name)).includes('10.9.1.3'));
});

test.serial('The counters of VRRP continue over restarts of the agent and of keepalived', async (t) => {
  const { network, hosts } = await startPair(t);
  const master = await masterOf(hosts);
  const { host } = master;
  await isServed(master, network);
  let { agent } = master;
  const scraped = async () =>
    new Map(
      [...readMetrics((await agent.get('/metrics')).text, 'text')].filter(([name]) =>
        /^headgate_vrrp_\w+_total$/.test(name),
      ),
    );
  const transitions = async (state: string) =>
    (await agent.metrics())('headgate_vrrp_transitions_total', { state });
  const isMaster = () =>
    host.until('it is master', async () => (await stateOf({ ...master, agent })) === 'master');
  t.is(await transitions('master'), 1);
  t.is(await transitions('fault'), 0);

  for (const end of ['stop', 'kill'] as const) {
    const before = await scraped();
    await agent[end]();
    agent = await host.start();
    await isMaster();
    t.deepEqual(goneBack(before, await scraped()), [], end);
    t.is(await transitions('master'), 1, 'A start of the agent is no transition');
  }

  const before = await scraped();
  t.is(before.size, 3);
  const { pidFile } = keepalivedPaths(host.stateDir, host.runtimeDir);
  await agent.kill();
  signal(Number.parseInt(await readFile(pidFile, 'utf8'), 10), 'SIGKILL');
  agent = await host.start();
  // In the meantime the other host has become master.
  await host.until('it is backup', async () => (await stateOf({ ...master, agent })) === 'backup');
  t.deepEqual(goneBack(before, await scraped()), []);
});

/** Two hosts with a Service each, and a member that answers. */
async function startPair(t: ExecutionContext<unknown>) {
  const network = await TestNetwork.create(t, ['a', 'b', 'client', 'member']);
  network.serve('member', MEMBER_PORT);
  const hosts = [await startHost(t, network, 'a', 'b'), await startHost(t, network, 'b', 'a')] as const;
  return { network, hosts };
}

async function startHost(
  t: ExecutionContext<unknown>,
  network: TestNetwork,
  name: 'a' | 'b',
  peer: 'a' | 'b',
): Promise<Host> {
  const vrrp = {
    interface: 'eth0',
    address: network.v4(name),
    peers: [network.v4(peer)],
    virtualRouterId: 51,
    anchors: ['10.9.0.1'],
  };
  const flags = ['--netns', network.netns(name), '--vrrp', JSON.stringify(vrrp), ...keepalivedFlags];
  const host = await TestHost.create(t, { flags, haproxy: breakable });
  await host.write('web.yaml', webObjects({ address: VIP, members: [network.v4('member')] }));
  return { name, host, agent: await host.start() };
}

/** A HAProxy that does not start if the directory has a file `broken`. */
async function breakable(directory: string): Promise<string> {
  const path = join(directory, 'haproxy');
  const script = `#!/bin/sh
if [ "$1" = -W ] && [ -e ${directory}/broken ]; then exit 1; fi
exec ${haproxyExecutable} "$@"
`;
  await writeFile(path, script);
  await chmod(path, 0o755);
  return path;
}

async function stateOf({ host }: Host): Promise<string | undefined> {
  return (await host.status()).vrrp?.instances[0]?.state;
}

async function masterOf(hosts: readonly [Host, Host]): Promise<Host> {
  const [first] = hosts;
  let master: Host | undefined;
  await first.host.until('one is master and the other backup', async () => {
    const states = await Promise.all(hosts.map(stateOf));
    master = hosts[states.indexOf('master')];
    return [...states].sort().join() === 'backup,master';
  });
  return master ?? first;
}

function otherThan(host: Host, hosts: readonly [Host, Host]): Host {
  return host === hosts[0] ? hosts[1] : hosts[0];
}

async function isServed({ host }: Host, network: TestNetwork): Promise<void> {
  await host.until(
    'the client is served',
    async () => (await network.whoServes(VIP, VIP_PORT)) === 'member',
    60_000,
  );
}
