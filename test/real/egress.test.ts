// Connections that pods open leave from the VIP of their Service, on one host, with real nftables and real traffic.

import { once } from 'node:events';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { type RunningAgent, TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { nftExecutable, nftFlags } from '../support/host/nft.ts';
import { answerDatagrams, askByDatagrams } from '../support/traffic/datagrams.ts';
import {
  answerConnections,
  connectPods,
  type EgressService,
  egressObjects,
  OUTSIDE_PORT,
  sourceOf,
} from '../support/traffic/egress.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'nft', 'conntrack', 'sysctl'], root: true });

const VIP = '10.9.0.100';
const VIP6 = 'fd09::100';
const OTHER = '10.9.0.101';

test('Connections of pods leave from the VIP, over TCP and UDP, IPv4 and IPv6, whether they are ready or not', async (t) => {
  const { network, host, leavesFrom } = await served(t);
  for (const isReady of [true, false]) {
    await host.write('web.yaml', both(network, { isReady }));
    await leavesFrom('pod1', VIP);
    for (const [outside, vip] of [
      [network.v4('client'), VIP],
      [network.v6('client'), VIP6],
    ] as const)
      for (const pod of ['pod1', 'pod2']) {
        t.is(await sourceOf(network, pod, outside), vip);
        const { by, from } = await askByDatagrams(network, outside, OUTSIDE_PORT, { host: pod, count: 5 });
        t.deepEqual([new Set(by), from], [new Set(['client']), new Set([vip])]);
      }
  }
  t.is((await host.why('default/web')).verdict, 'no ready member');
});

test('A pod that comes leaves from the VIP, one that has gone does not, and the last Service takes the rules with it', async (t) => {
  const { network, host, leavesFrom } = await served(t);
  await host.write('web.yaml', both(network, { v4: [network.back4('pod1')], v6: [] }));
  await leavesFrom('pod2', network.back4('pod2'));
  await leavesFrom('pod1', VIP);
  await host.write('web.yaml', both(network));
  await leavesFrom('pod2', VIP);
  await host.write('web.yaml', both(network, { egress: 'false' }));
  await leavesFrom('pod2', network.back4('pod2'));
  await host.until('the tables are gone', async () => !(await tables(network)).includes('_egress'));
  t.is((await host.status()).egress, undefined);
});

test('A pod reaches its own VIP, by HAProxy and by the kernel', async (t) => {
  const { network, host, leavesFrom } = await served(t);
  await answerConnections(network, 'pod1', 8080);
  for (const annotations of [
    {},
    { 'headgate.io/engine': 'kernel' },
    { 'headgate.io/engine': 'kernel', 'headgate.io/source-address': 'client' },
  ]) {
    await host.write('web.yaml', both(network, { v4: [network.back4('pod1')], v6: [], annotations }));
    await leavesFrom('pod1', VIP);
    await host.until('it answers', async () =>
      /^[\d.]+$/.test(await sourceOf(network, 'pod1', VIP, { port: 80 })),
    );
  }
  // A pod that is no member, of a Service in gateway mode.
  const pods = [network.back4('pod1'), network.back4('pod2')];
  const annotations = { 'headgate.io/engine': 'kernel', 'headgate.io/source-address': 'client' };
  await host.write('web.yaml', [
    ...both(network, { v4: [network.back4('pod1')], v6: [], annotations }),
    ...egressObjects({ name: 'batch', vips: [OTHER], v4: pods, isReady: false }),
  ]);
  await leavesFrom('pod2', OTHER);
  t.is(await sourceOf(network, 'pod2', VIP, { port: 80 }), OTHER);
});

test('Errors by ICMP come back to the pod', async (t) => {
  const { network, leavesFrom } = await served(t);
  await leavesFrom('pod1', VIP);
  for (const outside of [network.v4('client'), network.v6('client')])
    t.deepEqual((await askByDatagrams(network, outside, 4_444, { host: 'pod1' })).by, ['refused']);
});

test('A flow that began before the pod had its VIP gets it while it continues', async (t) => {
  const { network, host, leavesFrom } = await served(t);
  await host.write('web.yaml', both(network, { egress: 'false' }));
  await leavesFrom('pod1', network.back4('pod1'));
  // As outside of a test, answers to the pod's own address do not come back: that host does not forward.
  await network.run('client', 'ip', 'route', 'replace', '10.8.0.0/16', 'via', network.v4('server'));
  // Without any rule the kernel knows no flows.
  const rule = 'type filter hook prerouting priority 0; ct state new accept;';
  await network.run('a', nftExecutable, `table ip tracked { chain in { ${rule} }; }`);
  const options = { host: 'pod1', localPort: 45_000, count: 20, isOneFlow: true };
  const asking = askByDatagrams(network, network.v4('client'), OUTSIDE_PORT, options);
  await host.until('it has begun', async () =>
    (await network.run('a', 'conntrack', '-L', '-p', 'udp', '--sport', '45000')).includes('[UNREPLIED]'),
  );
  await host.write('web.yaml', both(network));
  const { by, from } = await asking;
  t.deepEqual([by.at(-1), [...from]], ['client', [VIP]]);
});

test('Connections outlive a flush of all rules by another program, and new ones leave from the VIP within a second', async (t) => {
  const { network, host, leavesFrom } = await served(t);
  await leavesFrom('pod1', VIP);
  const open = await talk(network, 'pod1', network.v4('client'));
  await network.run('a', nftExecutable, 'flush', 'ruleset');
  await host.until('the tables are there', async () => (await tables(network)).includes('_egress {'));
  t.is(await sourceOf(network, 'pod1', network.v4('client')), VIP);
  t.deepEqual(await open.end(), { sources: [VIP], isBroken: false });
});

test('Two pods with the same port, and the kernel path, have a connection each to the same server', async (t) => {
  const { network, host, leavesFrom } = await served(t);
  await leavesFrom('pod1', VIP);
  // The kernel path leaves from the VIP too, which is the first address of this interface.
  const members = [{ addresses: [network.v4('client')] }];
  await host.write('dns.yaml', [
    ...egressObjects({ name: 'dns', vips: [OTHER], egress: '', protocol: 'UDP', port: 53 }).slice(0, 1),
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'dns', labels: { 'kubernetes.io/service-name': 'dns' } },
      addressType: 'IPv4',
      endpoints: members,
      ports: [{ name: 'web', port: OUTSIDE_PORT, protocol: 'UDP' }],
    },
  ]);
  await host.until(
    'it answers',
    async () => (await askByDatagrams(network, OTHER, 53, { host: 'pod1' })).by[0] === 'client',
  );
  const options = { localPort: 40_000, count: 200, isOneFlow: true };
  const [outside, ofPath] = [network.v4('client'), { ...options, host: 'server' }];
  const all = await Promise.all([
    askByDatagrams(network, outside, OUTSIDE_PORT, { ...options, host: 'pod1' }),
    askByDatagrams(network, outside, OUTSIDE_PORT, { ...options, host: 'pod2' }),
    askByDatagrams(network, OTHER, 53, ofPath),
  ]);
  for (const { by } of all) t.deepEqual([...new Set(by)], ['client']);
});

