// Elements and rules of the agent's tables that another process removes or changes, with real nftables.

import { readFileSync } from 'node:fs';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import type { RunningAgent } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { nftExecutable } from '../support/host/nft.ts';
import { askByDatagrams } from '../support/traffic/datagrams.ts';
import { DNS, dns, kernelServed, kernelTable, VIP, VIP6 } from '../support/traffic/kernel-path.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'nft', 'conntrack'], root: true });

/** On a machine with other work. */
const SOON_MS = 9_000;
const TURNS = 10;

test.serial('Elements of each map that another process removes are loaded again, and counted', async (t) => {
  const { host, network, agent } = await watched(t);
  const spec = {
    sessionAffinity: 'ClientIP',
    loadBalancerSourceRanges: ['10.9.0.0/16', '192.0.2.7/32', 'fd09::/64', '2001:db8::7/128'],
  };
  await host.write('dns.yaml', [
    ...dns(['m1', 'm2', 'm3'], network, spec),
    ...dns(['m1', 'm2'], network, {}, 'web', 80, { 'headgate.io/engine': 'kernel' }),
    ...dns([], network, {}, 'empty', 54),
  ]);
  await host.until(
    'it is carried out',
    async () => (await mapOf(network, 'ip', '_affinity', 'timeouts')) !== '',
  );
  const maps = [
    ['ip', '', 'choices'],
    ['ip', '', 'slots'],
    ['ip', '', 'shares'],
    ['ip', '', 'members'],
    ['ip', '', 'refused'],
    ['ip', '', 'guarded'],
    ['ip', '', 'allowed'],
    ['ip', '_counts', 'flows'],
    ['ip', '_counts', 'traffic'],
    ['ip', '_affinity', 'timeouts'],
    ['ip6', '', 'slots'],
    ['ip6', '', 'allowed'],
    ['ip6', '_counts', 'traffic'],
  ] as const;
  const listed = () => Promise.all(maps.map(([family, suffix, map]) => mapOf(network, family, suffix, map)));
  let before = await listed();
  await host.until('the rules are at rest', async () => {
    const last = before;
    before = await listed();
    return `${last}` === `${before}` && before.every((text) => text !== '');
  });
  const table = await kernelTable(network);
  const deletions = maps.map(([family, suffix, map], at) => {
    const [key = ''] = before[at]?.split(/ : |\n/) ?? [];
    return `delete element ${family} ${table}${suffix} ${map} { ${key} }`;
  });
  await network.run('a', nftExecutable, deletions.join('; '));
  await host.until('they are back', async () => `${await listed()}` === `${before}`, SOON_MS);
  t.is(await repairs(agent), 1);
  t.true(agent.hasLogged('Loads the rules of nftables again'));
});

test.serial('An element that another process changes or adds makes all rules be loaded again', async (t) => {
  const { host, network, agent } = await watched(t);
  const table = await kernelTable(network);
  const slots = (await mapOf(network, 'ip', '', 'slots')).split('\n').map((line) => line.split(' : ')[0]);
  const wrong = slots.map((key) => `${key} : 10.9.0.77 . 5353`);
  await network.run(
    'a',
    nftExecutable,
    `delete element ip ${table} slots { ${slots.join(', ')} }; add element ip ${table} slots { ${wrong.join(', ')} }`,
  );
  await host.until('it is noticed', async () => (await repairs(agent)) === 1, SOON_MS);
  await host.until(
    'it answers again',
    async () => (await askByDatagrams(network, VIP, DNS)).by[0]?.startsWith('m') === true,
    SOON_MS,
  );
  t.is(await repairs(agent), 1);
  const added = `{ ${VIP} . udp . ${DNS} . 127.0.0.1 }`;
  await network.run('a', nftExecutable, 'add', 'element', 'ip', table, 'allowed', added);
  await host.until('it is removed', async () => (await mapOf(network, 'ip', '', 'allowed')) === '', SOON_MS);
  t.is(await repairs(agent), 2);
});

