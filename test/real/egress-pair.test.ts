// Connections that pods open, over the loss of the active host of a pair: with conntrackd none ends, and without it none of those
// whose pod speaks and whose port is its own.

import { once } from 'node:events';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import type { TestHost } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { nftExecutable, nftFlags } from '../support/host/nft.ts';
import { answerDatagrams } from '../support/traffic/datagrams.ts';
import { answerConnections, egressObjects, OUTSIDE_PORT } from '../support/traffic/egress.ts';
import { order, startAgentPair } from '../support/vrrp/agent-pair.ts';

const programs = ['keepalived', 'conntrackd', 'conntrack', 'ip', 'nft', 'nsenter', 'sysctl', 'openssl'];
const test = requires(ava, { haproxy: true, root: true, programs });

const VIP = '10.9.1.1';
const ANCHOR = '10.9.0.1';
const PODS = ['p1', 'p2', 'p3'];
/** The server speaks, and the pod only acknowledges. */
const TALK_PORT = 5_354;
/** In this time a server repeats a packet that is not acknowledged. */
const END_MS = 15_000;

test.serial('With connectionSync none of 300 flows of pods ends by a power loss', async (t) => {
  const pair = await startPair(t, ['--connection-sync']);
  const { network, active, standby, roles } = pair;
  for (const { host } of [active, standby])
    await host.until(
      'the peer is heard',
      async () => (await host.status()).connectionSync?.isPeerHeard === true,
    );
  const flows = await openFlows(network, { asking: 40, talking: 30, datagrams: 30 });
  const copied = async (): Promise<number> =>
    (await network.run(standby.name, 'conntrack', '-L', '-q', VIP)).split('\n').filter(Boolean).length;
  await standby.host.until('the flows are on the standby', async () => (await copied()) >= 300);
  const began = performance.now();
  await network.cut(active.name);
  await standby.host.until('it has taken over', async () => (await roles()).endsWith('master'));
  t.log(`the standby was master after ${Math.round(performance.now() - began)} ms`);
  t.deepEqual(await flows.end(), { whole: 300, broken: 0, sources: [VIP] });
});

for (const kind of ['planned failover', 'power loss'] as const)
  test.serial(
    `Without it none of 300 flows ends by a ${kind} whose pods speak with ports of their own`,
    async (t) => {
      const { network, active, standby, roles } = await startPair(t, []);
      const flows = await openFlows(network, { asking: 70, talking: 0, datagrams: 30 });
      if (kind === 'power loss') await network.cut(active.name);
      else t.like(await order(active.host, 'failover'), { status: 0, ok: true });
      await standby.host.until('it has taken over', async () => (await roles()).endsWith('master'));
      t.deepEqual(await flows.end(), { whole: 300, broken: 0, sources: [VIP] });
    },
  );

interface Ended {
  /** Flows with an answer after the end was asked for, from the VIP as before. */
  readonly whole: number;
  readonly broken: number;
  readonly sources: readonly string[];
}

