// Whose address members of the kernel path see: the client's in gateway mode, and one of the load balancer, which may run out of
// ports. With real nftables and real traffic.

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { NEARLY_ALL_FLOWS } from '../../agent/nftables/flows/flow-counts.ts';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { nftFlags } from '../support/host/nft.ts';
import {
  answerDatagrams,
  askByConnections,
  askByDatagrams,
  UDP_MEMBER_PORT,
} from '../support/traffic/datagrams.ts';
import type { Json } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'nft', 'conntrack'], root: true });

/** The agent reads many flows seldom: once a minute while something is wrong. */
const PATIENCE_MS = 150_000;

const VIP = '10.9.0.100';
const VIP6 = 'fd09::100';
const PORT = 53;
const MEMBERS = ['m1', 'm2', 'm3'];

test('Members see the address of the client, over UDP and TCP, IPv4 and IPv6', async (t) => {
  const { network, host } = await served(t);
  for (const [vip, client] of [
    [VIP, network.v4('client')],
    [VIP6, network.v6('client')],
  ] as const) {
    const { by, from } = await askByDatagrams(network, vip, PORT, { count: 40 });
    t.deepEqual([...new Set(by)].sort(), MEMBERS);
    t.deepEqual([...from], [client]);
    const answers = await askByConnections(network, vip, PORT, 40);
    t.deepEqual(
      [...new Set(answers)].sort(),
      MEMBERS.map((member) => `${member} ${client}`),
    );
  }
  t.is((await host.why('default/echo')).verdict, 'served');
});

test('A member, another member and this host are clients, too', async (t) => {
  const { network, host } = await served(t);
  for (const client of ['m1', 'm2', 'a'])
    for (const vip of [VIP, VIP6]) {
      const { by, from } = await askByDatagrams(network, vip, PORT, { count: 20, host: client });
      t.deepEqual([...new Set(by)].sort(), MEMBERS, `${client} asks ${vip}`);
      // The kernel may choose the VIP as the source of IPv6.
      if (vip === VIP) t.deepEqual([...from], [network.v4('a')]);
    }
  await host.write('echo.yaml', echo(network, ['m1']));
  await host.until('only m1 is left', async () =>
    (await askByDatagrams(network, VIP, PORT, { count: 5 })).by.every((name) => name === 'm1'),
  );
  const { by, from } = await askByDatagrams(network, VIP, PORT, { host: 'm1' });
  t.deepEqual([by, [...from]], [['m1'], [network.v4('a')]]);
});

test('A change to gateway mode and back loses no query', async (t) => {
  const { network, host } = await served(t);
  const asking = askByDatagrams(network, VIP, PORT, { count: 1_500 });
  for (const source of ['load-balancer', 'client', 'load-balancer']) {
    await host.write('echo.yaml', echo(network, MEMBERS, source));
    const sees = source === 'client' ? 'client' : 'a';
    await host.until(`members see ${sees}`, async () =>
      (await askByDatagrams(network, VIP, PORT)).from.has(network.v4(sees)),
    );
  }
  const { by, from } = await asking;
  t.deepEqual([...new Set(by)].sort(), MEMBERS);
  t.deepEqual([...from].sort(), [network.v4('client'), network.v4('a')].sort());
});

test('A member whose answers take another way is named, until its route is right', async (t) => {
  const { network, host } = await served(t);
  const gatewayFindings = async (): Promise<readonly string[]> => {
    const { stdout } = await host.command('check');
    return stdout.split('\n').filter((line) => line.includes('gateway mode'));
  };
  t.regex((await gatewayFindings())[0] ?? '', /^ok {3}gateway mode: no flow shows a member/);
  const toClient = [`${network.v4('client')}/32`, 'via', network.v4('a')];
  await network.run('m2', 'ip', 'route', 'delete', ...toClient);
  // A connection that m2 has answered shows for two minutes that its answers come back.
  await network.run('a', 'conntrack', '-F');
  const asking = askByConnections(network, VIP, PORT, 60, 1_000);
  const names = `${network.v4('m2')}:${UDP_MEMBER_PORT}`;
  const message = `Members of TCP port ${PORT} get packets, but none of their answers comes back through this host: ${names}; their route to the clients must lead to this host, or "headgate.io/source-address" be "load-balancer"`;
  await host.until(
    'it is reported',
    async () => (await host.why('default/echo')).problems.length > 0,
    PATIENCE_MS,
  );
  const { problems, verdict } = await host.why('default/echo');
  t.is(verdict, 'served');
  t.deepEqual(
    problems.map((problem) => [problem.reason, problem.message]),
    [['AnswersMissing', message]],
  );
  t.deepEqual(await gatewayFindings(), [`BAD  gateway mode: ${message}`]);
  await network.run('m2', 'ip', 'route', 'add', ...toClient);
  await askByConnections(network, VIP, PORT, 40);
  await host.until(
    'it is over',
    async () => (await host.why('default/echo')).problems.length === 0,
    PATIENCE_MS,
  );
  t.false(
    (await asking).every((answer) => answer.startsWith('m')),
    'some connections failed',
  );
});

