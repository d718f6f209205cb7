// The kernel path in a pair: what a planned failover and the loss of a host cost UDP and TCP.

import { once } from 'node:events';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import type { TestHost } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { nftExecutable, nftFlags } from '../support/host/nft.ts';
import { answerDatagrams, UDP_MEMBER_PORT } from '../support/traffic/datagrams.ts';
import type { Json } from '../support/values/service-objects.ts';
import { areAlike, order, startAgentPair } from '../support/vrrp/agent-pair.ts';

const programs = ['keepalived', 'ip', 'nft', 'conntrack', 'nsenter', 'sysctl', 'openssl'];
const test = requires(ava, { haproxy: true, root: true, programs });

const VIP = '10.9.1.1';
/** The first one is advertised. */
const ANCHORS = ['10.9.0.1', '10.9.0.2', '10.9.0.3'];
const MEMBERS = ['m1', 'm2', 'm3'];
/** How many of each kind. */
const FLOWS = 20;
/** In this time a member repeats a packet that is not acknowledged. */
const END_MS = 15_000;
/** The port on which only members speak. */
const TALK_MEMBER_PORT = 5_354;
/** The same, of two ports of the Service: it is not clear as which of them a member speaks. */
const HUSH_MEMBER_PORT = 5_355;

for (const source of ['load-balancer', 'client'] as const)
  for (const kind of ['planned failover', 'power loss'] as const)
    test.serial(
      `Flows of UDP and connections of TCP continue after a ${kind}, at the same members, which see the ${source}`,
      async (t) => {
        const { network, active, standby, roles } = await startPair(t, source);
        const flows = await startFlows(network, source);
        const spoken = await countHushed(network, standby.name);
        if (kind === 'planned failover') {
          t.like(await order(active.host, 'failover'), { status: 0, ok: true });
          await active.host.until('the roles are exchanged', async () => (await roles()) === 'backup,master');
        } else {
          await network.cut(active.name);
          await standby.host.until('it has taken over', async () => (await roles()).endsWith('master'));
        }
        await standby.host.until('members have spoken first', async () => (await spoken()) >= FLOWS);
        const { udp, tcp, talk, hush } = await flows.end();
        const all = [...udp, ...tcp, ...talk, ...hush];
        t.deepEqual([udp.length, tcp.length, hush.length], [FLOWS, FLOWS, FLOWS]);
        t.is(talk.length, source === 'client' ? FLOWS : 0);
        for (const { before, after } of all) t.is(after, before);
        const members = all.map(({ after }) => after.split(' ')[0]);
        t.deepEqual([...new Set(members)].sort(), MEMBERS);
        const seen = all.map(({ after }) => after.split(' ')[1]);
        t.deepEqual([...new Set(seen)].sort(), source === 'client' ? [network.v4('client')] : ANCHORS);
      },
    );

test.serial('Each host sends nothing to a member that it finds down itself', async (t) => {
  const { network, active, standby, roles } = await startPair(t, 'load-balancer');
  const monitor = {
    'headgate.io/health-monitor': 'tcp',
    'headgate.io/health-monitor-port': String(UDP_MEMBER_PORT),
    'headgate.io/health-monitor-interval': '500ms',
    'headgate.io/timeout-connect': '200ms',
  };
  for (const { host } of [active, standby])
    await host.write('flows.yaml', flowObjects(network, 'load-balancer', monitor));
  const of = `ip saddr ${network.v4(standby.name)} tcp dport ${UDP_MEMBER_PORT} drop`;
  const rules = `table ip deaf {\n chain in { type filter hook input priority 0; ${of}; }\n}`;
  await network.run('m2', 'nft', rules);
  const isUsed = async ({ name }: typeof active): Promise<boolean> =>
    (await network.run(name, 'nft', 'list', 'ruleset')).includes(
      `: ${network.v4('m2')} . ${UDP_MEMBER_PORT}`,
    );
  await standby.host.until('the standby does not use it', async () => !(await isUsed(standby)));
  t.is((await standby.host.why('default/flows')).status, 'DEGRADED');
  t.true(await isUsed(active));
  t.is((await active.host.why('default/flows')).status, 'ONLINE');
  t.is(await roles(), 'master,backup');
});

interface Flow {
  /** The member, and the address and port from which it got the flow, at the start and at the end; '' if the flow broke. */
  readonly before: string;
  readonly after: string;
}

interface Flows {
  readonly udp: readonly Flow[];
  readonly tcp: readonly Flow[];
  /** Connections on which only the member speaks. */
  readonly talk: readonly Flow[];
  /** The same, but the client speaks once, at the end. */
  readonly hush: readonly Flow[];
}

