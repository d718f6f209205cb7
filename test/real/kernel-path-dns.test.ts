// A real resolver, dnsmasq, as the members of one VIP by UDP and TCP on the kernel path: what changes of members cost its
// clients.

import { once } from 'node:events';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { nftExecutable } from '../support/host/nft.ts';
import { askByDatagrams, UDP_MEMBER_PORT } from '../support/traffic/datagrams.ts';
import { DNS, dns, kernelStarted, kernelTable, VIP } from '../support/traffic/kernel-path.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'nft', 'conntrack', 'dnsmasq'], root: true });

/** UDP_MEMBER_PORT has a member of its own. */
const RESOLVER_PORT = 5300;
const MEMBERS = ['m1', 'm2', 'm3'];
const PORTS = [
  { name: 'dns', port: DNS, protocol: 'UDP' },
  { name: 'dns-tcp', port: DNS, protocol: 'TCP' },
];

interface Query {
  readonly protocol: 'udp' | 'tcp';
  /** Milliseconds since the epoch. */
  readonly began: number;
  /** The member that answered; '' without an answer. */
  readonly by: string;
}

test.serial(
  'Queries by UDP and TCP: none is lost to members that terminate, and none but those in flight to one that is killed',
  async (t) => {
    const { host, network } = await kernelStarted(t);
    const resolvers = new Map(MEMBERS.map((member) => [member, startResolver(network, member)]));
    const serve = async (members: readonly string[], draining: readonly string[] = []): Promise<void> => {
      await host.write('dns.yaml', service(network, members, draining));
      const wanted = members.map((each) => network.v4(each)).sort();
      await host.until(
        `new flows go to ${members}`,
        async () => `${await membersInKernel(network)}` === `${wanted}`,
      );
    };
    await serve(MEMBERS);
    await host.until('it answers', async () => (await ask(network, 1_000)).some(({ by }) => by !== ''));

    const over = new AbortController();
    const asking = ask(network, LONGEST_MS, over.signal);
    for (const leaving of MEMBERS) {
      const others = MEMBERS.filter((each) => each !== leaving);
      // A pod that is deleted terminates first: its last answers are back before it is removed.
      await serve(others, [leaving]);
      await serve(others);
      await serve(MEMBERS);
    }
    over.abort();
    const queries = await asking;
    t.deepEqual(
      queries.filter(({ by }) => by === ''),
      [],
    );
    for (const protocol of ['udp', 'tcp'] as const) {
      const own = queries.filter((each) => each.protocol === protocol);
      t.deepEqual([...new Set(own.map(({ by }) => by))].sort(), MEMBERS);
    }

    const overAgain = new AbortController();
    const askingAgain = ask(network, LONGEST_MS, overAgain.signal);
    const killed = Date.now();
    resolvers.get('m1')?.kill('SIGKILL');
    await serve(['m2', 'm3']);
    // Until then a port that a client uses again belongs to an earlier flow.
    await host.until('its flows are forgotten', async () => {
      const ofMember = ['-L', '-p', 'udp', '--reply-src', network.v4('m1')];
      return (await network.try('a', 'conntrack', ...ofMember)).stdout === '';
    });
    const gone = Date.now();
    await host.until('others answer', async () => (await ask(network, 200)).some(({ by }) => by !== ''));
    overAgain.abort();
    const lost = (await askingAgain).filter(({ by }) => by === '');
    t.deepEqual(
      lost.filter(({ began }) => began < killed - PATIENCE_MS || began > gone),
      [],
    );
    t.true((await ask(network, 1_000)).every(({ by }) => by === 'm2' || by === 'm3'));
  },
);

test.serial('A member that is removed without terminating still gives its last answer', async (t) => {
  const { host, network, kill } = await kernelStarted(t);
  kill.get('m1')?.();
  const asked = slowMember(network, 'm1');
  const wanted = (members: readonly string[]) =>
    host.until(
      `new flows go to ${members}`,
      async () => `${await membersInKernel(network)}` === `${members.map((each) => network.v4(each)).sort()}`,
    );
  await host.write('dns.yaml', dns(['m1'], network));
  await wanted(['m1']);
  await host.until('it answers', async () => (await askByDatagrams(network, VIP, DNS)).by[0] === 'late');

  const before = asked();
  const answer = askByDatagrams(network, VIP, DNS);
  await host.until('the query is at the member', async () => asked() > before);
  await host.write('dns.yaml', dns(['m2'], network));
  await wanted(['m2']);
  t.deepEqual((await answer).by, ['late']);
});

/** As resolvers wait for an answer. */
const PATIENCE_MS = 5_000;
/** How long clients ask that are not stopped. */
const LONGEST_MS = 30_000;
let nextPort = 1_025;

