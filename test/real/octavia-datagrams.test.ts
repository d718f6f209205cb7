// UDP listeners of an amphora: texts that Octavia's templates make, served by the kernel of a real namespace, with real members.

import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { Datagrams } from '../../agent/octavia/datagrams/amphora-datagrams.ts';
import { eventually } from '../support/basics/eventually.ts';
import { requires } from '../support/basics/requirements.ts';
import { nftExecutable } from '../support/host/nft.ts';
import { AmphoraHost } from '../support/octavia/amphora-host.ts';
import {
  LISTENER,
  type ListenerGiven,
  listener,
  type MemberGiven,
  member,
  POOL,
} from '../support/octavia/datagram-listeners.ts';
import { fixed, VIP_MAC, vipPlug } from '../support/octavia/plugs.ts';
import { renderListener } from '../support/octavia/render.ts';
import { answerDatagrams, askByDatagrams } from '../support/traffic/datagrams.ts';
import { silentLog } from '../support/values/silent-log.ts';

const test = requires(ava, { root: true, programs: ['ip', 'nft', 'conntrack', 'octavia-worker'] });

// The agent's timers do not keep a process alive.
const alive = setInterval(() => undefined, 60_000);
test.after.always(() => clearInterval(alive));

const VIP = '10.9.0.100';
const VIP6 = 'fd09::100';
const NAMES = ['m1', 'm2', 'm3'] as const;
const CHECKED = { type: 'UDP-CONNECT', delay: 1, timeout: 1, fall_threshold: 1 };

async function start(t: ExecutionContext<unknown>) {
  const host = await AmphoraHost.create(t, ['amphora', 'other'], ['client', ...NAMES]);
  const { network } = host;
  await host.plug('ens7', VIP_MAC);
  const additional = fixed({ address: VIP6, subnet: 'fd09::/64', gateway: 'fd09::1' });
  const own = host.networkOf();
  await own.plugVip(vipPlug({ mtu: undefined, additionalVips: [additional] }));
  // Members of IPv6 get packets from an address of their own subnet.
  await network.run('amphora', 'ip', 'address', 'add', 'fd09::21/64', 'dev', 'eth1', 'nodad');
  const kills = new Map(NAMES.map((name) => [name, answerDatagrams(network, name)]));
  const agent = (): Datagrams =>
    new Datagrams({
      folder: join(host.folder, 'lvs'),
      settings: {
        stateDir: host.folder,
        runtimeDir: host.folder,
        nft: nftExecutable,
        netns: network.netns('amphora'),
        kernelTraffic: true,
        metricsDetail: 'member',
      },
      log: silentLog(),
    });
  const rig = {
    host,
    network,
    agent,
    datagrams: agent(),
    kill: (name: (typeof NAMES)[number]): void => kills.get(name)?.(),
    /** A member by its number. */
    at: (number: 1 | 2 | 3, values: Partial<MemberGiven> = {}): MemberGiven => ({
      number,
      address: network.v4(`m${number}`),
      ...values,
    }),
    put: async (given: ListenerGiven): Promise<void> =>
      rig.datagrams.put(LISTENER, await renderListener(listener(given))),
    /** The members that answer new flows. */
    asked: async (count = 60, address = VIP): Promise<string> => {
      const { by } = await askByDatagrams(network, address, 53, { count });
      return [...new Set(by)].sort().join(' ');
    },
  };
  t.teardown(() => rig.datagrams.close());
  await rig.datagrams.start();
  await eventually(
    () => askByDatagrams(network, network.v4('m3'), 5353),
    ({ by }) => by[0] === 'm3',
  );
  return rig;
}

