// Single elements of the rules that another process removes or changes, with real nftables.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import type { RunningAgent } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { nftExecutable } from '../support/host/nft.ts';
import { askByDatagrams } from '../support/traffic/datagrams.ts';
import { DNS, dns, kernelServed, kernelTable, VIP, VIP6 } from '../support/traffic/kernel-path.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'nft', 'conntrack'], root: true });

/** For two rests between rounds, on a machine with other work. */
const PATIENCE_MS = 60_000;
/** Less than the rest between rounds, which is 10 s: the kernel has reported the change. */
const SOON_MS = 9_000;

test.serial('Elements of each map that another process removes are put back, and counted', async (t) => {
  const { host, network, agent } = await kernelServed(t);
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
  await host.until('they are counted', async () => (await repairs(agent, 'element')) >= maps.length);
  t.is(await repairs(agent, 'element'), maps.length);
  t.is(await repairs(agent, 'rules'), 0);
  t.true(agent.hasLogged('Put back elements of nftables that another process had removed'));
});

test.serial('An element that another process changes or adds makes all rules be loaded again', async (t) => {
  const { host, network, agent } = await kernelServed(t);
  const table = await kernelTable(network);
  const slots = (await mapOf(network, 'ip', '', 'slots')).split('\n').map((line) => line.split(' : ')[0]);
  const wrong = slots.map((key) => `${key} : 10.9.0.77 . 5353`);
  await network.run(
    'a',
    nftExecutable,
    `delete element ip ${table} slots { ${slots.join(', ')} }; add element ip ${table} slots { ${wrong.join(', ')} }`,
  );
  await host.until('it is noticed', async () => (await repairs(agent, 'rules')) === 1, SOON_MS);
  await host.until(
    'it answers again',
    async () => (await askByDatagrams(network, VIP, DNS)).by[0]?.startsWith('m') === true,
    SOON_MS,
  );
  t.is(await repairs(agent, 'rules'), 1);
  const added = `{ ${VIP} . udp . ${DNS} . 127.0.0.1 }`;
  await network.run('a', nftExecutable, 'add', 'element', 'ip', table, 'allowed', added);
  await host.until('it is removed', async () => (await mapOf(network, 'ip', '', 'allowed')) === '', SOON_MS);
  t.is(await repairs(agent, 'rules'), 2);
  t.is(await repairs(agent, 'element'), 0);
});

test.serial('A rule that another process adds makes all rules be loaded again, once', async (t) => {
  const { host, network, agent } = await kernelServed(t);
  const table = await kernelTable(network);
  await network.run('a', nftExecutable, 'insert', 'rule', 'ip', table, 'pre', 'udp', 'dport', '53', 'drop');
  t.is((await askByDatagrams(network, VIP, DNS)).by[0], '');
  const rules = async () =>
    (await network.try('a', nftExecutable, 'list', 'chain', 'ip', table, 'pre')).stdout;
  await host.until('it is gone', async () => !/drop/.test(await rules()) && (await rules()) !== '', SOON_MS);
  t.true((await askByDatagrams(network, VIP, DNS)).by[0]?.startsWith('m'));
  await network.run('a', nftExecutable, 'add table ip another; delete table ip another');
  await network.run(
    'a',
    nftExecutable,
    'delete',
    'element',
    'ip',
    table,
    'choices',
    `{ ${VIP} . udp . ${DNS} }`,
  );
  await host.until('a round has ended', async () => (await repairs(agent, 'element')) === 1, SOON_MS);
  t.is(await repairs(agent, 'rules'), 1);
});

test.serial('Changes of the agent itself are no differences', async (t) => {
  const { host, network, agent } = await kernelServed(t);
  const table = await kernelTable(network);
  const many = (members: readonly string[]) =>
    Array.from({ length: 10 }, (_, at) => dns(members, network, {}, `dns-${at}`, 1_000 + at)).flat();
  await network.run(
    'a',
    nftExecutable,
    'delete',
    'element',
    'ip6',
    table,
    'choices',
    `{ ${VIP6} . udp . ${DNS} }`,
  );
  let turn = 0;
  const churn = async (): Promise<boolean> => {
    await host.write('many.yaml', many(turn++ % 2 === 0 ? ['m1', 'm2'] : ['m2', 'm3']));
    // A round has ended when it has put the element back.
    return (await repairs(agent, 'element')) > 0;
  };
  await host.until('a round has ended', churn, PATIENCE_MS);
  t.is(await repairs(agent, 'element'), 1);
  t.is(await repairs(agent, 'rules'), 0);
});

async function repairs(agent: RunningAgent, what: string): Promise<number> {
  return (await agent.metrics())('headgate_repairs_total', { what });
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
