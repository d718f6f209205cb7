// The kernel path in a pair: what a planned failover and the loss of a host cost UDP and TCP.

import { once } from 'node:events';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import type { TestHost } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { answerDatagrams, UDP_MEMBER_PORT } from '../support/traffic/datagrams.ts';
import type { Json } from '../support/values/service-objects.ts';
import { order, startAgentPair } from '../support/vrrp/agent-pair.ts';

const programs = ['keepalived', 'ip', 'nft', 'conntrack', 'nsenter', 'sysctl', 'openssl'];
const test = requires(ava, { haproxy: true, root: true, programs });

const VIP = '10.9.1.1';
const ANCHOR = '10.9.0.1';
const MEMBERS = ['m1', 'm2', 'm3'];

for (const kind of ['planned failover', 'power loss'] as const)
  test.serial(`Flows of UDP and connections of TCP go on after a ${kind}, at the same members`, async (t) => {
    const { network, active, standby, roles } = await startPair(t);
    const flows = await startFlows(network);
    if (kind === 'planned failover') {
      t.like(await order(active.host, 'failover'), { status: 0, ok: true });
      await active.host.until('the roles are exchanged', async () => (await roles()) === 'backup,master');
    } else {
      await network.cut(active.name);
      await standby.host.until('it has taken over', async () => (await roles()).endsWith('master'));
    }
    const { udp, tcp } = await flows.end();
    t.is(udp.length, 20);
    t.is(tcp.length, 20);
    for (const { before, after, from } of [...udp, ...tcp]) {
      t.is(after, before, 'the same member');
      t.is(from, ANCHOR);
    }
    t.deepEqual([...new Set(udp.map(({ after }) => after))].sort(), MEMBERS);
  });

interface Flow {
  /** The member at the start and at the end; '' if the flow broke. */
  readonly before: string;
  readonly after: string;
  /** The address from which the member got the flow. */
  readonly from: string;
}

/** Twenty flows of UDP and twenty connections of TCP from the client, each of which asks again and again until the end. */
async function startFlows(network: TestNetwork) {
  const script = `
    const found = { udp: [], tcp: [] };
    for (let n = 0; n < 20; n++) {
      const flow = { before: '', after: '', from: '' };
      found.udp.push(flow);
      const socket = require('dgram').createSocket('udp4');
      socket.on('error', () => 0);
      socket.on('message', (text) => take(flow, String(text)));
      socket.connect(53, '${VIP}', () => setInterval(() => socket.send('?', () => 0), 50));
      const other = { before: '', after: '', from: '' };
      found.tcp.push(other);
      const connection = require('net').connect(80, '${VIP}');
      connection.on('error', () => { other.before = 'broken'; });
      connection.on('data', (text) => take(other, String(text).trim().split('\\n').at(-1)));
      setInterval(() => connection.write('?\\n'), 50);
    }
    const take = (flow, text) => { const [name, from] = text.split(' '); flow.before ||= name; flow.after = name; flow.from = from; };
    setTimeout(() => console.log('begun'), 1_000);
    process.on('SIGTERM', () => {
      for (const flow of [...found.udp, ...found.tcp]) flow.after = '';
      setTimeout(() => { console.log(JSON.stringify(found)); process.exit(); }, 3_000);
    });`;
  const child = network.start('client', process.execPath, '-e', script);
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  while (!output.includes('begun')) await once(child.stdout ?? child, 'data');
  return {
    end: async (): Promise<{ readonly udp: readonly Flow[]; readonly tcp: readonly Flow[] }> => {
      child.kill('SIGTERM');
      await once(child, 'close');
      return JSON.parse(output.split('\n')[1] ?? '');
    },
  };
}

async function startPair(t: ExecutionContext) {
  return startAgentPair(t, VIP, { prepare, others: MEMBERS });
}

/** Networks whose members run. */
const prepared = new WeakSet<TestNetwork>();

/** The Service of the pair's own check, and one for the flows; the host forwards. */
async function prepare(host: TestHost, network: TestNetwork): Promise<void> {
  for (const side of ['a', 'b']) await network.run(side, 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
  if (!prepared.has(network))
    for (const member of MEMBERS) {
      answerDatagrams(network, member);
      const answer = `socket.write('${member} ' + socket.remoteAddress.replace('::ffff:', '') + '\\n')`;
      const script = `require('net').createServer((socket) => socket.on('error', () => 0).on('data', () => ${answer})).listen(${UDP_MEMBER_PORT}, '::')`;
      network.start(member, process.execPath, '-e', script);
    }
  prepared.add(network);
  await host.serve({ name: 'web', address: VIP, port: 8080, members: [network.v4('client')] });
  await host.write('flows.yaml', flowObjects(network));
}

function flowObjects(network: TestNetwork): readonly Json[] {
  const ports = [
    { name: 'dns', port: 53, protocol: 'UDP' },
    { name: 'echo', port: 80, protocol: 'TCP' },
  ];
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        name: 'flows',
        annotations: { 'headgate.io/load-balancer-ips': VIP, 'headgate.io/engine': 'kernel' },
      },
      spec: { type: 'LoadBalancer', loadBalancerClass: 'headgate.io/agent', ports },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'flows-1', labels: { 'kubernetes.io/service-name': 'flows' } },
      addressType: 'IPv4',
      endpoints: MEMBERS.map((member) => ({ addresses: [network.v4(member)] })),
      ports: ports.map((port) => ({ ...port, port: UDP_MEMBER_PORT })),
    },
  ];
}
