// Two agents on addresses of one machine, each with a HAProxy of its own, as a pair without VRRP.

import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'node:tls';
import ava, { type ExecutionContext } from 'ava';
import type { OrderOutcome } from '../../agent/pair/orders/orders.ts';
import { requires } from '../support/basics/requirements.ts';
import { type CommandResult, signal, TestHost } from '../support/host/agent.ts';
import { removeFolder } from '../support/host/remove-folder.ts';
import { startMembers } from '../support/traffic/members.ts';
import { ask } from '../support/traffic/traffic.ts';
import { makeCredentials } from '../support/vrrp/pair-credentials.ts';

const test = requires(ava, { haproxy: true, programs: ['openssl'] });

const TABLE = 'show table default:web:tcp:17080:v4';
const TABLES_PORT = 9182;

// Conformance: spec.sessionAffinity, sessionAffinityConfig
test.serial('A client keeps its member on the other host, and over a reload there', async (t) => {
  const [a, b] = await pairOfHosts(t);
  await startMembers(t, a, 5);
  const members = [11, 12, 13, 14, 15].map((last) => a.address(last));
  const spec = { sessionAffinity: 'ClientIP' };
  await a.serve({ members, spec });
  await b.serve({ address: b.address(1), members, spec });
  await Promise.all([a.start(), b.start()]);

  const clients = [51, 52, 53, 54, 55, 56].map((last) => a.address(last));
  const chosenOn = (host: TestHost): Promise<readonly string[]> =>
    Promise.all(clients.map((from) => ask({ ...host.place(), from })));
  const chosen = await chosenOn(a);
  t.true(new Set(chosen).size > 1);
  await b.until('the other host knows them', async () => / used:6$/m.test(await b.haproxy(TABLE)));
  t.deepEqual(await chosenOn(b), chosen);

  // HAProxy teaches its successor only once it has given up learning itself.
  await b.until('it can teach', async () => {
    const flags = /flags=0x([0-9a-f]+) resync/.exec(await b.haproxy('show peers'))?.[1] ?? '0';
    return (Number.parseInt(flags, 16) & 3) === 3;
  });
  await b.serve({ name: 'shop', address: b.address(2), members });
  await b.until('it has reloaded', () => b.answers(2, clients[0]));
  await b.until('it has learned', async () => / used:6$/m.test(await b.haproxy(TABLE)));
  t.deepEqual(await chosenOn(b), chosen);
});