test('UDP is served as soon as it is pushed, and flows keep their members over pushes', async (t) => {
  const { datagrams, put, at, asked, network, agent } = await start(t);
  await put({ members: [at(1), at(2)] });
  t.is(await asked(), 'm1 m2');
  const flow = async (localPort: number): Promise<string> =>
    (await askByDatagrams(network, VIP, 53, { isOneFlow: true, localPort })).by.join();
  const ports = Array.from({ length: 12 }, (_, index) => 41_000 + index);
  const before = await Promise.all(ports.map(flow));
  t.deepEqual([...new Set(before)].sort(), ['m1', 'm2']);
  // Another member comes, a weight changes, the other one goes and comes back.
  await put({ members: [at(1), at(2), at(3)] });
  await put({ members: [at(3, { weight: 9 }), at(2), at(1)] });
  t.is(await asked(), 'm1 m2 m3');
  t.deepEqual(await Promise.all(ports.map(flow)), before);
  await put({ members: [at(1), at(2)] });
  t.deepEqual(await Promise.all(ports.map(flow)), before);

  const [report] = await datagrams.report();
  t.like(report, { id: LISTENER, pool: { id: POOL, status: 'UP' } });
  t.deepEqual(
    [...(report?.pool?.members ?? [])],
    [
      [member(1), 'no check'],
      [member(2), 'no check'],
    ],
  );
  t.true((report?.stats.rx ?? 0) > 0 && (report?.stats.tx ?? 0) > 0);
  t.true((report?.stats.totconns ?? 0) >= 120);

  const [wide, narrow] = [{ members: [at(1), at(2), at(3)] }, { members: [at(2, { weight: 5 }), at(1)] }];
  const texts = [await renderListener(listener(wide)), await renderListener(listener(narrow))];
  // One flow, packet after packet, beside twenty pushes.
  const steady = askByDatagrams(network, VIP, 53, { count: 3_000, isOneFlow: true, localPort: 42_000 });
  const times: number[] = [];
  for (let push = 0; push < 20; push++) {
    const began = performance.now();
    await datagrams.put(LISTENER, texts[push % 2] ?? '');
    times.push(performance.now() - began);
  }
  t.log(`A push took ${Math.round(times.sort((a, b) => a - b)[10] ?? 0)} ms (median)`);
  const { by } = await steady;
  t.is(by.length, 3_000);
  t.is(new Set(by).size, 1, 'no packet was lost or went to another member');
  t.not(by[0], '');

  // The text that cannot be read changes nothing; the agent that follows serves what was stored.
  await t.throwsAsync(datagrams.put(LISTENER, 'lb_algo wrr'), { code: 'OCTAVIA_INVALID' });
  await datagrams.close();
  const next = agent();
  await next.start();
  t.deepEqual(next.ids(), [LISTENER]);
  t.regex((await next.get(LISTENER)) ?? '', /real_server/);
  t.deepEqual(await Promise.all(ports.map(flow)), before);
  t.is((await next.report()).length, 1);
  await next.remove(LISTENER);
  t.deepEqual(next.ids(), []);
  await eventually(
    () => asked(1),
    (who) => who === 'refused',
  );
  await next.close();
});

test('Members that fail their checks get no new flows, and the report says so', async (t) => {
  const { datagrams, put, at, asked, kill, network } = await start(t);
  await put({
    monitor: CHECKED,
    members: [
      at(1),
      at(2, { weight: 0 }),
      at(3),
      { number: 4, enabled: false },
      { number: 5, enabled: false },
    ],
  });
  const statuses = async (): Promise<string> => {
    const [{ pool } = {}] = await datagrams.report();
    return [pool?.status, ...(pool?.members.values() ?? [])].join(' ');
  };
  t.is(await asked(), 'm1 m3');
  await eventually(statuses, (text) => text === 'UP UP DRAIN UP MAINT MAINT');
  kill('m3');
  await eventually(statuses, (text) => text === 'UP UP DRAIN DOWN MAINT MAINT');
  t.is(await asked(), 'm1');
  kill('m1');
  kill('m2');
  await eventually(statuses, (text) => text === 'DOWN DOWN DOWN DOWN MAINT MAINT');
  await eventually(
    () => asked(1),
    (who) => who === 'refused',
  );
  answerDatagrams(network, 'm1');
  await eventually(statuses, (text) => text === 'UP UP DOWN DOWN MAINT MAINT');
  t.is(await asked(), 'm1');
});