/** So many flows of each pod. Pods have ports apart, as most have by chance. */
async function openFlows(
  network: TestNetwork,
  { asking, talking, datagrams }: Readonly<Record<'asking' | 'talking' | 'datagrams', number>>,
): Promise<{ readonly end: () => Promise<Ended> }> {
  const all = await Promise.all(
    PODS.map(async (pod, at) => {
      const firstPort = 40_000 + at * 5_000;
      const script = `
        const flows = [];
        const outside = '${network.v4('client')}';
        const flow = () => flows[flows.push({ sources: new Set(), last: 0, isBroken: false }) - 1];
        const took = (flow, text) => { flow.last = performance.now(); for (const each of String(text).trim().split('\\n')) flow.sources.add(each.split(' ').at(-1)); };
        const connect = (port, localPort) => new Promise((resolve) => {
          const one = flow();
          const socket = require('net').connect({ host: outside, port, localPort });
          socket.on('error', () => 0).on('close', () => { one.isBroken = true; resolve(); });
          socket.on('data', (text) => { took(one, text); resolve(socket); });
        });
        (async () => {
          for (let n = 0; n < ${asking}; n++) {
            const socket = await connect(${OUTSIDE_PORT}, ${firstPort} + n);
            setInterval(() => socket?.write('?'), 100);
          }
          for (let n = 0; n < ${talking}; n++) await connect(${TALK_PORT}, ${firstPort + 1_000} + n);
          for (let n = 0; n < ${datagrams}; n++) {
            const one = flow();
            const socket = require('dgram').createSocket('udp4').on('error', () => 0).on('message', (text) => took(one, text));
            socket.bind(${firstPort + 2_000} + n, () => setInterval(() => socket.send('?', ${OUTSIDE_PORT}, outside), 100));
          }
          const wait = setInterval(() => {
            if (flows.some(({ last }) => last === 0)) return;
            clearInterval(wait);
            console.log('open');
          }, 20);
        })();
        process.on('SIGTERM', () => {
          const since = performance.now();
          const isWhole = ({ last, isBroken }) => !isBroken && last > since;
          setInterval(() => {
            const whole = flows.filter(isWhole).length;
            if (whole < flows.length && performance.now() - since < ${END_MS}) return;
            const sources = [...new Set(flows.flatMap((each) => [...each.sources]))];
            console.log(JSON.stringify({ whole, broken: flows.length - whole, sources }));
            process.exit();
          }, 50);
        });`;
      const child = network.start(pod, process.execPath, '-e', script);
      let output = '';
      child.stdout?.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
      while (!output.includes('open')) await once(child.stdout ?? child, 'data');
      return async (): Promise<Ended> => {
        child.kill('SIGTERM');
        await once(child, 'close');
        return JSON.parse(output.split('\n')[1] ?? '');
      };
    }),
  );
  return {
    end: async () => {
      const ended = await Promise.all(all.map((end) => end()));
      const sum = (of: 'whole' | 'broken') => ended.reduce((total, each) => total + each[of], 0);
      const sources = [...new Set(ended.flatMap((each) => each.sources))];
      return { whole: sum('whole'), broken: sum('broken'), sources };
    },
  };
}

async function startPair(t: ExecutionContext, flags: readonly string[]) {
  const pair = await startAgentPair(t, VIP, {
    prepare,
    flags: [...nftFlags, ...flags],
    others: PODS,
    isServed: async (network) => (await network.whoServes(VIP, 8080)) === 'member',
  });
  const { network, active, standby } = pair;
  await answerConnections(network, 'client');
  answerDatagrams(network, 'client');
  const talk = `require('net').createServer((socket) => { const timer = setInterval(() => socket.write(socket.remoteAddress.replace('::ffff:', '') + '\\n'), 100); socket.on('error', () => 0).on('close', () => clearInterval(timer)); }).listen(${TALK_PORT}, '::', () => console.log());`;
  const server = network.start('client', process.execPath, '-e', talk);
  if (server.stdout !== null) await once(server.stdout, 'data');
  for (const { name, host } of [active, standby])
    await host.until('it has the map', async () =>
      (await network.run(name, nftExecutable, 'list', 'ruleset')).includes(`${network.v4('p3')} : ${VIP}`),
    );
  return pair;
}

/** Networks whose pods have their way out. */
const prepared = new WeakSet<TestNetwork>();

async function prepare(host: TestHost, network: TestNetwork): Promise<void> {
  for (const side of ['a', 'b'])
    await network.run(
      side,
      ...(['sysctl', '-qw', 'net.ipv4.ip_forward=1'] as const),
      ...['all', 'eth0'].map((where) => `net.ipv4.conf.${where}.send_redirects=0`),
    );
  if (!prepared.has(network))
    for (const pod of PODS)
      await network.run(pod, 'ip', 'route', 'add', `${network.v4('client')}/32`, 'via', ANCHOR);
  prepared.add(network);
  await host.serve({ name: 'check', address: VIP, port: 8080, members: [network.v4('client')] });
  await host.write(
    'web.yaml',
    egressObjects({ vips: [VIP], port: 81, v4: PODS.map((pod) => network.v4(pod)) }),
  );
}