test.serial('A rule that another process adds makes all rules be loaded again, once', async (t) => {
  const { host, network, agent } = await watched(t);
  const table = await kernelTable(network);
  await network.run('a', nftExecutable, 'insert', 'rule', 'ip', table, 'pre', 'udp', 'dport', '53', 'drop');
  t.is((await askByDatagrams(network, VIP, DNS)).by[0], '');
  const rules = async () =>
    (await network.try('a', nftExecutable, 'list', 'chain', 'ip', table, 'pre')).stdout;
  await host.until('it is gone', async () => !/drop/.test(await rules()) && (await rules()) !== '', SOON_MS);
  t.true((await askByDatagrams(network, VIP, DNS)).by[0]?.startsWith('m'));
  await network.run('a', nftExecutable, 'add table ip another; delete table ip another');
  await host.until('a round has ended', async () => (await repairs(agent)) > 0, SOON_MS);
  t.is(await repairs(agent), 1);
});

test.serial('A change while nothing watches the changes is mended when they are watched again', async (t) => {
  const { host, network, agent } = await watched(t);
  const table = await kernelTable(network);
  const found = await network.run('a', 'ip', 'netns', 'pids', network.netns('a'));
  const watching = found.split('\n').filter((pid) => pid !== '' && isWatch(pid));
  t.is(watching.length, 1);
  for (const pid of watching) process.kill(Number(pid), 'SIGKILL');
  const deletion = `delete element ip ${table} choices { ${VIP} . udp . ${DNS} }`;
  await network.run('a', nftExecutable, deletion);
  const choice = new RegExp(`\\. 17 \\. ${DNS} `);
  await host.until('it is back', async () => choice.test(await mapOf(network, 'ip', '', 'choices')), SOON_MS);
  t.is(await repairs(agent), 1);
});

test.serial('Changes of the agent itself are no repairs, and end none of another process', async (t) => {
  const { host, network, agent } = await watched(t);
  const table = await kernelTable(network);
  const many = (members: readonly string[]) =>
    Array.from({ length: 10 }, (_, at) => dns(members, network, {}, `dns-${at}`, 1_000 + at)).flat();
  for (let turn = 0; turn < TURNS; turn++) {
    const before = await mapOf(network, 'ip', '', 'slots');
    await host.write('many.yaml', many(turn % 2 === 0 ? ['m1', 'm2'] : ['m2', 'm3']));
    await host.until('the slots change', async () => (await mapOf(network, 'ip', '', 'slots')) !== before);
  }
  t.is(await repairs(agent), 0);
  const deletion = `delete element ip6 ${table} choices { ${VIP6} . udp . ${DNS} }`;
  await network.run('a', nftExecutable, deletion);
  await host.write('many.yaml', many(['m1']));
  const choice = new RegExp(`\\. 17 \\. ${DNS} `);
  await host.until(
    'it is back',
    async () => choice.test(await mapOf(network, 'ip6', '', 'choices')),
    SOON_MS,
  );
  t.is(await repairs(agent), 1);
});

/** The process prints which others change tables. */
function isWatch(pid: string): boolean {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return words.startsWith('perl\0') && words.includes('NFNLGRP_NFTABLES');
  } catch {
    return false; // It has ended.
  }
}

/** The agent serves, and the kernel reports changes to it (group 7 of netlink's protocol 12). */
async function watched(t: Parameters<typeof kernelServed>[0]): ReturnType<typeof kernelServed> {
  const served = await kernelServed(t);
  const { host, network } = served;
  await host.until('its tables are watched', async () =>
    /^\w+ +12 +\d+ +0*40 /m.test(await network.run('a', 'cat', '/proc/net/netlink')),
  );
  return served;
}

async function repairs(agent: RunningAgent): Promise<number> {
  return (await agent.metrics())('headgate_repairs_total', { what: 'rules' });
}

/** The elements, sorted, one on a line. */
async function mapOf(network: TestNetwork, family: string, suffix: string, map: string): Promise<string> {
  const table = await kernelTable(network);
  const { stdout } = await network.try(
    'a',
    nftExecutable,
    '-n',
    'list',
    'table',
    family,
    `${table}${suffix}`,
  );
  const [block = ''] = new RegExp(`^\t(?:map|set) ${map} \\{$[^]*?^\t\\}$`, 'm').exec(stdout) ?? [];
  const [, elements = ''] = /elements = \{ ([^}]*) \}/.exec(block) ?? [];
  return elements
    .split(/,\s+/)
    .map((each) => each.trim().replace(/ counter packets \d+ bytes \d+$/, ''))
    .sort()
    .join('\n');
}