test('A thousand pods leave from the VIP, and a pod of two Services from that of the older one', async (t) => {
  const { network, host, leavesFrom } = await served(t);
  const pods = Array.from({ length: 1_000 }, (_, n) => `10.8.${100 + Math.floor(n / 250)}.${(n % 250) + 1}`);
  const last = pods.at(-1) ?? '';
  await network.run('pod1', 'ip', 'address', 'add', `${last}/32`, 'dev', 'back');
  await network.run('a', 'ip', 'route', 'add', `${last}/32`, 'via', network.back4('pod1'));
  const older = { ...egressObjects({ name: 'older', vips: [OTHER], v4: [last] })[0] };
  const created = (object: object, creationTimestamp: string) => ({
    ...object,
    metadata: { ...(object as { metadata: object }).metadata, creationTimestamp },
  });
  const [service = {}, ...slices] = both(network, { v4: pods, v6: [] });
  const web = [created(service, '2026-01-02T00:00:00Z'), ...slices];
  await host.write('web.yaml', web);
  const from = async () => sourceOf(network, 'pod1', network.v4('client'), { from: last });
  await host.until('the last one leaves from it', async () => (await from()) === VIP);
  t.like((await host.status()).egress, { pods: 1_000, vips: 2, fault: '' });
  await host.write('older.yaml', [
    created(older, '2026-01-01T00:00:00Z'),
    ...egressObjects({ name: 'older', vips: [OTHER], v4: [last] }).slice(1),
  ]);
  await host.until('the older one has it', async () => (await from()) === OTHER);
  await leavesFrom('pod1', network.back4('pod1'));
  const { problems } = await host.why('default/web');
  t.deepEqual(
    problems.map(({ reason, message }) => [reason, message]),
    [
      [
        'EgressConflict',
        `Connections of ${last} leave from ${OTHER}, because Service "default/older", which has the pod too, is older`,
      ],
    ],
  );
  const { stdout } = await host.command('why', [last]);
  t.regex(
    stdout,
    new RegExp(`^Connections of ${last} leave from ${OTHER}, by Service "default/older"$`, 'm'),
  );
});

