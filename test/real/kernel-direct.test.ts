// Direct server return: members get the packets of clients unchanged and answer past the load balancer. With real nftables and
// real traffic, over TCP and UDP, IPv4 and IPv6.

import { once } from 'node:events';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { nftExecutable, nftFlags } from '../support/host/nft.ts';
import { askByConnections, askByDatagrams } from '../support/traffic/datagrams.ts';
import { kernelTable } from '../support/traffic/kernel-path.ts';
import type { Json } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'nft', 'conntrack'], root: true });

const VIP = '10.9.0.100';
const VIP6 = 'fd09::100';
const PORT = 8053;
const MEMBERS = ['m1', 'm2', 'm3'];

test('Direct members get packets unchanged, over UDP and TCP, IPv4 and IPv6, and answer past the host', async (t) => {
  const { network, host } = await served(t);
  for (const [vip, client] of [
    [VIP, network.v4('client')],
    [VIP6, network.v6('client')],
  ] as const) {
    const { by, from } = await askByDatagrams(network, vip, PORT, { count: 40 });
    t.deepEqual([...new Set(by)].sort(), MEMBERS);
    t.deepEqual([...from], [client]);
    t.deepEqual([...new Set(await askByConnections(network, vip, PORT, 40))].sort(), MEMBERS);
  }
  // The kernel has no entry of these flows, and counts them.
  t.is((await network.run('a', 'conntrack', '-L', '-d', VIP)).trim(), '');
  const { verdict, problems } = await host.why('default/echo');
  t.deepEqual([verdict, problems], ['served', []]);
  const counted = await network.run(
    'a',
    nftExecutable,
    'list',
    'set',
    'ip',
    `${await kernelTable(network)}_counts`,
    'flows',
  );
  // Now and then two sockets have one port after another, and are one flow.
  t.regex(counted, new RegExp(`${VIP} \\. tcp \\. ${PORT} counter packets (3[5-9]|4\\d) `));
  t.regex(counted, new RegExp(`${VIP} \\. udp \\. ${PORT} counter packets (3[5-9]|4\\d) `));
});

test('Connections to direct members continue while members come and go, in both families', async (t) => {
  const { network, host } = await served(t, ['m1', 'm2']);
  for (const vip of [VIP, VIP6]) {
    await host.write('echo.yaml', echo(network, ['m1', 'm2']));
    const clients = await openConnections(network, vip, 60);
    await host.write('echo.yaml', echo(network, MEMBERS));
    await host.until('the third member has new flows', async () =>
      (await askByDatagrams(network, vip, PORT, { count: 30 })).by.includes('m3'),
    );
    t.is(await clients.broken(), 0);
    await host.write('echo.yaml', echo(network, ['m1', 'm2']));
    await host.until(
      'it has no new ones',
      async () => !(await askByDatagrams(network, vip, PORT, { count: 30 })).by.includes('m3'),
    );
    t.is(await clients.broken(), 0);
  }
});

test('headgate check names a member without the VIP on its loopback', async (t) => {
  const { network, host } = await served(t);
  const findings = async () => {
    const { stdout } = await host.command('check');
    return stdout.split('\n').filter((line) => line.includes('direct members'));
  };
  // Each member is a neighbour.
  await askByDatagrams(network, VIP, PORT, { count: 40 });
  t.regex(
    (await findings()).join('\n'),
    /^ok {3}direct members: 6 on networks of this host; 3 answer as the VIP$/,
  );
  await network.run('m2', 'ip', 'address', 'delete', `${VIP}/32`, 'dev', 'lo');
  t.deepEqual(await findings(), [
    `BAD  direct members: ${network.v4('m2')} does not answer a ping to ${VIP}: it needs the VIP on its loopback`,
  ]);
});

test('A flush of all rules by another program ends no connection to direct members', async (t) => {
  const { network } = await served(t);
  for (const vip of [VIP, VIP6]) {
    const clients = await openConnections(network, vip, 60);
    t.is(await clients.broken(), 0);
    await network.run('a', nftExecutable, 'flush', 'ruleset');
    t.is(await clients.broken(), 0);
  }
});