// Before the others, because a table with many flows slows each reading of flows on the machine, also of another one.
test.serial('A source address that runs out of ports is a fault, with the remedy', async (t) => {
  const { network, host } = await served(t, 'load-balancer');
  const flows = Array.from({ length: NEARLY_ALL_FLOWS }, (_, at) => {
    const client = `-s 198.51.100.${at % 2 === 0 ? 7 : 8} -d ${VIP} --sport ${10_000 + (at >> 1)} --dport ${PORT}`;
    const member = `-r ${network.v4('m1')} -q ${network.v4('a')} --reply-port-src ${UDP_MEMBER_PORT} --reply-port-dst ${1_024 + at}`;
    return `-I -p udp ${client} ${member} -t 300 -u SEEN_REPLY\n`;
  });
  const file = join(host.directory, 'flows');
  await writeFile(file, flows.join(''));
  await network.run('a', 'conntrack', '-F');
  await network.run('a', 'conntrack', '--load-file', file);
  await host.until('it is reported', async () => (await host.status()).fault !== '', PATIENCE_MS);
  const short = new RegExp(
    `${network.v4('a')} has \\d+ flows of UDP to ${network.v4('m1')} port ${UDP_MEMBER_PORT}, and ports for 64512: add addresses to "anchors"`,
  );
  t.regex((await host.status()).fault, short);
  const { stdout } = await host.command('check');
  t.regex(stdout.split('\n').find((line) => line.startsWith('BAD  source addresses')) ?? '', short);
  await network.try('a', 'conntrack', '-F');
  await host.until('it is over', async () => (await host.status()).fault === '', PATIENCE_MS);
});

/** A load balancer `a` with the VIPs, members whose route to the client leads through it, and a Service that is served. */
async function served(t: ExecutionContext, source = 'client') {
  const network = await TestNetwork.create(t, ['client', 'a', ...MEMBERS]);
  await network.run('a', 'sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1');
  await network.run('a', 'ip', 'address', 'add', `${VIP}/32`, 'dev', 'eth0');
  await network.run('a', 'ip', 'address', 'add', `${VIP6}/128`, 'dev', 'eth0', 'nodad');
  for (const member of MEMBERS) {
    await network.run(member, 'ip', 'route', 'add', `${network.v4('client')}/32`, 'via', network.v4('a'));
    await network.run(member, 'ip', 'route', 'add', `${network.v6('client')}/128`, 'via', network.v6('a'));
    answerDatagrams(network, member);
    answerConnections(network, member);
  }
  const host = await TestHost.create(t, { flags: ['--netns', network.netns('a'), ...nftFlags] });
  await host.start();
  await host.write('echo.yaml', echo(network, MEMBERS, source));
  const isServed = async (): Promise<boolean> =>
    (await askByDatagrams(network, VIP, PORT)).by[0]?.startsWith('m') === true &&
    (await askByConnections(network, VIP, PORT, 1))[0]?.startsWith('m') === true;
  await host.until('it answers', isServed);
  return { network, host };
}

/** A host answers each connection with its name and the address that it came from. */
function answerConnections(network: TestNetwork, host: string): void {
  const answer = `socket.end('${host} ' + socket.remoteAddress.replace('::ffff:', ''))`;
  const script = `require('net').createServer((socket) => { socket.on('error', () => 0); ${answer}; }).listen(${UDP_MEMBER_PORT}, '::')`;
  network.start(host, process.execPath, '-e', script);
}

function echo(network: TestNetwork, members: readonly string[], source = 'client'): readonly Json[] {
  const ports = [
    { name: 'udp', port: PORT, protocol: 'UDP' },
    { name: 'tcp', port: PORT, protocol: 'TCP' },
  ];
  const slice = (addressType: string, addressOf: (member: string) => string): Json => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: addressType.toLowerCase(), labels: { 'kubernetes.io/service-name': 'echo' } },
    addressType,
    endpoints: members.map((member) => ({ addresses: [addressOf(member)] })),
    ports: ports.map((port) => ({ ...port, port: UDP_MEMBER_PORT })),
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
          'headgate.io/source-address': source,
        },
      },
      spec: {
        type: 'LoadBalancer',
        loadBalancerClass: 'headgate.io/agent',
        ipFamilies: ['IPv4', 'IPv6'],
        ipFamilyPolicy: 'RequireDualStack',
        ports,
      },
    },
    slice('IPv4', (member) => network.v4(member)),
    slice('IPv6', (member) => network.v6(member)),
  ];
}
