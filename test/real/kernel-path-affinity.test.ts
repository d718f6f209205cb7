// Session affinity of the kernel path, with real nftables and real traffic between namespaces.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { MAX_CLIENTS } from '../../agent/nftables/rules/affinity.ts';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { nftExecutable } from '../support/host/nft.ts';
import { answerDatagrams, askByDatagrams } from '../support/traffic/datagrams.ts';
import { DNS, dns, kernelServed, kernelTable, VIP } from '../support/traffic/kernel-path.ts';
import type { Json } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'nft', 'conntrack'], root: true });

const CLIENTS = Array.from({ length: 16 }, (_, at) => `10.9.0.${150 + at}`);
/** Clients that come later. */
const OTHERS = Array.from({ length: 80 }, (_, at) => `10.9.0.${170 + at}`);
const FLOW_PORT = 40_053;
const HOUR_S = 3_600;

interface Rig {
  readonly host: TestHost;
  readonly network: TestNetwork;
}

test.serial('A client keeps its member while others come and go, and leaves one that is gone', async (t) => {
  const rig = await affine(t, ['m1', 'm2'], HOUR_S);
  const first = await members(rig);
  t.deepEqual([...new Set(first.values())].sort(), ['m1', 'm2']);

  await change(rig, ['m1', 'm2', 'm3'], HOUR_S);
  t.deepEqual(await members(rig), first, 'a new member takes no client');
  const newOnes = await members(rig, OTHERS.slice(0, 24));
  t.true([...newOnes.values()].includes('m3'), 'but new clients go to it');

  await change(rig, ['m2', 'm3'], HOUR_S);
  const second = await members(rig);
  for (const [client, member] of second)
    if (first.get(client) === 'm2') t.is(member, 'm2');
    else t.not(member, 'm1');

  await change(rig, ['m1', 'm2', 'm3'], HOUR_S);
  t.deepEqual(await members(rig), second, 'a member that comes back takes no client either');
});

test.serial('A member that drains is left at once by new flows, and keeps those that it has', async (t) => {
  const rig = await affine(t, ['m1', 'm2', 'm3'], HOUR_S);
  const before = await members(rig);
  const [client, member] = [...before][0] ?? ['', ''];
  const others = ['m1', 'm2', 'm3'].filter((name) => name !== member);
  const options = { from: client, localPort: FLOW_PORT, count: 3_000, isOneFlow: true, timeoutMs: 1_000 };
  const flow = askByDatagrams(rig.network, VIP, DNS, options);
  await rig.host.until('the flow has begun', async () => {
    const ofFlow = ['-L', '-p', 'udp', '--orig-src', client, '--orig-port-src', String(FLOW_PORT)];
    return (await rig.network.try('a', 'conntrack', ...ofFlow)).stdout.includes(client);
  });
  const draining = { ready: false, serving: true, terminating: true };
  const objects = service(rig, ['m1', 'm2', 'm3'], HOUR_S).map((object) => {
    if (object.kind !== 'EndpointSlice') return object;
    const endpoints = object.endpoints as readonly { readonly addresses: readonly string[] }[];
    const conditions = endpoints.map((each) =>
      each.addresses.includes(rig.network.v4(member)) ? { ...each, conditions: draining } : each,
    );
    return { ...object, endpoints: conditions };
  });
  await rig.host.write('dns.yaml', objects);
  await reach(rig, others);
  const after = await members(rig);
  for (const [each, now] of after) {
    t.not(now, member);
    if (before.get(each) !== member) t.is(now, before.get(each) ?? '');
  }
  t.deepEqual([...new Set((await flow).by)], [member]);
});

test.serial('A client is free after the timeout', async (t) => {
  const rig = await affine(t, ['m1', 'm2'], 2);
  const first = await members(rig);
  t.deepEqual([...new Set(first.values())].sort(), ['m1', 'm2']);
  await change(rig, ['m1', 'm2', 'm3'], 2);
  await rig.host.until('the kernel has forgotten all', async () => (await remembered(rig)) === 0);
  t.true([...(await members(rig)).values()].includes('m3'));
});

test.serial(
  'Clients keep their members over a restart of the agent, and while all rules are loaded',
  async (t) => {
    const { agent, ...rig } = await affine(t, ['m1', 'm2'], HOUR_S);
    const first = await members(rig);
    await agent.kill();
    await rig.host.start();
    await change(rig, ['m1', 'm2', 'm3'], HOUR_S);
    t.deepEqual(await members(rig), first);
  },
);

