// A host that loses its own address, in network namespaces.

import { readFile } from 'node:fs/promises';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { createPair, type Pair, type PairHost, startPair, until, vips } from '../support/vrrp/vrrp-pair.ts';

const test = requires(ava, { root: true, programs: ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl'] });

const FAULT =
  '10.9.0.12, the "address" of the setting vrrp, is on no interface of this host: this host takes no VIPs until it is';

function address({ network }: Pair, { name }: PairHost, action: 'add' | 'del'): Promise<string> {
  return network.run(name, 'ip', 'address', action, `${network.v4(name)}/16`, 'dev', 'eth0');
}

test.serial('A master that loses its own address gives way, and can take over when it is back', async (t) => {
  const pair = await startPair(t, vips(0, 3));
  const { network, a, b } = pair;
  await address(pair, b, 'del');
  await until('a is master', async () => a.state() === 'master', pair);
  await until('b holds nothing', async () => (await b.held()).length === 0, pair);
  t.is(b.state(), 'fault');
  t.is(b.dataplane.status().fault, FAULT);
  await address(pair, b, 'add');
  await until('b is backup', async () => b.state() === 'backup', pair);
  t.is(b.dataplane.status().fault, '');
  await network.cut('a');
  await until('b is master', async () => b.state() === 'master', pair);
  t.is((await b.held()).length, 5);
});

test.serial('A host whose link is back before its address takes no VIPs', async (t) => {
  const pair = await startPair(t, vips(0, 3));
  const { network, a, b } = pair;
  await network.run('b', 'ip', 'link', 'set', 'eth0', 'down');
  await address(pair, b, 'del');
  await until('a is master', async () => a.state() === 'master', pair);
  await until('the agent has noticed', async () => b.dataplane.status().fault === FAULT, pair);
  const masters = b.counted.get('master');
  await network.run('b', 'ip', 'link', 'set', 'eth0', 'up');
  const { advertsSent } = await a.ask();
  await until('a has sent', async () => (await a.ask()).advertsSent > advertsSent + 10, pair);
  t.deepEqual(await b.held(), []);
  t.is(b.counted.get('master'), masters);
  await address(pair, b, 'add');
  await until('b is backup', async () => b.state() === 'backup', pair);
  t.is(a.state(), 'master');
});

test.serial('An agent that starts before its host has its address takes no VIPs until then', async (t) => {
  const pair = await createPair(t);
  const { b } = pair;
  await address(pair, b, 'del');
  b.want(vips(0, 3));
  await b.dataplane.start();
  b.dataplane.standing([]);
  t.is(await readFile(b.paths.standing, 'utf8'), '254\n');
  await until('b is in fault', async () => b.state() === 'fault', pair);
  t.is(b.counted.get('master'), undefined);
  await address(pair, b, 'add');
  await until('b is master', async () => b.state() === 'master', pair);
});

test.serial('The agent reports a kernel parameter that is changed while it runs', async (t) => {
  const pair = await startPair(t, vips(0, 3), { b: { auditInterval: 500 } });
  const { network, b } = pair;
  const unready = () => b.dataplane.status().unready.map(({ what, detail }) => `${what} ${detail}`);
  t.deepEqual(unready(), []);
  const name = 'net.ipv4.ip_nonlocal_bind';
  await network.run('b', 'sysctl', '-qw', `${name}=0`);
  await until('it is reported', async () => unready().length > 0, pair);
  t.deepEqual(unready(), [
    `${name} is 0, so that HAProxy cannot listen on VIPs that the other host holds: set it to 1 (sysctl -w ${name}=1)`,
  ]);
  await network.run('b', 'sysctl', '-qw', `${name}=1`);
  await until('it is over', async () => unready().length === 0, pair);
  t.regex(b.log, /This host is not ready for VRRP/);
  t.regex(b.log, /A fault of this host is over/);
});
