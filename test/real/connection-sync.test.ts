// Connections of the kernel path over the loss of a host, with conntrackd and without: those which only a copy of the flows
// can save, because the member speaks, or because their slot has moved since they began.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import type { TestHost } from '../support/host/agent.ts';
import type { TestNetwork } from '../support/host/namespaces.ts';
import { nftExecutable, nftFlags } from '../support/host/nft.ts';
import type { Json } from '../support/values/service-objects.ts';
import { type AgentPair, order, startAgentPair } from '../support/vrrp/agent-pair.ts';

const programs = ['keepalived', 'conntrackd', 'conntrack', 'ip', 'nft', 'nsenter', 'sysctl', 'openssl'];
const test = requires(ava, { haproxy: true, root: true, programs });

const VIP = '10.9.1.1';
const ANCHOR = '10.9.0.1';
const MEMBER_PORT = 9000;
const CONNECTIONS = 50;
/** Longer than the members' pause before they repeat what was lost. */
const PATIENCE_MS = 10_000;
const MEMBERS = ['m1', 'm2', 'm3', 'm4', 'm5'];
/** The first two members are there when the connections begin; the others move most slots. */
const FIRST = MEMBERS.slice(0, 2);
const SYNC = ['--connection-sync'];

for (const kind of ['power loss', 'planned failover'] as const)
  test.serial(
    `With connectionSync no connection whose member speaks breaks over a ${kind}, also if its slot has moved`,
    async (t) => {
      const pair = await startPair(t, SYNC);
      const { network, active, standby, roles } = pair;
      await hearEachOther(pair);
      const connections = await openConnections(network);
      await moveSlots(pair);
      await standby.host.until(
        'the flows are on the standby',
        async () => (await flowsOn(network, standby.name)) >= CONNECTIONS,
      );
      if (kind === 'power loss') await losePower(pair);
      else {
        t.like(await order(active.host, 'failover'), { status: 0, ok: true });
        await active.host.until('the roles are exchanged', async () => (await roles()) === 'backup,master');
      }
      t.deepEqual(await connections.end(), { whole: CONNECTIONS, broken: 0 });
    },
  );

test.serial('Without connectionSync such connections break', async (t) => {
  const pair = await startPair(t, []);
  const connections = await openConnections(pair.network);
  await moveSlots(pair);
  await losePower(pair);
  const { whole, broken } = await connections.end();
  t.log(`${broken} of ${whole + broken} connections broke`);
  t.true(broken > CONNECTIONS / 4);
});

test.serial('Only flows of the kernel path get to the peer, and they end there too', async (t) => {
  const pair = await startPair(t, SYNC);
  const { network, active, standby } = pair;
  await hearEachOther(pair);
  const connections = await openConnections(network);
  await active.host.until(
    'the flows are on the standby',
    async () => (await flowsOn(network, standby.name)) >= CONNECTIONS,
  );
  // HAProxy serves this port.
  t.is(await network.whoServes(VIP, 8080), 'member');
  const copied = await network.run(standby.name, 'conntrack', '-L', '-d', VIP);
  t.false(copied.includes('dport=8080 '), copied);
  await connections.end();
  await standby.host.until('the flows are gone', async () => {
    // A late packet of a connection that has ended makes a flow again.
    await network.try(active.name, 'conntrack', '-D', '-d', VIP);
    return (await flowsOn(network, standby.name)) === 0;
  });
});

test.serial('conntrackd takes messages from the peer alone', async (t) => {
  const pair = await startPair(t, SYNC);
  const { network, active } = pair;
  await hearEachOther(pair);
  const before = await dropped(network, active.name);
  const script = `require('dgram').createSocket('udp4').send('?', 3780, '${network.v4(active.name)}', () => process.exit())`;
  await network.run('client', process.execPath, '-e', script);
  await active.host.until('it is dropped', async () => (await dropped(network, active.name)) > before);
  t.is(await dropped(network, active.name), before + 1);
});

