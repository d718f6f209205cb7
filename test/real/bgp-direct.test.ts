// Direct members behind three hosts that announce by BGP: connections continue over the loss of power of a host, and while it
// comes back, without any state that hosts share. With real BIRD, nftables and traffic.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { until } from '../support/basics/until.ts';
import { BgpWorld } from '../support/bgp/bgp-world.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { nftFlags } from '../support/host/nft.ts';

const test = requires(ava, {
  haproxy: true,
  programs: ['ip', 'nft', 'conntrack', 'bird', 'openssl'],
  root: true,
});

const VIP = '198.51.100.7';
const PORT = 8053;
const HOSTS = ['a', 'b', 'c'] as const;
const MEMBERS = ['m1', 'm2', 'm3'];
const CONNECTIONS = 300;

test('Connections to direct members outlive the loss of one of three hosts, and its return', async (t) => {
  t.timeout(180_000);
  const world = await BgpWorld.create(t, {
    hosts: HOSTS,
    group: true,
    others: MEMBERS,
    flags: nftFlags,
    prepare: async (host, network) => host.write('direct.yaml', objects(network)),
  });
  const { network } = world;
  for (const member of MEMBERS) await startMember(network, member);
  for (const name of HOSTS)
    await network.run(name, 'sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1');
  await world.leadsTo(VIP, ...HOSTS);
  const clients = await connect(network);
  t.deepEqual(await clients.ask(), { answered: CONNECTIONS, members: MEMBERS });
  await world.cut('b');
  await world.leadsTo(VIP, 'a', 'c');
  t.deepEqual(await clients.ask(), { answered: CONNECTIONS, members: MEMBERS });
  await world.cut('b', false);
  await world.leadsTo(VIP, ...HOSTS);
  t.deepEqual(await clients.ask(), { answered: CONNECTIONS, members: MEMBERS });
});

/** A member that answers from the VIP, by the router. */
async function startMember(network: TestNetwork, member: string): Promise<void> {
  await network.run(member, 'ip', 'address', 'add', `${VIP}/32`, 'dev', 'lo');
  const script = `require('net').createServer((s) => s.on('error', () => 0).on('data', () => s.write('${member}'))).listen(${PORT}, () => console.log())`;
  const { stdout } = network.start(member, process.execPath, '-e', script);
  if (stdout !== null) await once(stdout, 'data');
}

interface Asked {
  readonly answered: number;
  readonly members: readonly string[];
}

/** Connections of the client, each of which asks its member when ask() is called. */
async function connect(network: TestNetwork): Promise<{ ask(): Promise<Asked> }> {
  const script = `
    const sockets = [];
    const ask = (s) => new Promise((resolve) => {
      if (s.destroyed) return resolve('');
      const over = setTimeout(() => resolve(''), 8000);
      s.once('data', (text) => { clearTimeout(over); resolve(String(text)); });
      s.write('?');
    });
    (async () => {
      for (let n = 0; n < ${CONNECTIONS}; n++)
        await new Promise((resolve) => {
          const s = require('net').connect(${PORT}, '${VIP}', resolve);
          sockets.push(s.on('error', resolve));
        });
      console.log('open');
      process.stdin.on('data', async () => {
        const answers = (await Promise.all(sockets.map(ask))).filter((each) => each !== '');
        console.log(JSON.stringify({ answered: answers.length, members: [...new Set(answers)].sort() }));
      });
    })();`;
  const child = network.start('client', process.execPath, '-e', script);
  await line(child);
  return {
    ask: async () => {
      const answer = line(child);
      child.stdin?.write('?');
      return JSON.parse(await answer) as Asked;
    },
  };
}

async function line({ stdout }: ChildProcess): Promise<string> {
  let text = '';
  stdout?.on('data', (part) => {
    text += String(part);
  });
  await until('the client reports', () => text.includes('\n'), { seconds: 60 });
  stdout?.removeAllListeners('data');
  return text.trim();
}

function objects(network: TestNetwork) {
  const ports = [{ name: 'tcp', port: PORT, protocol: 'TCP' }];
  const annotations = {
    'headgate.io/engine': 'kernel',
    'headgate.io/members': 'direct',
    'headgate.io/load-balancer-ips': VIP,
  };
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'direct', annotations },
      spec: { type: 'LoadBalancer', loadBalancerClass: 'headgate.io/agent', ports },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'direct-1', labels: { 'kubernetes.io/service-name': 'direct' } },
      addressType: 'IPv4',
      endpoints: MEMBERS.map((member) => ({ addresses: [network.v4(member)] })),
      ports,
    },
  ];
}
