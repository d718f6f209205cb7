// What becomes of flows and connections of the kernel path when the rules come into force otherwise than by a change of the
// agent, when packets do not fit them, and when other programs of the host change marks or flush all rules.

import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { FlowProgram } from '../../agent/nftables/flows/flow-program.ts';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { nftExecutable } from '../support/host/nft.ts';
import { askByConnections, askByDatagrams, UDP_MEMBER_PORT } from '../support/traffic/datagrams.ts';
import { sendStraySegment } from '../support/traffic/forged-segment.ts';
import { DNS, dns, kernelServed, kernelStarted, VIP, VIP6 } from '../support/traffic/kernel-path.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'nft', 'conntrack', 'perl'], root: true });

const MEMBERS = ['m1', 'm2', 'm3'];
const FLOW_PORT = 40_053;

/** Asks from one port, every 20 ms, until the end of the test; gives the last member that answered. */
function flowOf(network: TestNetwork, address: string, localPort: number): () => string {
  const type = address.includes(':') ? 'udp6' : 'udp4';
  const script = `
    const socket = require('dgram').createSocket('${type}').on('error', () => 0).on('message', (text) => console.log(String(text).split(' ')[0]));
    socket.bind(${localPort}, () => setInterval(() => socket.send('?', ${DNS}, '${address}', () => 0), 20));`;
  const child = network.start('client', process.execPath, '-e', script);
  let last = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    last = text.trim().split('\n').at(-1) ?? '';
  });
  return () => last;
}

/**
 * A connection to the VIP whose member answers each number with its name and the number, until the end of the test. It sends
 * numbers all the time, or only while it is asked to.
 */
function connectionTo(network: TestNetwork, port: number, localPort: number, isIdle = false) {
  const script = `
    let last = 0;
    const socket = require('net').connect({ host: '${VIP}', port: ${port}, localPort: ${localPort} }, () => setInterval(() => !${isIdle} && send(), 20));
    const send = () => socket.write((++last) + '\\n');
    process.stdin.on('data', send);
    socket.on('error', (error) => console.log(error.code)).on('close', () => console.log('closed'));
    socket.on('data', (data) => process.stdout.write(data));`;
  const child = network.start('client', process.execPath, '-e', script);
  let text = '';
  child.stdout?.setEncoding('utf8').on('data', (more: string) => {
    text += more;
  });
  const lines = (): readonly string[] => text.split('\n').slice(0, -1);
  return {
    /** The member and the number of the last answer, or why there is none any more. */
    last: (): string => lines().at(-1) ?? '',
    /** Resolves when so many more answers have come, or the connection has ended. */
    continues: async (): Promise<boolean> => {
      const from = lines().length;
      if (isIdle) child.stdin?.write('\n');
      const isOver = (): boolean => /^(?:closed|E\w+)$/.test(lines().at(-1) ?? '');
      await until(
        'it answers or has ended',
        async () => isOver() || lines().length > from + (isIdle ? 0 : 5),
      );
      return !isOver();
    },
  };
}

function answerLines(network: TestNetwork, host: string): void {
  const script = `require('net').createServer((socket) => socket.on('error', () => 0).on('data', (data) => {
    for (const line of String(data).trim().split('\\n')) socket.write('${host} ' + line + '\\n');
  })).listen(${UDP_MEMBER_PORT}, '::')`;
  network.start(host, process.execPath, '-e', script);
}

const web = (network: TestNetwork, engine: string, members = MEMBERS) =>
  dns(members, network, { ports: [{ name: 'dns-tcp', port: 80 }] }, 'web', 80, {
    'headgate.io/engine': engine,
  });

/** As kernelStarted(), with a Service of TCP whose members answer lines; by this engine. */
async function webStarted(t: ExecutionContext, engine: string) {
  const rig = await kernelStarted(t);
  for (const member of MEMBERS) answerLines(rig.network, member);
  await rig.host.write('web.yaml', web(rig.network, engine));
  await rig.host.until('it is served', async () => (await rig.host.why('default/web')).verdict === 'served');
  return rig;
}