test.serial(
  'A conntrackd that is killed and rules that are removed come back; both go with the setting',
  async (t) => {
    const { network, active } = await startPair(t, SYNC);
    const { host } = active;
    const pid = async (): Promise<number> => (await host.status()).connectionSync?.pid ?? 0;
    const first = await pid();
    t.true(first > 0);
    process.kill(first, 'SIGKILL');
    await host.until('another conntrackd runs', async () => ![0, first].includes(await pid()));
    const tables = async (): Promise<string> => network.run(active.name, nftExecutable, 'list', 'tables');
    await network.run(active.name, nftExecutable, 'flush', 'ruleset');
    await host.until('the rules are there', async () => (await tables()).includes('_sync'));
    const second = await pid();
    await active.agent.stop();
    t.true(isAlive(second), 'it outlives the agent');
    const agent = await host.start(['--connection-sync=false']);
    await host.until('it has ended', async () => !isAlive(second) && !(await tables()).includes('_sync'));
    t.is((await host.status()).connectionSync, undefined);
    await agent.stop();
  },
);

test.serial(
  'headgate check names a kernel that sends no events, and a peer that sends nothing',
  async (t) => {
    const pair = await startPair(t, SYNC);
    const { network, active, standby } = pair;
    await hearEachOther(pair);
    const check = async (): Promise<string> => (await active.host.command('check')).stdout;
    t.regex(
      await check(),
      new RegExp(`^ok {3}conntrackd of ${network.v4(standby.name)} port 3780: sends to this host$`, 'm'),
    );
    await network.run(active.name, 'sysctl', '-qw', 'net.netfilter.nf_conntrack_events=0');
    await network.cut(standby.name);
    const found = await check();
    t.regex(found, /^BAD {2}net\.netfilter\.nf_conntrack_events: is 0,/m);
    t.regex(
      found,
      new RegExp(
        `^BAD {2}conntrackd of ${network.v4(standby.name)} port 3780: sends nothing to this host`,
        'm',
      ),
    );
    await active.host.until(
      'the status says so',
      async () => (await active.host.status()).connectionSync?.isPeerHeard === false,
    );
  },
);

interface Result {
  /** Connections on which data of the same member arrived after the end was asked for. */
  readonly whole: number;
  readonly broken: number;
}

/** Connections on which only the member speaks, every 100 ms. */
async function openConnections(network: TestNetwork): Promise<{ readonly end: () => Promise<Result> }> {
  const script = `
    const all = [];
    const open = () => new Promise((resolve) => {
      const one = { member: '', last: 0, isBroken: false };
      const socket = require('net').connect(80, '${VIP}');
      socket.on('error', () => 0).on('close', () => { one.isBroken = true; resolve(one); });
      socket.setEncoding('utf8').on('data', (text) => {
        const member = text.slice(0, 2);
        one.member ||= member;
        if (one.member !== member) one.isBroken = true;
        one.last = performance.now();
        resolve(one);
      });
    });
    (async () => {
      while (all.length < ${CONNECTIONS}) {
        const one = await open();
        if (!one.isBroken) all.push(one);
        else await new Promise((resolve) => setTimeout(resolve, 100));
      }
      console.log('open');
    })();
    process.on('SIGTERM', () => {
      const since = performance.now();
      const isWhole = ({ last, isBroken }) => !isBroken && last > since;
      setInterval(() => {
        const whole = all.filter(isWhole).length;
        if (whole < all.length && performance.now() - since < ${PATIENCE_MS}) return;
        console.log(JSON.stringify({ whole, broken: all.length - whole }));
        process.exit();
      }, 50);
    });`;
  const child = network.start('client', process.execPath, '-e', script);
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  while (!output.includes('open')) await once(child.stdout ?? child, 'data');
  return {
    end: async () => {
      child.kill('SIGTERM');
      await once(child, 'close');
      return JSON.parse(output.split('\n')[1] ?? '');
    },
  };
}