test.serial('Without a certificate of the pair no client reaches the session affinity', async (t) => {
  const [a] = await pairOfHosts(t);
  await a.start();
  await a.until('it listens', async () =>
    (await a.config()).includes(`bind ${a.address(201)}:${TABLES_PORT} ssl`),
  );
  const { promise, resolve } = Promise.withResolvers<string>();
  const options = { host: a.address(201), port: TABLES_PORT, rejectUnauthorized: false };
  const socket = connect(options, () => socket.write('HAProxyS 2.1\nme\nyou 1 1\n'));
  socket.on('data', () => resolve('an answer'));
  socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
  socket.on('close', () => resolve('closed'));
  t.is(await promise, 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED');
});

test.serial('Each host reports whether its peer has the same state and could take over', async (t) => {
  const [a, b] = await pairOfHosts(t);
  // Nothing listens on either host: what is desired is there without an address.
  const waiting = { members: [a.address(11)], address: '' };
  for (const host of [a, b]) await host.serve(waiting);
  const [agent] = [await a.start(), await b.start()];
  const pair = async () => (await a.status()).pair;
  await a.until('they hear each other', async () => (await pair())?.fault === '');
  await a.until('they are alike', async () => (await pair())?.peerNotReady === '');
  t.deepEqual((await pair())?.parity, { model: 'same', running: 'same' });
  // A HAProxy that takes long to start lowers its host until it has been well for a while.
  await a.until('it stands in full', async () => (await pair())?.lowered.length === 0);
  t.is((await agent.metrics())('headgate_pair_peer_ready'), 1);

  await a.serve({ ...waiting, name: 'shop' });
  await a.until('they differ', async () => (await pair())?.parity.model === 'differs');
  t.regex((await pair())?.peerNotReady ?? '', /behind/);
  const metric = await agent.metrics();
  t.is(metric('headgate_pair_parity', { of: 'model' }), 0);
  t.is(metric('headgate_pair_peer_heard'), 1);
  t.regex((await a.command('status')).stdout, /Peer may take over: +no: The peer is behind/);
});

test.serial('Agents that were stopped during changes exchange reports again', async (t) => {
  const [a, b] = await pairOfHosts(t);
  const waiting = { members: [a.address(11)], address: '' };
  for (const host of [a, b]) await host.serve(waiting);
  const agents = [await a.start(), await b.start()];
  const isHeard = async (host: TestHost) => (await host.status()).pair?.peer !== undefined;
  for (const host of [a, b]) await host.until('its peer is heard', () => isHeard(host));
  // First one, then both at once, after which neither hears by what the other tells that it is there.
  for (const stopped of [agents.slice(1), agents]) {
    for (const { pid } of stopped) signal(pid, 'SIGSTOP');
    for (const host of [a, b])
      await host.serve({ ...waiting, name: `shop-${stopped.length}`, members: [a.address(12)] });
    if (stopped.length === 1) await a.until('it is unknown', async () => !(await isHeard(a)));
    // Longer than a peer is waited for.
    else await delay(2_200);
    for (const { pid } of stopped) signal(pid, 'SIGCONT');
    for (const host of [a, b])
      await host.until('they are alike', async () => {
        const { pair, loadBalancers } = await host.status();
        return pair?.fault === '' && pair.peerNotReady === '' && loadBalancers === stopped.length + 1;
      });
  }
  t.is(agents.filter(({ hasExited }) => hasExited).length, 0);
});

test.serial('Maintenance outlives the agent, and each order reports its outcome', async (t) => {
  const [a] = await pairOfHosts(t);
  const first = await a.start();
  // No host has the VIPs.
  const on = await a.command('maintenance', ['on', '--json']);
  t.is(on.status, 0);
  t.like(outcomeOf(on), { ok: true, active: 'unknown' });
  // Even if all files on disk are removed in the meantime.
  await removeFolder(a.stateDir);
  await a.soon(
    'the lock is kept again',
    async () => (await a.stateFile('maintenance').catch(() => '')) !== '',
  );
  await first.kill();
  const second = await a.start();
  await a.until('it is locked', async () => (await second.metrics())('headgate_maintenance') === 1);
  t.true((await a.status()).pair?.lowered.some(({ reason }) => reason === 'maintenance'));
  t.is((await a.command('maintenance', ['on'])).status, 0);
  t.is((await a.command('maintenance', ['off'])).status, 0);
  t.false((await a.status()).pair?.maintenance);

  t.is((await a.command('maintenance', ['perhaps'])).status, 2);
  t.is((await a.command('failover', ['now'])).status, 2);
  t.regex((await a.command('check')).stdout, /^ok {3}credentials of the pair: they expire on 20\d\d-/m);
  const failover = await a.command('failover', ['--force', '--json']);
  t.is(failover.status, 1);
  t.regex(outcomeOf(failover).message, /VRRP does not run here/);
  await second.stop();
  t.is((await a.command('failover')).status, 3);
});

test.serial('A host without a peer refuses orders, and one with half a peer does not start', async (t) => {
  const host = await TestHost.create(t);
  await host.start();
  const refused = await host.command('failover', ['--json']);
  t.is(refused.status, 1);
  t.regex(outcomeOf(refused).message, /no peer: set "pairPeer"/);

  const half = await TestHost.create(t, { flags: ['--pair-peer', '192.0.2.2'] });
  const agent = await half.launch();
  t.is(await agent.exited, 2);
  t.regex(agent.text, /pairAddress is missing/);
  t.regex(agent.text, /pairCredentials is missing/);
});

/** Not started yet; they know each other by addresses 201 and 202 of the first one's network. */
async function pairOfHosts(t: ExecutionContext): Promise<readonly [TestHost, TestHost]> {
  const flags: string[] = [];
  const otherFlags: string[] = [];
  const a = await TestHost.create(t, { flags });
  const b = await TestHost.create(t, { flags: otherFlags });
  const credentials = await makeCredentials(a.directory);
  const [own, peer] = [a.address(201), a.address(202)];
  flags.push('--pair-address', own, '--pair-peer', peer, '--pair-credentials', credentials);
  otherFlags.push('--pair-address', peer, '--pair-peer', own, '--pair-credentials', credentials);
  return [a, b];
}

function outcomeOf({ stdout }: CommandResult): OrderOutcome {
  return JSON.parse(stdout) as OrderOutcome;
}