test.serial(
  'A flow leaves a member that goes while no agent runs, or while the rules are away',
  async (t) => {
    const rig = await kernelServed(t);
    const { host, network } = rig;
    let { agent } = rig;
    for (const [at, vip] of [VIP, VIP6].entries()) {
      const last = flowOf(network, vip, FLOW_PORT + at);
      await until('it answers', async () => last() !== '');
      for (const end of ['kill', 'stop'] as const) {
        await agent[end]();
        const gone = last();
        const others = MEMBERS.filter((name) => name !== gone);
        await host.write('dns.yaml', dns(others, network));
        agent = await host.start();
        await host.until('the flow has another member', async () => others.includes(last()));
      }
      const gone = last();
      const others = MEMBERS.filter((name) => name !== gone);
      await network.run('a', nftExecutable, 'flush', 'ruleset');
      await host.write('dns.yaml', dns(others, network));
      await host.until('the flow has another member', async () => others.includes(last()));
    }
    t.is((await host.status()).fault, '');
  },
);

test.serial('A packet that does not fit a connection ends none, from the client or the member', async (t) => {
  const { network } = await webStarted(t, 'kernel');
  const connection = connectionTo(network, 80, 41_000);
  t.true(await connection.continues());
  const [member = ''] = connection.last().split(' ');
  for (let turn = 0; turn < 3; turn++) {
    await sendStraySegment(network, 'client', 80);
    t.true(await connection.continues(), 'after one of the client');
    await sendStraySegment(network, member, 41_000);
    t.true(await connection.continues(), 'after one of the member');
  }
});

test.serial('Connections outlive a flush of all rules, and new ones are made during it', async (t) => {
  const { host, network, agent } = await webStarted(t, 'kernel');
  // As a network plugin may do that has some bits of the mark for itself.
  const clearing =
    'table ip plugin { chain forward { type filter hook forward priority 0; meta mark set 0x80000; }; }';
  await network.run('a', nftExecutable, clearing);
  const connections = Array.from({ length: 8 }, (_, at) => connectionTo(network, 80, 42_000 + at));
  for (const each of connections) t.true(await each.continues());
  const asking = askByConnections(network, VIP, 80, 1, 20_000);
  for (let turn = 1; turn <= 3; turn++) {
    await network.run('a', nftExecutable, 'flush', 'ruleset');
    for (const each of connections) t.true(await each.continues());
    const repairs = async () => (await agent.metrics())('headgate_repairs_total', { what: 'rules' });
    await host.until('they are loaded again', async () => (await repairs()) >= turn);
  }
  await asking;
  t.deepEqual(
    connections.filter((each) => !/^m\d \d+$/.test(each.last())).map((each) => each.last()),
    [],
  );
});

test.serial(
  'Marks that another program changes cost no query, and members see the load balancer',
  async (t) => {
    const { network } = await kernelServed(t);
    const clearing = ['ip', 'ip6'].map(
      (family) =>
        `table ${family} plugin { chain forward { type filter hook forward priority 0; meta mark set 0x80000; }; }`,
    );
    for (const each of clearing) await network.run('a', nftExecutable, each);
    const v4 = await askByDatagrams(network, VIP, DNS, { count: 20 });
    t.deepEqual([...new Set(v4.by)].sort(), MEMBERS);
    t.deepEqual([...v4.from], [network.v4('a')]);
    const v6 = await askByDatagrams(network, VIP6, DNS, { count: 20 });
    t.deepEqual([...new Set(v6.by)].sort(), MEMBERS);
  },
);

test.serial(
  'Connections of HAProxy continue when the first Service gets the engine of the kernel',
  async (t) => {
    const { host, network } = await webStarted(t, 'haproxy');
    const connections = Array.from({ length: 4 }, (_, at) => connectionTo(network, 80, 43_000 + at, true));
    for (const each of connections) t.true(await each.continues());
    await host.write('web.yaml', web(network, 'kernel'));
    await host.until('the kernel serves', async () => {
      const isWithHaproxy = (await network.try('a', 'ss', '-Hltn', 'sport', '=', '80')).stdout !== '';
      return !isWithHaproxy && (await host.why('default/web')).verdict === 'served';
    });
    for (const each of connections) t.true(await each.continues(), each.last());
  },
);