test.serial(
  'Another host, which remembers no client, chooses the same members from the same objects',
  async (t) => {
    const network = await TestNetwork.create(t, ['client', 'a', 'b', 'm1', 'm2', 'm3']);
    for (const member of ['m1', 'm2', 'm3']) answerDatagrams(network, member);
    for (const client of CLIENTS)
      await network.run('client', 'ip', 'address', 'add', `${client}/24`, 'dev', 'eth0');
    const found: ReadonlyMap<string, string>[] = [];
    for (const side of ['a', 'b']) {
      await network.run(side, 'sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1');
      await network.run(side, 'ip', 'address', 'add', `${VIP}/32`, 'dev', 'eth0');
      const host = await TestHost.create(t, { flags: ['--netns', network.netns(side)] });
      const agent = await host.start();
      await host.write('dns.yaml', service({ network }, ['m1', 'm2', 'm3'], HOUR_S));
      await host.until(
        'it answers',
        async () => (await askByDatagrams(network, VIP, DNS)).by[0]?.startsWith('m') === true,
      );
      found.push(await members({ network }));
      await agent.stop();
      await network.run(side, 'ip', 'address', 'delete', `${VIP}/32`, 'dev', 'eth0');
      await network.run('client', 'ip', 'neighbour', 'flush', 'all');
    }
    t.deepEqual(found[0], found[1]);
    t.deepEqual([...new Set(found[0]?.values())].sort(), ['m1', 'm2', 'm3']);
  },
);

test.serial('A full memory serves new clients by the hash, and keeps those that it has', async (t) => {
  const rig = await affine(t, ['m1', 'm2'], HOUR_S);
  const first = await members(rig);
  const table = `${await kernelTable(rig.network)}_affinity`;
  const room = MAX_CLIENTS - (await remembered(rig));
  const statements = Array.from({ length: Math.ceil(room / 8_192) }, (_, block) => {
    const count = Math.min(8_192, room - block * 8_192);
    const clients = Array.from({ length: count }, (_, at) => `11.${block}.${at >> 8}.${at & 255}`);
    const entries = clients.map((client) => `${VIP} . udp . 9 . ${client} timeout 1h : 1`);
    return `add element ip ${table} clients { ${entries.join(', ')} }`;
  });
  const path = join(rig.host.directory, 'clients.nft');
  await writeFile(path, statements.join('\n'));
  await rig.network.run('a', nftExecutable, '-f', path);
  await change(rig, ['m1', 'm2', 'm3'], HOUR_S);
  t.deepEqual(await members(rig), first);
  const byHash = await members(rig, OTHERS);
  t.deepEqual([...new Set(byHash.values())].sort(), ['m1', 'm2', 'm3']);
});

/** As kernelServed(), with session affinity and more clients. */
async function affine(t: ExecutionContext, names: readonly string[], seconds: number) {
  const rig = await kernelServed(t);
  for (const client of [...CLIENTS, ...OTHERS])
    await rig.network.run('client', 'ip', 'address', 'add', `${client}/24`, 'dev', 'eth0');
  await change(rig, names, seconds);
  return rig;
}

/** Resolves when the kernel sends new flows to these members. */
async function change(rig: Rig, names: readonly string[], seconds: number): Promise<void> {
  await rig.host.write('dns.yaml', service(rig, names, seconds));
  await reach(rig, names);
}

function reach({ host, network }: Rig, names: readonly string[]): Promise<void> {
  const wanted = names.map((name) => network.v4(name)).sort();
  return host.until(`new flows go to ${names}`, async () => {
    const table = await kernelTable(network);
    const { stdout } = await network.try('a', nftExecutable, 'list', 'map', 'ip', table, 'members');
    const found = new Set([...stdout.matchAll(/ : (10\.9\.0\.\d+) \. /g)].map(([, address = '']) => address));
    return `${[...found].sort()}` === `${wanted}`;
  });
}

function service(
  { network }: Pick<Rig, 'network'>,
  names: readonly string[],
  timeoutSeconds: number,
): readonly Json[] {
  return dns(names, network, {
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds } },
  });
}

/** The member of a new flow of each client. */
async function members(
  { network }: Pick<Rig, 'network'>,
  clients = CLIENTS,
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  for (const from of clients)
    found.set(from, (await askByDatagrams(network, VIP, DNS, { from, timeoutMs: 2_000 })).by[0] ?? '');
  return found;
}

/** How many clients the kernel remembers. */
async function remembered({ network }: Rig): Promise<number> {
  const table = `${await kernelTable(network)}_affinity`;
  const text = await network.run('a', nftExecutable, 'list', 'map', 'ip', table, 'clients');
  return [...text.matchAll(/ expires /g)].length;
}