/** It answers each datagram after 300 ms, as soon as the port is free; the result is how many have come. */
function slowMember(network: TestNetwork, member: string): () => number {
  const script = `
    const open = () => {
      const socket = require('dgram').createSocket('udp4').on('error', () => setTimeout(open, 20));
      socket.on('message', (_, from) => {
        console.log('asked');
        setTimeout(() => socket.send('late', from.port, from.address), 300);
      });
      socket.bind(${UDP_MEMBER_PORT}, '${network.v4(member)}');
    };
    open();`;
  const child = network.start(member, process.execPath, '-e', script);
  let count = 0;
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    count += text.split('asked').length - 1;
  });
  return () => count;
}

function service(network: TestNetwork, members: readonly string[], draining: readonly string[]) {
  const annotations = { 'headgate.io/engine': 'kernel' };
  const ports = PORTS.map((port) => ({ ...port, port: RESOLVER_PORT }));
  const isDraining = (address: string): boolean => draining.some((each) => address === network.v4(each));
  const conditions = { ready: false, serving: true, terminating: true };
  return dns([...members, ...draining], network, { ports: PORTS }, 'dns', DNS, annotations).map((object) => {
    if (object.kind !== 'EndpointSlice') return object;
    const all = object.endpoints as readonly { readonly addresses: readonly string[] }[];
    const endpoints = all.map((each) => (each.addresses.some(isDraining) ? { ...each, conditions } : each));
    return { ...object, ports, endpoints };
  });
}

/** It knows one name, whose text is the member's. */
function startResolver(network: TestNetwork, member: string) {
  const listen = [
    '--port',
    String(RESOLVER_PORT),
    '--listen-address',
    network.v4(member),
    '--bind-interfaces',
  ];
  const own = ['--no-resolv', '--no-hosts', '--user=root', '--pid-file=', `--txt-record=who.test,${member}`];
  return network.start(member, 'dnsmasq', '--keep-in-foreground', '--conf-file=/dev/null', ...listen, ...own);
}

async function membersInKernel(network: TestNetwork): Promise<readonly string[]> {
  const { stdout } = await network.try(
    'a',
    nftExecutable,
    'list',
    'map',
    'ip',
    await kernelTable(network),
    'slots',
  );
  return [...new Set(Array.from(stdout.matchAll(/ : (10\.9\.0\.\d+) \. /g), ([, each = '']) => each))].sort();
}

/** Eight clients of UDP and four of TCP ask again and again, each query from a new port, for so long or until `over`. */
async function ask(
  network: TestNetwork,
  milliseconds: number,
  over?: AbortSignal,
): Promise<readonly Query[]> {
  const firstPort = nextPort;
  // Eight clients with pauses of 20 ms.
  nextPort += Math.ceil(milliseconds / 2);
  const script = `
    const query = Buffer.from('00010100000100000000000003' + Buffer.from('who').toString('hex') + '04' + Buffer.from('test').toString('hex') + '0000100001', 'hex');
    const nameIn = (data) => /m\\d$/.exec(data.toString('latin1'))?.[0] ?? '';
    // A query from the port of an earlier one would belong to its flow, which is cut off when its member has gone.
    let port = ${firstPort};
    const udp = (end) => {
      const socket = require('dgram').createSocket('udp4').bind(port++);
      socket.on('error', () => end(socket, '')).on('message', (data) => end(socket, nameIn(data)));
      socket.connect(${DNS}, '${VIP}', () => socket.send(query));
    };
    const tcp = (end) => {
      const socket = require('net').connect(${DNS}, '${VIP}', () => socket.write(Buffer.concat([Buffer.from([0, query.length]), query])));
      socket.on('error', () => end(socket, '')).on('data', (data) => end(socket, nameIn(data)));
    };
    const one = (open) => new Promise((resolve) => {
      const timer = setTimeout(() => resolve(''), ${PATIENCE_MS});
      open((socket, by) => { clearTimeout(timer); (socket.destroy ?? (() => { try { socket.close(); } catch {} })).call(socket); resolve(by); });
    });
    let until = Date.now() + ${milliseconds};
    process.on('SIGUSR2', () => { until = 0; });
    const client = async (protocol, open) => {
      while (Date.now() < until) {
        const began = Date.now();
        console.log(JSON.stringify({ protocol, began, by: await one(open) }));
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };
    const clients = [...Array(8).fill(['udp', udp]), ...Array(4).fill(['tcp', tcp])];
    // Sockets of lost queries are still open.
    Promise.all(clients.map((each) => client(...each))).then(() => process.exit());`;
  const child = network.start('client', process.execPath, '-e', script);
  over?.addEventListener('abort', () => child.kill('SIGUSR2'));
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  await once(child, 'close');
  return output
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}