/** Flows of UDP and connections of TCP from the client, each of which asks again and again until the end. */
async function startFlows(network: TestNetwork, source: string) {
  const script = `
    const found = { udp: [], tcp: [], talk: [], hush: [] };
    const hushed = [];
    const flow = (kind) => found[kind][found[kind].push({ before: '', after: '' }) - 1];
    const take = (flow, text) => { flow.before ||= text; flow.after = text; };
    const connect = (port, flow) => require('net').connect(port, '${VIP}')
      .on('error', () => { flow.before = 'broken'; })
      .on('data', (text) => take(flow, String(text).trim().split('\\n').at(-1)));
    for (let n = 0; n < ${FLOWS}; n++) {
      const udp = flow('udp');
      const socket = require('dgram').createSocket('udp4');
      socket.on('error', () => 0);
      socket.on('message', (text) => take(udp, String(text)));
      socket.connect(53, '${VIP}', () => setInterval(() => socket.send('?', () => 0), 50));
      const connection = connect(80, flow('tcp'));
      setInterval(() => connection.write('?\\n'), 50);
      if (${source === 'client'}) connect(81, flow('talk'));
      hushed.push(connect(82, flow('hush')));
    }
    setTimeout(() => console.log('begun'), 1_000);
    process.on('SIGTERM', () => {
      const flows = Object.values(found).flat();
      for (const flow of flows) flow.after = '';
      for (const connection of hushed) connection.write('?\\n');
      const end = performance.now() + ${END_MS};
      setInterval(() => {
        if (performance.now() < end && flows.some(({ after }) => after === '')) return;
        console.log(JSON.stringify(found));
        process.exit();
      }, 100);
    });`;
  const child = network.start('client', process.execPath, '-e', script);
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  while (!output.includes('begun')) await once(child.stdout ?? child, 'data');
  return {
    end: async (): Promise<Flows> => {
      child.kill('SIGTERM');
      await once(child, 'close');
      return JSON.parse(output.split('\n')[1] ?? '');
    },
  };
}

/** Gives the number of packets that came to a host from members that speak first. */
async function countHushed(network: TestNetwork, host: string): Promise<() => Promise<number>> {
  const rule = `tcp sport ${HUSH_MEMBER_PORT} counter`;
  await network.run(
    host,
    nftExecutable,
    `table ip seen { chain in { type filter hook prerouting priority -400; ${rule}; }; }`,
  );
  return async () => {
    const text = await network.run(host, nftExecutable, 'list', 'table', 'ip', 'seen');
    return Number(/counter packets (\d+)/.exec(text)?.[1]);
  };
}

/** The further anchors come while the pair runs. */
async function startPair(t: ExecutionContext, source: string) {
  const pair = await startAgentPair(t, VIP, {
    prepare: (host, network) => prepare(host, network, source),
    flags: nftFlags,
    others: MEMBERS,
  });
  for (const { host, agent, configure } of [pair.standby, pair.active]) {
    await configure({ anchors: ANCHORS });
    agent.signal('SIGHUP');
    const isInRules = async (anchor: string): Promise<boolean> =>
      (await host.stateFile('nftables/headgate.nft')).includes(` : ${anchor}`);
    for (const anchor of ANCHORS) await host.until('it is a source', () => isInRules(anchor));
  }
  await areAlike([pair.active.host, pair.standby.host]);
  return pair;
}

/** Networks whose members run. */
const prepared = new WeakSet<TestNetwork>();

/** The Service of the pair's own check, and one for the flows; the host forwards, and the members' way to the client is the anchor. */
async function prepare(host: TestHost, network: TestNetwork, source: string): Promise<void> {
  for (const side of ['a', 'b']) await network.run(side, 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
  if (!prepared.has(network))
    for (const member of MEMBERS) {
      if (source === 'client')
        await network.run(
          member,
          'ip',
          'route',
          'add',
          `${network.v4('client')}/32`,
          'via',
          ANCHORS[0] ?? '',
        );
      answerDatagrams(network, member);
      const serve = (port: number, speak: string): string =>
        `require('net').createServer((socket) => { socket.on('error', () => 0); const say = () => socket.write('${member} ' + socket.remoteAddress.replace('::ffff:', '') + ' ' + socket.remotePort + '\\n'); ${speak}; }).listen(${port}, '::');`;
      const talk = `const timer = setInterval(say, 50); socket.on('close', () => clearInterval(timer))`;
      const script = [
        serve(UDP_MEMBER_PORT, `socket.on('data', say)`),
        serve(TALK_MEMBER_PORT, talk),
        serve(HUSH_MEMBER_PORT, talk),
      ].join('');
      network.start(member, process.execPath, '-e', script);
    }
  prepared.add(network);
  await host.serve({ name: 'web', address: VIP, port: 8080, members: [network.v4('client')] });
  await host.write('flows.yaml', flowObjects(network, source));
}

function flowObjects(
  network: TestNetwork,
  source: string,
  monitor: Readonly<Record<string, string>> = {},
): readonly Json[] {
  const ports = [
    { name: 'dns', port: 53, protocol: 'UDP', targetPort: UDP_MEMBER_PORT },
    { name: 'echo', port: 80, protocol: 'TCP', targetPort: UDP_MEMBER_PORT },
    { name: 'talk', port: 81, protocol: 'TCP', targetPort: TALK_MEMBER_PORT },
    { name: 'hush', port: 82, protocol: 'TCP', targetPort: HUSH_MEMBER_PORT },
    { name: 'hush-too', port: 83, protocol: 'TCP', targetPort: HUSH_MEMBER_PORT },
  ];
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        name: 'flows',
        annotations: {
          'headgate.io/load-balancer-ips': VIP,
          'headgate.io/engine': 'kernel',
          'headgate.io/source-address': source,
          ...monitor,
        },
      },
      spec: { type: 'LoadBalancer', loadBalancerClass: 'headgate.io/agent', ports },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'flows-1', labels: { 'kubernetes.io/service-name': 'flows' } },
      addressType: 'IPv4',
      endpoints: MEMBERS.map((member) => ({ addresses: [network.v4(member)] })),
      ports: ports.map(({ targetPort, ...port }) => ({ ...port, port: targetPort })),
    },
  ];
}