test('Source ranges close direct members', async (t) => {
  const { network, host } = await served(t);
  const asked = async () => (await askByDatagrams(network, VIP, PORT, { count: 3, timeoutMs: 300 })).by;
  t.true((await asked()).every((each) => MEMBERS.includes(each)));
  await host.write(
    'echo.yaml',
    echo(network, MEMBERS, { loadBalancerSourceRanges: ['192.0.2.0/24', 'fd09:1::/64'] }),
  );
  await host.until('the client is closed out', async () => (await asked()).every((each) => each === ''));
  t.deepEqual((await askByDatagrams(network, VIP6, PORT, { count: 1 })).by, ['']);
});

test('A member behind a router gets nothing and is named', async (t) => {
  const { network, host } = await served(t);
  await network.run('a', 'ip', 'route', 'add', `${network.v4('m3')}/32`, 'via', network.v4('client'));
  await host.until('it is named', async () => (await host.why('default/echo')).problems.length > 0);
  const { problems } = await host.why('default/echo');
  t.deepEqual(
    problems.map(({ message }) => message),
    [
      ['UDP', PORT],
      ['TCP', PORT],
      ['TCP', 7007],
    ].map(
      ([protocol, port]) =>
        `Member ${network.v4('m3')}:${port} of ${protocol} port ${port} gets nothing: the router ${network.v4('client')} is on the way to it; "headgate.io/members": "direct" needs members on a network of the load balancer`,
    ),
  );
  const { by } = await askByDatagrams(network, VIP, PORT, { count: 30 });
  t.deepEqual([...new Set(by)].sort(), ['m1', 'm2']);
  const { stdout } = await host.command('check');
  const finding = `BAD  direct members: ${network.v4('m3')}: the router ${network.v4('client')} is on the way to it`;
  t.true(stdout.includes(finding), stdout);
  // The member as the router of others.
  await network.run('a', 'ip', 'route', 'delete', `${network.v4('m3')}/32`);
  await network.run('a', 'ip', 'route', 'add', '192.0.2.0/24', 'via', network.v4('m3'));
  await host.until('it is a router', async () =>
    (await host.why('default/echo')).problems.some(({ message }) =>
      message.includes('gets nothing: it is a router of this host, which would send packets back'),
    ),
  );
});

test('An error of ICMP about a packet to a client reaches the member of the flow', async (t) => {
  const { network } = await served(t);
  const script = `
    const s = require('net').connect({ port: ${PORT}, host: '${VIP}', localPort: 9876 });
    s.on('data', (text) => console.log(String(text).split(' ')[0]));`;
  const { stdout } = await network.try('client', process.execPath, '-e', script);
  const member = stdout.trim();
  t.true(MEMBERS.includes(member), stdout);
  const probe = `from socket import *
import struct
def sum16(data):
    total = sum(struct.unpack('!%dH' % (len(data) // 2), data))
    while total >> 16: total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
inner = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 1500, 1, 0x4000, 60, 6, 0, inet_aton('${VIP}'), inet_aton('${network.v4('client')}')) + struct.pack('!HHI', ${PORT}, 9876, 1)
body = struct.pack('!BBHHH', 3, 4, 0, 0, 1280) + inner
body = body[:2] + struct.pack('!H', sum16(body)) + body[4:]
socket(AF_INET, SOCK_RAW, IPPROTO_ICMP).sendto(body, ('${VIP}', 0))`;
  const before = await errors(network, member);
  await network.run('client', 'python3', '-c', probe);
  t.is(await errors(network, member), before + 1);
});

/** Packets of ICMP that the host got. */
async function errors(network: TestNetwork, host: string): Promise<number> {
  const text = await network.run(host, 'cat', '/proc/net/snmp');
  const [names = '', values = ''] = text.split('\n').filter((line) => line.startsWith('Icmp:'));
  return Number(values.split(' ')[names.split(' ').indexOf('InDestUnreachs')]);
}

