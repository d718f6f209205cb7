// What becomes of connections when the VIPs move from one host of a pair to the other.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { MEMBER_PORT, VIP_PORT } from '../support/values/service-objects.ts';
import { order, pairOf, type Side, startAgentPair } from '../support/vrrp/agent-pair.ts';
import { leftOn, lentOn, rulesOn, startEchoes, VIPS } from '../support/vrrp/echo-pair.ts';
import { said, startMovingVipClient } from '../support/vrrp/moving-vip.ts';

const programs = ['keepalived', 'ip', 'nft', 'ss', 'nsenter', 'sysctl', 'openssl'];
const test = requires(ava, { haproxy: true, root: true, programs });

const WEB = '10.9.1.1';
const OVER = 'they are done with it';

test.serial('A planned failover and one back cost no connection, new or old', async (t) => {
  const pair = await startEchoes(t);
  const { active, standby, network } = pair;
  const client = await startMovingVipClient(t, network, VIP_PORT, VIPS);
  t.like(await order(active.host, 'failover'), { status: 0, ok: true, active: 'peer' });
  t.true((await rulesOn(network, standby)).includes(VIPS[0] ?? ''));
  await client.more(20, 10);
  await standby.host.until('it may go back', async () => (await pairOf(standby.host)).peerNotReady === '');
  t.like(await order(standby.host, 'failover'), { status: 0, ok: true, active: 'peer' });
  await active.host.until('a few more are made', async () => (await pairOf(active.host)).peerNotReady === '');
  await client.more(20, 10);
  t.like(await client.result(), { failures: [], end: '' });
  for (const side of [active, standby]) {
    const { handover } = await pairOf(side.host);
    t.is(handover?.whyNot, '');
    await side.host.until(OVER, async () => (await pairOf(side.host)).handover?.until === '');
    await side.host.until('nothing is left', async () => (await leftOn(network, side)) === '');
    t.is((await side.agent.metrics())('headgate_handovers_total', { connections: 'kept' }), 1);
  }
});

test.serial('A long connection is cut at the deadline, and nothing is left on the hosts', async (t) => {
  const { active, standby, network } = await startEchoes(t, { flags: ['--pair-drain-timeout', '30s'] });
  const client = await startMovingVipClient(t, network, VIP_PORT, VIPS);
  t.like(await order(active.host, 'maintenance', 'on'), { status: 0, ok: true });
  await active.host.until('it is counted', async () => (await pairOf(active.host)).handover?.left === 1);
  await client.more(0, 3);
  t.is(client.soFar().end, '');
  t.is((await active.agent.metrics())('headgate_handover_connections'), 1);
  t.regex(
    (await active.host.command('status')).stdout,
    /^After failover: +1 connections? on this host until/m,
  );
  for (const side of [active, standby]) {
    await side.host.until(OVER, async () => (await pairOf(side.host)).handover?.until === '', 60_000);
    await side.host.until('nothing is left', async () => (await leftOn(network, side)) === '');
  }
  t.regex(await client.ended(), /ECONNRESET|Closed/);
  t.deepEqual((await client.result()).failures, []);
});

test.serial('Agents that are killed during a handover leave nothing behind', async (t) => {
  const { active, standby, network } = await startEchoes(t, { flags: ['--pair-drain-timeout', '12s'] });
  const client = await startMovingVipClient(t, network, VIP_PORT, VIPS);
  t.like(await order(active.host, 'failover'), { status: 0, ok: true });
  for (const { agent } of [active, standby]) await agent.kill();
  t.not(await lentOn(network, active), '');
  await active.host.until('the addresses are gone', async () => (await lentOn(network, active)) === '');
  await standby.host.until(
    'the rules are empty',
    async () => !(await rulesOn(network, standby)).includes(VIPS[0] ?? ''),
  );
  t.regex(await client.ended(), /ECONNRESET|Closed/);
  t.deepEqual((await client.result()).failures, []);
  await standby.host.start();
  await standby.host.until('the table is gone', async () => (await leftOn(network, standby)) === '');
});

test.serial(
  'A client keeps its member over a failover, planned and by the loss of the network',
  async (t) => {
    const { active, standby, network, roles } = await startAgentPair(t, WEB, {
      prepare: (host, net) => host.serve({ address: WEB, port: 8080, members: [net.v4('client')] }),
      others: ['member'],
    });
    const members = await startMembers(network, 5);
    const clients = await addClients(network, 6);
    const affine = { name: 'affine', address: '10.9.1.3', members, spec: { sessionAffinity: 'ClientIP' } };
    for (const { host } of [active, standby]) await host.serve(affine);
    const chosen = (): Promise<readonly string[]> =>
      Promise.all(clients.map((client) => askFrom(network, client, affine.address)));
    const isTaught = async ({ host }: Side): Promise<boolean> =>
      new RegExp(` used:${clients.length}$`, 'm').test(
        await host.haproxy('show table default:affine:tcp:17080:v4'),
      );
    await active.host.until('all are served', async () => (await chosen()).every((name) => name !== ''));
    const first = await chosen();
    t.true(new Set(first).size > 1);
    await standby.host.until('the standby knows them', () => isTaught(standby));

    t.like(await order(active.host, 'failover'), { status: 0, ok: true, active: 'peer' });
    t.deepEqual(await chosen(), first);
    await active.host.until('the other one knows them', () => isTaught(active));

    await network.cut(standby.name);
    await active.host.until('it has taken over', async () => (await roles()).startsWith('master'));
    await active.host.until('it serves', async () => (await chosen()).every((name) => name !== ''));
    t.deepEqual(await chosen(), first);
  },
);

/** Each answers with its own address. */
async function startMembers(network: TestNetwork, count: number): Promise<readonly string[]> {
  const members = Array.from({ length: count }, (_, at) => `10.9.3.${1 + at}`);
  for (const member of members)
    await network.run('member', 'ip', 'address', 'add', `${member}/16`, 'dev', 'eth0');
  const script = `require('net').createServer((socket) => socket.on('error', () => 0).end(socket.localAddress)).listen(${MEMBER_PORT}, '0.0.0.0', () => console.log())`;
  await said(network.start('member', process.execPath, '-e', script));
  return members;
}

async function addClients(network: TestNetwork, count: number): Promise<readonly string[]> {
  const clients = Array.from({ length: count }, (_, at) => `10.9.4.${1 + at}`);
  for (const client of clients)
    await network.run('client', 'ip', 'address', 'add', `${client}/16`, 'dev', 'eth0');
  return clients;
}

/** The host that answers a client, '' without an answer. */
async function askFrom(network: TestNetwork, client: string, address: string): Promise<string> {
  const script = `require('net').connect({ host: '${address}', port: ${VIP_PORT}, localAddress: '${client}', timeout: 3000 }).on('timeout', process.exit).on('error', () => 0).pipe(process.stdout)`;
  return (await network.try('client', process.execPath, '-e', script)).stdout;
}
