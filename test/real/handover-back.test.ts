// VIPs that go to a host because it stands higher again, without anybody's order to fail over: no connection is lost
// where the host that has them is alive and serves.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { processesOf, signal } from '../support/host/agent.ts';
import { VIP_PORT } from '../support/values/service-objects.ts';
import { type AgentPair, areAlike, INSTANCE, order, pairOf } from '../support/vrrp/agent-pair.ts';
import { leftOn, startEchoes, VIPS } from '../support/vrrp/echo-pair.ts';
import { startMovingVipClient } from '../support/vrrp/moving-vip.ts';

const programs = ['keepalived', 'ip', 'nft', 'ss', 'nsenter', 'sysctl', 'openssl'];
const test = requires(ava, { haproxy: true, root: true, programs });

/** Whichever was master first, in the end it is `a`. */
const PREFERRED = { a: { priority: 250 }, b: { priority: 200 } };

/** No connection is cut at its end, however long a busy machine takes. */
const flags = ['--pair-drain-timeout', '10m'];

test.serial('Maintenance on and off under load costs no connection, new or old', async (t) => {
  const pair = await startEchoes(t, { vrrp: PREFERRED, flags });
  const [a, b] = hostsOf(pair);
  await a.host.until('a is master', async () => isMaster(await pairOf(a.host)));
  const client = await startMovingVipClient(t, pair.network, VIP_PORT, VIPS);
  t.like(await order(a.host, 'maintenance', 'on'), { status: 0, ok: true, active: 'peer' });
  await client.more(20, 10);
  // One that is made while the other host has the VIPs, and is to be kept when they go back.
  const second = await startMovingVipClient(t, pair.network, VIP_PORT, VIPS.slice(1), 'kept');
  t.like(await order(a.host, 'maintenance', 'off'), { status: 0, ok: true, active: 'this host' });
  t.true(isMaster(await pairOf(a.host)));
  await second.more(0, 10);
  await client.more(20, 10);
  await areAlike([a.host, b.host]);
  // With these connections still there, once more.
  t.like(await order(a.host, 'maintenance', 'on'), { status: 0, ok: true, active: 'peer' });
  t.like(await order(a.host, 'maintenance', 'off'), { status: 0, ok: true, active: 'this host' });
  await client.more(20, 10);
  await second.more(0, 10);
  for (const { result } of [client, second]) t.like(await result(), { failures: [], end: '' });
  for (const side of [a, b]) {
    t.is((await side.agent.metrics())('headgate_handovers_total', { connections: 'kept' }), 2);
    t.is((await side.agent.metrics())('headgate_handovers_total', { connections: 'cut' }), 0);
    await side.host.until('nothing is left', async () => (await leftOn(pair.network, side)) === '');
  }
});

test.serial('New priorities by SIGHUP move the VIPs there and back without a lost connection', async (t) => {
  const pair = await startEchoes(t, { vrrp: PREFERRED, flags });
  const [a, b] = hostsOf(pair);
  await a.host.until('a is master', async () => isMaster(await pairOf(a.host)));
  const set = async (side: typeof a, priority: number): Promise<void> => {
    await side.configure({ priority });
    side.agent.signal('SIGHUP');
  };
  const client = await startMovingVipClient(t, pair.network, VIP_PORT, VIPS);
  await set(b, 220);
  await a.host.until(
    'a has it from b',
    async () => (await pairOf(a.host)).peer?.priorities[INSTANCE] === 220,
  );
  t.true(isMaster(await pairOf(a.host)));
  // The master falls below its peer.
  await set(a, 210);
  await b.host.until('b has taken over', async () => isMaster(await pairOf(b.host)));
  await client.more(20, 10);
  // The one that is not master rises above it.
  await set(a, 230);
  await a.host.until('a is master again', async () => isMaster(await pairOf(a.host)));
  await client.more(20, 10);
  t.like(await client.result(), { failures: [], end: '' });
  for (const { agent } of [a, b]) {
    t.is((await agent.metrics())('headgate_handovers_total', { connections: 'kept' }), 1);
    t.is((await agent.metrics())('headgate_handovers_total', { connections: 'cut' }), 0);
  }
});

test.serial('A host whose HAProxy has recovered gets its VIPs back without a lost connection', async (t) => {
  const pair = await startEchoes(t, { vrrp: PREFERRED, flags });
  const [a, b] = hostsOf(pair);
  await a.host.until('a is master', async () => isMaster(await pairOf(a.host)));
  const worker = await a.host.worker();
  signal(worker, 'SIGSTOP');
  await b.host.until('b has taken over', async () => isMaster(await pairOf(b.host)));
  // Neither host was prepared: HAProxy could not have continued to serve.
  t.is((await a.agent.metrics())('headgate_handovers_total', { connections: 'kept' }), 0);
  const client = await startMovingVipClient(t, pair.network, VIP_PORT, VIPS);
  signal(worker, 'SIGCONT');
  await a.host.until('a is master again', async () => isMaster(await pairOf(a.host)));
  await client.more(20, 10);
  t.like(await client.result(), { failures: [], end: '' });
  t.is((await b.agent.metrics())('headgate_handovers_total', { connections: 'kept' }), 1);
});

test.serial(
  'A host that comes back takes its half of the VIPs again without a lost connection',
  async (t) => {
    const instances = (first: number, second: number) => ({
      virtualRouterId: undefined,
      anchors: undefined,
      instances: [
        { virtualRouterId: 51, priority: first, anchors: ['10.9.0.1'] },
        { virtualRouterId: 52, priority: second, anchors: ['10.9.0.2'] },
      ],
    });
    const pair = await startEchoes(t, { vrrp: { a: instances(250, 200), b: instances(200, 250) }, flags });
    const [a, b] = hostsOf(pair);
    const rolesOf = async (): Promise<string> =>
      [a, b]
        .map(async ({ host }) => Object.values((await pairOf(host)).roles).join())
        .reduce(async (all, one) => `${await all} ${await one}`);
    await a.host.until('each has a half', async () => (await rolesOf()) === 'master,backup backup,master');
    await a.agent.kill();
    for (const pid of processesOf(a.host.directory)) signal(pid, 'SIGKILL');
    await b.host.until('b has all', async () =>
      Object.values((await pairOf(b.host)).roles).every((role) => role === 'master'),
    );
    const clients = [];
    for (const vip of VIPS) clients.push(await startMovingVipClient(t, pair.network, VIP_PORT, [vip]));
    await a.host.start();
    await a.host.until('each has a half', async () => (await rolesOf()) === 'master,backup backup,master');
    for (const { more } of clients) await more(10, 5);
    for (const { result } of clients) t.like(await result(), { failures: [], end: '' });
    t.is((await b.agent.metrics())('headgate_handovers_total', { connections: 'kept' }), 1);
  },
);

function hostsOf({ active, standby }: AgentPair): readonly [AgentPair['active'], AgentPair['active']] {
  return active.name === 'a' ? [active, standby] : [standby, active];
}

function isMaster({ roles }: { readonly roles: Readonly<Record<string, string>> }): boolean {
  return Object.values(roles).includes('master');
}