/** Connections that ask their member for its name whenever broken() is called. */
async function openConnections(network: TestNetwork, address: string, count: number) {
  const script = `
    const sockets = [];
    let broken = 0;
    const open = (n) => new Promise((resolve) => {
      const socket = require('net').connect(7007, '${address}', () => resolve());
      socket.once('error', () => resolve(broken++));
      socket.on('close', () => { socket.isOver = true; });
      sockets.push(socket);
    });
    (async () => {
      for (let n = 0; n < ${count}; n++) await open(n);
      console.log('open');
      process.stdin.on('data', async () => {
        const answers = await Promise.all(sockets.map((socket) => new Promise((resolve) => {
          if (socket.isOver) return resolve(false);
          setTimeout(() => resolve(false), 3000);
          socket.once('data', () => resolve(true)).once('error', () => resolve(false)).write('?');
        })));
        console.log(String(answers.filter((each) => !each).length));
      });
    })();`;
  const child = network.start('client', process.execPath, '-e', script);
  const line = async () => String((await once(child.stdout as NodeJS.ReadableStream, 'data'))[0]).trim();
  await line();
  return {
    broken: async (): Promise<number> => {
      const answer = line();
      child.stdin?.write('?');
      return Number(await answer);
    },
  };
}

async function served(t: ExecutionContext, members = MEMBERS) {
  const network = await TestNetwork.create(t, ['client', 'a', ...MEMBERS]);
  await network.run('a', 'sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1');
  await network.run('a', 'ip', 'address', 'add', `${VIP}/32`, 'dev', 'eth0');
  await network.run('a', 'ip', 'address', 'add', `${VIP6}/128`, 'dev', 'eth0', 'nodad');
  for (const member of MEMBERS) {
    await network.run(member, 'ip', 'address', 'add', `${VIP}/32`, 'dev', 'lo');
    await network.run(member, 'ip', 'address', 'add', `${VIP6}/128`, 'dev', 'lo', 'nodad');
    // A socket of UDP on all addresses would answer from the member's own one.
    const udp = (type: string, vip: string) =>
      `{ const s = require('dgram').createSocket('${type}').on('message', (text, from) => { if (text.length > 0) s.send('${member} ' + from.address, from.port, from.address); }); s.bind(${PORT}, '${vip}'); }`;
    const tcp = `require('net').createServer((s) => s.on('error', () => 0).end('${member}')).listen(${PORT}, '::'); require('net').createServer((s) => s.on('error', () => 0).on('data', () => s.write('${member}'))).listen(7007, '::');`;
    const name = `${tcp} ${udp('udp4', VIP)} ${udp('udp6', VIP6)}`;
    network.start(member, process.execPath, '-e', name);
  }
  const host = await TestHost.create(t, { flags: ['--netns', network.netns('a'), ...nftFlags] });
  await host.start();
  await host.write('echo.yaml', echo(network, members));
  await host.until(
    'it answers',
    async () =>
      (await askByDatagrams(network, VIP6, PORT)).by[0]?.startsWith('m') === true &&
      (await askByConnections(network, VIP, PORT, 1))[0]?.startsWith('m') === true,
  );
  return { host, network };
}

function echo(network: TestNetwork, members: readonly string[], spec: Json = {}): readonly Json[] {
  const ports = [
    { name: 'udp', port: PORT, protocol: 'UDP' },
    { name: 'tcp', port: PORT, protocol: 'TCP' },
    { name: 'long', port: 7007, protocol: 'TCP' },
  ];
  const slice = (addressType: 'IPv4' | 'IPv6', addressOf: (member: string) => string): Json => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `echo-${addressType.toLowerCase()}`,
      labels: { 'kubernetes.io/service-name': 'echo' },
    },
    addressType,
    endpoints: members.map((member) => ({ addresses: [addressOf(member)] })),
    ports,
  });
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        name: 'echo',
        annotations: {
          'headgate.io/load-balancer-ips': `${VIP},${VIP6}`,
          'headgate.io/engine': 'kernel',
          'headgate.io/members': 'direct',
        },
      },
      spec: {
        type: 'LoadBalancer',
        loadBalancerClass: 'headgate.io/agent',
        ipFamilies: ['IPv4', 'IPv6'],
        ipFamilyPolicy: 'RequireDualStack',
        ports: ports.map((each) => ({ ...each, targetPort: each.port })),
        ...spec,
      },
    },
    slice('IPv4', (member) => network.v4(member)),
    slice('IPv6', (member) => network.v6(member)),
  ];
}