test.serial('Rules are loaded and changed although they cannot be written to the state folder', async (t) => {
  const { host, network, agent } = await kernelServed(t);
  await agent.stop();
  await network.run('a', nftExecutable, 'flush', 'ruleset');
  const folder = join(host.stateDir, 'nftables');
  await rm(folder, { recursive: true });
  await writeFile(folder, '');
  await host.start();
  for (const member of ['m1', 'm2']) {
    await host.write('dns.yaml', dns([member], network));
    await host.until('it answers', async () => (await askByDatagrams(network, VIP, DNS)).by[0] === member);
  }
  await host.until('it is a fault', async () => /nftables/.test((await host.status()).fault));
  t.is((await askByDatagrams(network, VIP, DNS)).by[0], 'm2');
});

test.serial('FlowProgram deletes flows to members that are gone, in one pass, and no others', async (t) => {
  const network = await TestNetwork.create(t, ['a']);
  // Its rules make the kernel track flows.
  await network.run(
    'a',
    nftExecutable,
    'table inet t { chain c { type filter hook input priority 0; ct state new accept; }; }',
  );
  const add = async (
    protocol: string,
    vip: string,
    member: string,
    port: number,
    ...rest: readonly string[]
  ) => {
    const [client, source] = vip.includes(':') ? ['fd00::1', 'fd00::2'] : ['203.0.113.1', '203.0.113.2'];
    const memberPort = member === vip ? '53' : '5353';
    await network.run(
      'a',
      'conntrack',
      '-I',
      '-p',
      protocol,
      '-t',
      '1000',
      '--orig-src',
      client,
      '--orig-dst',
      vip,
      '--orig-port-src',
      `${port}`,
      '--orig-port-dst',
      '53',
      '--reply-src',
      member,
      '--reply-dst',
      source,
      '--reply-port-src',
      memberPort,
      '--reply-port-dst',
      `${port}`,
      ...rest,
    );
  };
  const tcp = (state: string) => ['--state', state];
  const sctp = ['--state', 'ESTABLISHED', '--orig-vtag', '1', '--reply-vtag', '2'];
  await add('udp', '192.0.2.1', '10.0.0.1', 1);
  await add('udp', '192.0.2.1', '10.0.0.2', 2);
  await add('udp', '192.0.2.1', '192.0.2.1', 3);
  await add('udp', '192.0.2.2', '10.0.0.1', 4);
  await add('udp', '2001:db8::1', '2001:db8:1::1', 5);
  await add('udp', '2001:db8::1', '2001:db8:1::2', 6);
  await add('tcp', '192.0.2.1', '10.0.0.1', 7, ...tcp('ESTABLISHED'));
  await add('tcp', '192.0.2.1', '10.0.0.1', 8, ...tcp('SYN_SENT'));
  await add('tcp', '192.0.2.1', '192.0.2.1', 9, ...tcp('ESTABLISHED'));
  await add('tcp', '192.0.2.1', '192.0.2.1', 10, ...tcp('TIME_WAIT'));
  await add('sctp', '192.0.2.1', '10.0.0.1', 11, ...sctp);
  await add('sctp', '192.0.2.1', '10.0.0.2', 12, ...sctp);
  await add('udp', '192.0.2.3', '10.0.0.2', 13);
  await add('udp', '192.0.2.4', '192.0.2.4', 14);

  const program = new FlowProgram(network.netns('a'));
  t.teardown(() => program.close());
  const two = '0a00000214e9';
  const [v4, v6] = ['c0000201', '20010db8000000000000000000000001'];
  const passed = await program.pass(
    [
      `${v4}003511 some ${two}`,
      `${v4}003506 some ${two}`,
      `${v4}003584 some ${two}`,
      `${v6}003511 some 20010db800010000000000000000000214e9`,
      'c0000203003511 all',
      'c0000204003511 few',
    ],
    ['v4', 'v6'],
  );
  t.deepEqual(passed, { flows: 14, deleted: 7 });
  const left = ['ipv4', 'ipv6'].map((family) => network.run('a', 'conntrack', '-L', '-f', family));
  const ports = [...(await Promise.all(left)).join('').matchAll(/ sport=(\d+) dport=53 /g)].map(([, port]) =>
    Number(port),
  );
  t.deepEqual(
    ports.sort((a, b) => a - b),
    [2, 4, 6, 7, 9, 12, 14],
  );
  t.deepEqual(await program.pass([`${v4}003511 some ${two}`], ['v4']), { flows: 6, deleted: 0 });
});