/** Networks whose members run. */
const prepared = new WeakSet<TestNetwork>();

function startPair(t: ExecutionContext, flags: readonly string[]): Promise<AgentPair> {
  return startAgentPair(t, VIP, { prepare, flags: [...nftFlags, ...flags], others: MEMBERS });
}

/** The Service of the pair's own check, which HAProxy serves, and one of the kernel path at the same VIP. */
async function prepare(host: TestHost, network: TestNetwork): Promise<void> {
  for (const side of ['a', 'b']) await network.run(side, 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
  if (!prepared.has(network))
    for (const member of MEMBERS) {
      const speak = `setInterval(() => socket.write('${member}'), 100)`;
      const script = `require('net').createServer((socket) => { const timer = ${speak}; socket.on('error', () => 0).on('close', () => clearInterval(timer)); }).listen(${MEMBER_PORT}, '::')`;
      network.start(member, process.execPath, '-e', script);
    }
  prepared.add(network);
  await host.serve({ name: 'web', address: VIP, port: 8080, members: [network.v4('client')] });
  await serveMembers(host, network, FIRST);
}

function serveMembers(host: TestHost, network: TestNetwork, members: readonly string[]): Promise<void> {
  const port = { name: 'tcp', protocol: 'TCP' };
  const annotations = { 'headgate.io/load-balancer-ips': VIP, 'headgate.io/engine': 'kernel' };
  const objects: readonly Json[] = [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'flows', annotations },
      spec: {
        type: 'LoadBalancer',
        loadBalancerClass: 'headgate.io/agent',
        ports: [{ ...port, port: 80 }],
      },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'flows-1', labels: { 'kubernetes.io/service-name': 'flows' } },
      addressType: 'IPv4',
      endpoints: members.map((member) => ({ addresses: [network.v4(member)] })),
      ports: [{ ...port, port: MEMBER_PORT }],
    },
  ];
  return host.write('flows.yaml', objects);
}

/** Further members come, so that most slots are those of another member. */
async function moveSlots({ active, standby, network }: AgentPair): Promise<void> {
  for (const { host } of [active, standby]) {
    await serveMembers(host, network, MEMBERS);
    await host.until('all members are served', async () => {
      const { verdict, listeners } = await host.why('default/flows');
      return verdict === 'served' && listeners[0]?.members.length === MEMBERS.length;
    });
  }
}

async function losePower({ active, standby, network, roles }: AgentPair): Promise<void> {
  await network.cut(active.name);
  await standby.host.until('it has taken over', async () => (await roles()).endsWith('master'));
}

/** Waits until each conntrackd receives from the other. */
async function hearEachOther({ active, standby }: AgentPair): Promise<void> {
  for (const { host } of [active, standby])
    await host.until(
      'it hears the peer',
      async () => (await host.status()).connectionSync?.isPeerHeard === true,
    );
}

/** Open connections of the kernel path in the table of a host. */
async function flowsOn(network: TestNetwork, host: string): Promise<number> {
  const { stdout } = await network.try(host, 'conntrack', '-L', '-p', 'tcp', '-d', VIP, '--dport', '80');
  return stdout.split('\n').filter((line) => line.includes('ESTABLISHED') && line.includes(`dst=${ANCHOR}`))
    .length;
}

/** Packets to conntrackd that did not come from the peer. */
async function dropped(network: TestNetwork, host: string): Promise<number> {
  const tables = await network.run(host, nftExecutable, 'list', 'tables', 'inet');
  const [, table = ''] = /table inet (\S+_sync)/.exec(tables) ?? [];
  const text = await network.run(host, nftExecutable, 'list', 'chain', 'inet', table, 'peer');
  return Number(/counter packets (\d+)/.exec(text)?.[1]);
}

function isAlive(pid: number): boolean {
  try {
    // Empty if the process has ended and its parent has not asked for its status yet.
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8') !== '';
  } catch {
    return false;
  }
}
