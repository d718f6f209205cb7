// Seven faults at once on one agent, each with a client: members that are dead, one of three that is, no pods, a route with a
// missing backend, an address that no host announces, members that fail their monitor, and a nft that ends at each start; one
// more load balancer is well. Prints for each what its client meets, and what each of nine places said of it, how many
// seconds after the fault. Errors: a place stays silent.
// For root, in network, mount and PID namespaces of its own; sre-faults.test.ts starts it.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Deadline } from '../support/basics/deadline.ts';
import { Teardowns } from '../support/basics/teardowns.ts';
import { until } from '../support/basics/until.ts';
import { TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { nftExecutable, signalNft } from '../support/host/nft.ts';
import { createGatewayClass, deployGatewayApi } from '../support/kube/gateway-api.ts';
import { Kube } from '../support/kube/kube.ts';
import { servicePath, slicePath } from '../support/kube/kube-objects.ts';
import { Prometheus } from '../support/report/prometheus.ts';
import { answerDatagrams, UDP_MEMBER_PORT } from '../support/traffic/datagrams.ts';
import { asNew, gatewayJson, routeJson } from '../support/values/gateways.ts';
import type { Json } from '../support/values/service-objects.ts';
import { type Fault, faults } from './fault-table.ts';
import { Clients } from './walk-clients.ts';
import { type PlaceName, places } from './walk-places.ts';

const GATEWAY_API = '/apis/gateway.networking.k8s.io/v1/namespaces/default';
const PORT = 8080;
const MEMBERS = ['10.9.1.1', '10.9.1.2', '10.9.1.3'] as const;
/** Much longer than any place needs; an alert needs some minutes more until it fires, and is pending long before. */
const PATIENCE_S = 45;
const ROUND_MS = 500;

if (process.pid !== 1)
  throw new Error('Start it with: unshare --net --mount --pid --fork --kill-child --mount-proc node FILE');
// The API server wants an address that is not the loopback's; the names of network namespaces end with the mount.
const ADDRESS = '192.0.2.2';
for (const words of [
  'link set lo up',
  'link add eth0 type bridge',
  'link set eth0 up',
  `address add ${ADDRESS}/24 dev eth0`,
])
  execFileSync('ip', words.split(' '));
execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', '/run']);
const rest = new Teardowns();
const t = { teardown: (step: () => unknown) => rest.teardown(step), timeout: () => undefined };
let error: unknown;
await walk().catch((reason: unknown) => {
  error = reason;
});
await rest.run();
if (error !== undefined) throw error;
console.log('The walk is complete');
process.exit(0);

async function walk(): Promise<void> {
  const kube = await Kube.start({ address: ADDRESS });
  rest.teardown(() => kube.stop());
  await kube.must('POST', '/api/v1/namespaces', { metadata: { name: 'headgate-system' } });
  const network = await TestNetwork.create(rest, ['a', 'client', 'm']);
  const flag = join(kube.directory, 'nft-is-broken');
  const nft = join(kube.directory, 'nft');
  // The agent asks for the version and loads files with the same program.
  writeFileSync(
    nft,
    `#!/bin/sh\n[ ! -e ${flag} ] || { echo 'Segmentation fault' >&2; exit 139; }\nexec ${nftExecutable} "$@"\n`,
    { mode: 0o755 },
  );
  const flags = ['--netns', network.netns('a'), '--kubeconfig', kube.kubeconfig, '--nft', nft];
  const host = await TestHost.create(t, { flags });
  await network.run('a', 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
  for (const { address } of faults)
    await network.run('a', 'ip', 'address', 'add', `${address}/32`, 'dev', 'eth0');
  for (const each of MEMBERS) await network.run('m', 'ip', 'address', 'add', `${each}/16`, 'dev', 'eth0');
  const kills = new Map(faults.map(({ key, memberPort }) => [key, serve(network, memberPort)]));
  const answers = answerDatagrams(network, 'm');
  rest.teardown(answers);

  await deployGatewayApi(kube);
  await createGatewayClass(kube, 'edge', 'headgate.io/gateway-controller');
  for (const fault of faults) await create(kube, network, fault);
  const agent = await host.start();
  const prometheus = await Prometheus.start(rest, [new URL(agent.url ?? '').host]);
  const clients = await Clients.start(network, faults);
  const world = { kube, host, agent, prometheus };
  for (const { key } of faults) {
    await until(`${key} is served`, async () => (await host.why(key)).verdict === 'served', { seconds: 60 });
    await until(`${key} answers`, () => clients.last(key).every((each) => each === 'answer'), {
      seen: () => clients.last(key),
    });
  }
  // Two scrapes of a counter are needed before it can grow.
  await prometheus.until('min(count_over_time(headgate_listener_connections_total[1m])) > 2');
  await prometheus.until('min(increase(headgate_pool_sessions_total[1m])) > 0');

  const logFrom = agent.log.length;
  const killed = ['default/dead', 'default/one', 'default/down'].map((key) => kills.get(key));
  const [all = [], [one] = [], checked = []] = killed;
  /** Key → when its fault began. */
  const begun = new Map<string, number>();
  const begin = async (key: string, fault: () => unknown): Promise<void> => {
    begun.set(key, performance.now());
    await fault();
  };
  await begin('default/good', () => undefined);
  await begin('default/dead', () => all.forEach((kill) => void kill()));
  await begin('default/one', () => one?.());
  await begin('default/down', () => checked.forEach((kill) => void kill()));
  await begin('default/empty', () => kube.must('PATCH', slicePath('default', 'empty-1'), { endpoints: [] }));
  const backendRefs = ['routed', 'missing'].map((name) => ({ name, port: 80 }));
  const changed = { spec: { rules: [{ backendRefs }] } };
  await begin('gateway:default/edge', () => kube.must('PATCH', `${GATEWAY_API}/httproutes/api`, changed));
  const lost = `${addressOf('default/nobody')}/32`;
  await begin('default/nobody', () => network.run('a', 'ip', 'address', 'del', lost, 'dev', 'eth0'));
  await begin('default/udp', async () => {
    writeFileSync(flag, '');
    await signalNft(network, 'KILL');
    await network.run('a', nftExecutable, 'flush', 'ruleset');
  });

  const shared = { key: '', logFrom };
  const textOf = ({ key }: Fault, name: PlaceName): Promise<string> => places[name](world, { key, logFrom });
  const names = Object.keys(places) as PlaceName[];
  /** `KEY PLACE` → what it said first, and after how many seconds. */
  const said = new Map<string, { readonly text: string; readonly seconds: number }>();
  /** One round: the answer of a command is for all faults. */
  const look = async (isLast = false): Promise<void> => {
    const [list, status] = await Promise.all([places.list(world, shared), places.status(world, shared)]);
    for (const fault of faults)
      for (const name of names) {
        if (said.has(`${fault.key} ${name}`) || (fault.isWell && !isLast)) continue;
        const whole = name === 'list' ? list : name === 'status' ? status : await textOf(fault, name);
        const text = fault.says[name].exec(whole)?.[0];
        const seconds = (performance.now() - (begun.get(fault.key) ?? 0)) / 1_000;
        if (text !== undefined) said.set(`${fault.key} ${name}`, { text, seconds });
      }
  };
  const silent = (isLast = false) =>
    faults
      .filter(({ isWell }) => isLast || !isWell)
      .flatMap((fault) => names.map((name) => ({ fault, name })))
      .filter(({ fault, name }) => !said.has(`${fault.key} ${name}`));
  for (
    const deadline = new Deadline(PATIENCE_S * 1_000, 5_000);
    silent().length > 0 && !deadline.isOver;
    await delay(ROUND_MS)
  )
    await look();
  await look(true);

  for (const { key, what, address, clients: expected } of faults) {
    const met = () => clients.last(key).join(', ');
    await until(`clients of ${key} get ${expected}`, () => expected.test(met()), { seen: met });
    console.log(`\n${what}: ${key}, ${address}; clients get ${met()}`);
    for (const name of names) {
      const { text = 'silent', seconds = Number.NaN } = said.get(`${key} ${name}`) ?? {};
      console.log(`  ${name.padEnd(10)} ${seconds.toFixed(1).padStart(5)} s  ${text}`);
    }
  }
  for (const { fault, name } of silent(true))
    console.log(`\n${fault.key} ${name}:\n${await textOf(fault, name)}`);
  if (silent(true).length > 0)
    throw new Error(
      `Silent: ${silent(true)
        .map(({ fault, name }) => `${fault.key} ${name}`)
        .join(', ')}`,
    );
}

/** One process for each address of the members. */
function serve(network: TestNetwork, port: number): readonly (() => void)[] {
  return MEMBERS.map((address) => {
    const script = `require('http').createServer((_, r) => r.setHeader('connection', 'close').end('ok')).listen(${port}, '${address}')`;
    const child = network.start('m', process.execPath, '-e', script);
    return () => void child.kill('SIGKILL');
  });
}

function addressOf(wanted: string): string {
  return faults.find(({ key }) => key === wanted)?.address ?? '';
}

async function create(kube: Kube, network: TestNetwork, { key, address, memberPort }: Fault): Promise<void> {
  if (key.startsWith('gateway:')) {
    const listeners = [{ name: 'http', port: PORT, protocol: 'HTTP' }];
    const addresses = [{ type: 'IPAddress', value: address }];
    await kube.must('POST', `${GATEWAY_API}/gateways`, asNew(gatewayJson('edge', { addresses, listeners })));
    const rules = [{ backendRefs: [{ name: 'routed', port: 80 }] }];
    await kube.must(
      'POST',
      `${GATEWAY_API}/httproutes`,
      asNew(routeJson('api', [{ name: 'edge' }], { rules })),
    );
    await service(
      kube,
      'routed',
      { ports: [{ name: 'p', port: 80, targetPort: memberPort }] },
      MEMBERS,
      memberPort,
    );
    return;
  }
  const [, name = ''] = key.split('/');
  const isUdp = name === 'udp';
  const port = { name: 'p', port: PORT, protocol: isUdp ? 'UDP' : 'TCP' };
  const spec = { type: 'LoadBalancer', loadBalancerClass: 'headgate.io/agent', ports: [port] };
  const members = isUdp ? [network.v4('m')] : MEMBERS;
  await service(kube, name, spec, members, isUdp ? UDP_MEMBER_PORT : memberPort, address, port.protocol);
}

async function service(
  kube: Kube,
  name: string,
  spec: Json,
  members: readonly string[],
  memberPort: number,
  address = '',
  protocol = 'TCP',
): Promise<void> {
  const annotations = {
    ...(address !== '' && { 'headgate.io/load-balancer-ips': address }),
    ...(name === 'down' && {
      'headgate.io/health-monitor': 'tcp',
      'headgate.io/health-monitor-interval': '1s',
    }),
  };
  await kube.must('POST', servicePath('default'), { metadata: { name, annotations }, spec });
  await kube.must('POST', slicePath('default'), {
    metadata: { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    endpoints: members.map((each) => ({ addresses: [each], conditions: { ready: true } })),
    ports: [{ name: 'p', port: memberPort, protocol }],
  });
}