test('Connections, bytes and pods are counted, over a restart of the agent', async (t) => {
  const { network, host, leavesFrom, agent } = await served(t);
  await leavesFrom('pod1', VIP);
  const ask = () =>
    askByDatagrams(network, network.v4('client'), OUTSIDE_PORT, { host: 'pod1', count: 20, isOneFlow: true });
  const counts = async (of: RunningAgent) => {
    const value = await of.metrics();
    const names = ['connections_total', 'sent_bytes_total', 'received_bytes_total', 'pods'];
    return names.map((name) => value(`headgate_egress_${name}`, { vip: VIP }));
  };
  await ask();
  const before = await counts(agent);
  await ask();
  // A byte, "client" and the pod's source, with the headers of IP and UDP.
  const [sent, received] = [20 * 29, 20 * (28 + `client ${VIP}`.length)];
  let now: readonly number[] = [];
  await host.until('all is counted', async () => {
    now = await counts(agent);
    return (now[1] ?? 0) - (before[1] ?? 0) >= sent;
  });
  t.deepEqual(
    now.map((each, at) => each - (before[at] ?? 0)),
    [1, sent, received, 0],
  );
  t.is(now[3], 2);
  await agent.stop();
  const next = await host.start();
  await host.until('another agent counts on', async () => ((await counts(next))[1] ?? 0) >= (now[1] ?? 0));
});

/** A load balancer `a` with the VIPs, two pods behind it, the server outside, and an agent with the Service `web`. */
async function served(t: ExecutionContext) {
  const network = await TestNetwork.create(t, ['client', 'a', 'pod1', 'pod2', 'server']);
  await connectPods(network, ['a'], ['pod1', 'pod2'], { v4: network.back4('a'), v6: network.back6('a') });
  for (const vip of [`${VIP}/32`, `${OTHER}/32`])
    await network.run('a', 'ip', 'address', 'add', vip, 'dev', 'eth0');
  await network.run('a', 'ip', 'address', 'add', `${VIP6}/128`, 'dev', 'eth0', 'nodad');
  answerDatagrams(network, 'client');
  await answerConnections(network, 'client');
  const host = await TestHost.create(t, { flags: ['--netns', network.netns('a'), ...nftFlags] });
  await host.write('web.yaml', both(network));
  const agent = await host.start();
  const leavesFrom = (pod: string, source: string): Promise<void> =>
    host.until(`${pod} leaves from ${source}`, async () =>
      (await askByDatagrams(network, network.v4('client'), OUTSIDE_PORT, { host: pod })).from.has(source),
    );
  // Pods without a VIP reach the server from their own address.
  await network.run('client', 'ip', 'route', 'add', '10.8.0.0/16', 'via', network.v4('a'));
  return { network, host, agent, leavesFrom };
}

function both(network: TestNetwork, service: Partial<EgressService> = {}) {
  const pods = ['pod1', 'pod2'];
  const v4 = pods.map((pod) => network.back4(pod));
  return egressObjects({ vips: [VIP, VIP6], v4, v6: pods.map((pod) => network.back6(pod)), ...service });
}

async function tables(network: TestNetwork): Promise<string> {
  return network.run('a', nftExecutable, 'list', 'chains');
}

/** A connection on which the pod asks each 50 ms. */
async function talk(network: TestNetwork, pod: string, address: string) {
  const script = `
    const sources = new Set(); let isBroken = false; let answers = 0;
    const socket = require('net').connect(${OUTSIDE_PORT}, '${address}', () => { console.log('open'); setInterval(() => socket.write('?'), 50); });
    socket.on('error', () => 0).on('close', () => { isBroken = true; });
    socket.on('data', (data) => { answers++; for (const each of String(data).trim().split('\\n')) sources.add(each); });
    process.on('SIGTERM', () => {
      const before = answers;
      const end = performance.now() + 10000;
      setInterval(() => {
        if (answers === before && !isBroken && performance.now() < end) return;
        console.log(JSON.stringify({ sources: [...sources], isBroken: isBroken || answers === before }));
        process.exit();
      }, 50);
    });`;
  const child = network.start(pod, process.execPath, '-e', script);
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  while (!output.includes('open')) await once(child.stdout ?? child, 'data');
  return {
    end: async (): Promise<{ readonly sources: readonly string[]; readonly isBroken: boolean }> => {
      child.kill('SIGTERM');
      await once(child, 'close');
      return JSON.parse(output.split('\n')[1] ?? '');
    },
  };
}