test('TCP_CHECK, HTTP_GET and places of their own decide as Octavia says', async (t) => {
  const { datagrams, put, at, network } = await start(t);
  const statuses = async (): Promise<string> => {
    const [{ pool } = {}] = await datagrams.report();
    return [...(pool?.members.values() ?? [])].join(' ');
  };
  const script = (code: number) =>
    `require('http').createServer((_, response) => { response.statusCode = ${code}; response.end(); }).listen(8081, '::')`;
  network.start('m1', process.execPath, '-e', script(204));
  network.start('m2', process.execPath, '-e', script(503));
  const place = { monitorPort: 8081 };
  const members = [at(1, place), at(2, place), at(3, place)];
  await put({ monitor: { ...CHECKED, type: 'TCP' }, members });
  await eventually(statuses, (text) => text === 'UP UP DOWN');
  const http = { type: 'HTTP', http_method: 'GET', url_path: '/ready', expected_codes: '200-204' };
  await put({ monitor: { ...CHECKED, ...http }, members });
  await eventually(statuses, (text) => text === 'UP DOWN DOWN');
  // The check of the third member is that of the first.
  const borrowed = at(3, { ...place, monitorAddress: network.v4('m1') });
  await put({ monitor: { ...CHECKED, ...http }, members: [at(1, place), at(2, place), borrowed] });
  await eventually(statuses, (text) => text === 'UP DOWN UP');
  t.pass();
});

test('Clients of one prefix share a member, in both families', async (t) => {
  const { put, at, network } = await start(t);
  const v6: MemberGiven[] = NAMES.map((name, index) => ({ number: index + 4, address: network.v6(name) }));
  const froms = ['10.9.7.1', '10.9.7.2', '10.9.7.77', '10.9.7.200'];
  for (const from of froms) await network.run('client', 'ip', 'address', 'add', `${from}/32`, 'dev', 'eth0');
  const by = async (from: string, address = VIP): Promise<string> =>
    (await askByDatagrams(network, address, 53, { from })).by.join();
  await put({
    vips: [VIP, VIP6],
    persistence: { granularity: '255.255.255.0' },
    members: [at(1), at(2), at(3), ...v6],
  });
  t.is(new Set(await Promise.all(froms.map((from) => by(from)))).size, 1);
  t.not(await by('', VIP6), '');

  await put({ vips: [VIP6], persistence: { granularity: '64' }, members: v6 });
  const others = ['fd09::7:1', 'fd09::7:2', 'fd09::7:3', 'fd09::7:4', 'fd09::7:5'];
  for (const from of others)
    await network.run('client', 'ip', 'address', 'add', `${from}/128`, 'dev', 'eth0', 'nodad');
  t.is(new Set(await Promise.all(others.map((from) => by(from, VIP6)))).size, 1);
});

test('Both amphorae of a pair choose the same member for a flow', async (t) => {
  const { host, network, put, at } = await start(t);
  const text = await renderListener(listener({ members: [at(1), at(2), at(3)] }));
  await put({ members: [at(1), at(2), at(3)] });
  const ports = Array.from({ length: 12 }, (_, index) => 43_000 + index);
  const flow = async (localPort: number): Promise<string> =>
    (await askByDatagrams(network, VIP, 53, { isOneFlow: true, localPort })).by.join();
  const before = await Promise.all(ports.map(flow));
  t.is(new Set(before).size, 3);
  t.false(before.includes(''));

  // The VIP moves, as keepalived does it.
  const mac = '02:00:00:00:01:02';
  await host.plug('ens8', mac);
  const other = host.networkOf('other', 'ACTIVE_STANDBY');
  await other.plugVip(vipPlug({ mac, mtu: undefined, vrrpAddress: '10.9.0.22' }));
  const datagrams = new Datagrams({
    folder: join(host.folder, 'other', 'lvs'),
    settings: {
      ...{ stateDir: join(host.folder, 'other'), runtimeDir: join(host.folder, 'other') },
      ...{ nft: nftExecutable, netns: network.netns('other'), kernelTraffic: true, metricsDetail: 'member' },
    },
    log: silentLog(),
  });
  t.teardown(() => datagrams.close());
  await datagrams.start();
  await datagrams.put(LISTENER, text);
  await network.run('amphora', 'ip', 'link', 'set', 'eth1', 'down');
  await network.run('other', 'ip', 'address', 'add', `${VIP}/32`, 'dev', 'eth1');
  await network.run('client', 'ip', 'neighbour', 'flush', 'dev', 'eth0');
  t.deepEqual(await Promise.all(ports.map(flow)), before);
});
