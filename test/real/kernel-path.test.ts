// UDP by the kernel, with real nftables and real traffic between namespaces.

import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import {
  answerDatagrams,
  askByConnections,
  askByDatagrams,
  UDP_MEMBER_PORT,
} from '../support/traffic/datagrams.ts';
import type { Json } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'nft', 'conntrack'], root: true });

const VIP = '10.9.0.100';
const VIP6 = 'fd09::100';
const DNS = 53;
const FLOW_PORT = 40_053;

test.serial('UDP reaches every member, from the address of the load balancer', async (t) => {
  const { host, network } = await started(t);
  await host.write('dns.yaml', dns(['m1', 'm2', 'm3'], network));
  await host.until(
    'it answers',
    async () => (await askByDatagrams(network, VIP, DNS)).by[0]?.startsWith('m') === true,
  );
  const { by, from } = await askByDatagrams(network, VIP, DNS, { count: 60 });
  t.deepEqual([...new Set(by)].sort(), ['m1', 'm2', 'm3']);
  t.deepEqual([...from], [network.v4('a')]);
  t.is((await host.why('default/dns')).verdict, 'served');
  const v6 = await askByDatagrams(network, VIP6, DNS, { count: 30 });
  t.deepEqual([...new Set(v6.by)].sort(), ['m1', 'm2', 'm3']);
});

test.serial('Endpoint churn loses no query but those in flight to the member that goes', async (t) => {
  const { host, network } = await served(t);
  const asking = askByDatagrams(network, VIP, DNS, { count: 300 });
  for (let round = 0; round < 8; round++) {
    await host.write('dns.yaml', dns(round % 2 === 0 ? ['m1', 'm2'] : ['m2', 'm3'], network));
    await host.until('it is carried out', async () => (await host.why('default/dns')).verdict === 'served');
  }
  const { by } = await asking;
  t.is(by.length, 300);
  t.deepEqual(
    by.filter((name) => !name.startsWith('m')),
    [],
  );
});

test.serial(
  'A long flow stays with its member through changes of others, and leaves a member that is gone',
  async (t) => {
    const { host, network } = await served(t);
    const oneFlow = { count: 4_000, isOneFlow: true, timeoutMs: 1_000 };
    const asking = askByDatagrams(network, VIP, DNS, { ...oneFlow, localPort: FLOW_PORT });
    const first = await memberOf(network, host);
    const others = ['m1', 'm2', 'm3'].filter((name) => name !== first);
    await host.write('dns.yaml', dns([first, others[0] ?? ''], network));
    await host.until('it is carried out', async () => (await host.why('default/dns')).verdict === 'served');
    const { by } = await asking;
    t.is(new Set(by).size, 1, `${[...new Set(by)]}`);

    // The flow of a member that is removed goes to another one, although its client never pauses.
    const [member = ''] = by;
    const flow = askByDatagrams(network, VIP, DNS, { count: 4_000, isOneFlow: true, timeoutMs: 1_000 });
    await host.write(
      'dns.yaml',
      dns(
        ['m1', 'm2', 'm3'].filter((name) => name !== member),
        network,
      ),
    );
    const names = (await flow).by;
    t.true(
      names.every((name) => name.startsWith('m')),
      'no query is lost, because the member still answers',
    );
    t.not(names.at(-1), member);
  },
);

test.serial(
  'A Service without a ready member refuses, and serves a client that has asked before',
  async (t) => {
    const { host, network } = await served(t);
    await host.write('dns.yaml', dns([], network));
    await host.until('it refuses', async () => (await askByDatagrams(network, VIP, DNS)).by[0] === 'refused');
    t.is((await askByDatagrams(network, VIP6, DNS)).by[0], 'refused');
    const asking = askByDatagrams(network, VIP, DNS, { count: 3_000, isOneFlow: true, timeoutMs: 1_000 });
    await host.write('dns.yaml', dns(['m1'], network));
    t.is((await asking).by.at(-1), 'm1');
  },
);

test.serial('Source ranges, also five hundred, decide who is answered', async (t) => {
  const { host, network } = await served(t);
  const many = Array.from({ length: 500 }, (_, at) => `172.${16 + (at >> 8)}.${at & 255}.0/24`);
  await host.write('dns.yaml', dns(['m1'], network, { loadBalancerSourceRanges: many }));
  await host.until(
    'the client is refused',
    async () => (await askByDatagrams(network, VIP, DNS)).by[0] === '',
  );
  const with1 = [...many, `${network.v4('client')}/32`];
  await host.write('dns.yaml', dns(['m1'], network, { loadBalancerSourceRanges: with1 }));
  await host.until(
    'the client is answered',
    async () => (await askByDatagrams(network, VIP, DNS)).by[0] === 'm1',
  );
  t.is((await askByDatagrams(network, VIP6, DNS)).by[0], '', 'no range of IPv6 allows its clients');
});

test.serial('Session affinity keeps the flows of a client together', async (t) => {
  const { host, network } = await served(t);
  await host.write('dns.yaml', dns(['m1', 'm2', 'm3'], network, { sessionAffinity: 'ClientIP' }));
  await host.until(
    'all go to one member',
    async () => new Set((await askByDatagrams(network, VIP, DNS, { count: 20 })).by).size === 1,
  );
  t.pass();
});

test.serial('TCP and UDP on one port are one Service', async (t) => {
  const { host, network } = await served(t);
  for (const member of ['m1', 'm2', 'm3']) network.serve(member, UDP_MEMBER_PORT);
  const ports = [
    { name: 'dns', port: DNS, protocol: 'UDP' },
    { name: 'dns-tcp', port: DNS, protocol: 'TCP' },
  ];
  await host.write('dns.yaml', dns(['m1'], network, { ports }));
  await host.until('TCP answers', async () => (await network.whoServes(VIP, DNS)) === 'm1');
  t.is((await askByDatagrams(network, VIP, DNS)).by[0], 'm1');
  const { verdict, reasons } = await host.why('default/dns');
  t.is(verdict, 'served', reasons.join());
});

test.serial('TCP goes to the kernel and back without a failed connection', async (t) => {
  const { host, network } = await served(t);
  for (const member of ['m1', 'm2', 'm3']) network.serve(member, UDP_MEMBER_PORT);
  const web = (engine: string) =>
    dns(['m1', 'm2', 'm3'], network, { ports: [{ name: 'dns-tcp', port: 80 }] }, 'dns', 80, {
      'headgate.io/engine': engine,
    });
  await host.write('dns.yaml', web('haproxy'));
  await host.until('HAProxy answers', async () => (await network.whoServes(VIP, 80)) !== '');
  const asking = askByConnections(network, VIP, 80, 3_000);
  const moved = async (engine: string): Promise<void> => {
    await host.write('dns.yaml', web(engine));
    await host.until(`it is with ${engine}`, async () => {
      const { stdout } = await network.try('a', 'ss', '-Hltn', 'sport', '=', '80');
      return (
        (stdout === '') === (engine === 'kernel') && (await host.why('default/dns')).verdict === 'served'
      );
    });
  };
  for (const engine of ['kernel', 'haproxy', 'kernel']) await moved(engine);
  const answers = await asking;
  t.deepEqual([...new Set(answers)].sort(), ['m1', 'm2', 'm3']);
  const { stdout } = await network.try('a', 'conntrack', '-L', '-p', 'tcp', '--orig-dst', VIP);
  t.regex(
    stdout,
    new RegExp(`src=${network.v4('m1')} dst=${network.v4('a')} `),
    'the kernel has forwarded some',
  );
});

test.serial('A restart of the agent, killed or not, costs no query', async (t) => {
  const { host, network, agent } = await served(t);
  const flowsOf = async (running: typeof agent) =>
    (await running.metrics())('headgate_listener_connections_total', { family: 'v4' });
  await host.until('flows are counted', async () => (await flowsOf(agent)) > 0);
  const before = await flowsOf(agent);
  const asking = askByDatagrams(network, VIP, DNS, { count: 1_500 });
  await agent.kill();
  const second = await host.start();
  await second.stop();
  const third = await host.start();
  const { by } = await asking;
  // Flows between the reading of the counters and the load of the rules are not counted.
  await host.until('no count goes back', async () => (await flowsOf(third)) > before + 1_000);
  t.deepEqual(
    by.filter((name) => !name.startsWith('m')),
    [],
  );
});

test.serial('Rules that another process has removed are back soon, and counted', async (t) => {
  const { network, agent } = await served(t);
  await network.run('a', 'nft', 'flush', 'ruleset');
  await until(
    t,
    'it answers again',
    async () => (await askByDatagrams(network, VIP, DNS)).by[0]?.startsWith('m') === true,
  );
  t.is((await agent.metrics())('headgate_repairs_total', { what: 'rules' }), 1);
  const [, table = ''] =
    /^table ip6 (headgate_[0-9a-f]{8})$/m.exec(await network.run('a', 'nft', 'list', 'tables')) ?? [];
  await network.run('a', 'nft', 'delete', 'table', 'ip6', table);
  await until(
    t,
    'IPv6 answers again',
    async () => (await askByDatagrams(network, VIP6, DNS)).by[0]?.startsWith('m') === true,
  );
});

test.serial('A nft that is killed or stopped costs no change', async (t) => {
  const { host, network } = await served(t);
  for (const signal of ['KILL', 'STOP'] as const) {
    let pids: readonly string[] = [];
    await host.until('nft runs', async () => {
      pids = await nftOf(network);
      return pids.length > 0;
    });
    for (const pid of pids) process.kill(Number(pid), `SIG${signal}`);
    const members = signal === 'KILL' ? ['m2'] : ['m3'];
    await host.write('dns.yaml', dns(members, network));
    await host.until(
      'the change is carried out',
      async () => (await askByDatagrams(network, VIP, DNS)).by[0] === members[0],
    );
    t.is((await host.status()).fault, '');
  }
});

test.serial('A host that does not forward packets is a problem of the Service, until it does', async (t) => {
  const { host, network } = await served(t, ['net.ipv4.ip_forward=0']);
  await host.until('it is reported', async () =>
    /set net\.ipv4\.ip_forward to 1/.test((await host.status()).fault),
  );
  const { problems } = await host.status();
  t.like(problems[0], { object: 'Service default/dns', reason: 'ProtocolNotServed' });
  await network.run('a', 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
  await host.until('the fault is over', async () => (await host.status()).fault === '', 60_000);
  t.true((await askByDatagrams(network, VIP, DNS)).by[0]?.startsWith('m'));
});

test.serial('A thousand UDP Services, and the metrics of each', async (t) => {
  const { host, network, agent } = await served(t);
  const many = Array.from({ length: 1_000 }, (_, at) =>
    dns(['m1', 'm2', 'm3'], network, {}, `dns-${at}`, 1_000 + at),
  );
  await host.write('many.yaml', many.flat());
  await host.until(
    'the last one answers',
    async () => (await askByDatagrams(network, VIP, 1_999)).by[0]?.startsWith('m') === true,
  );
  await askByDatagrams(network, VIP, 1_500, { count: 10 });
  await host.until(
    'new flows are counted',
    async () =>
      (await agent.metrics())('headgate_listener_connections_total', { service: 'dns-500', family: 'v4' }) ===
      10,
  );
  await host.write('dns.yaml', dns(['m2'], network));
  await host.until(
    'a change is carried out',
    async () => (await askByDatagrams(network, VIP, DNS)).by[0] === 'm2',
  );
  t.is((await host.status()).fault, '');
});

/** The process ids of the long-lived nft on the load balancer. */
async function nftOf(network: TestNetwork): Promise<readonly string[]> {
  const { stdout } = await network.try(
    'a',
    'sh',
    '-c',
    `for p in $(ip netns pids ${network.netns('a')}); do tr '\\0' ' ' < /proc/$p/cmdline | grep -q '^nft -i' && echo $p; done`,
  );
  return stdout.split('\n').filter((line) => line !== '');
}

/** The member of the flow from FLOW_PORT. */
async function memberOf(network: TestNetwork, host: TestHost): Promise<string> {
  let name = '';
  await host.until('the flow has an entry', async () => {
    const ofFlow = ['--orig-dst', VIP, '--orig-port-src', String(FLOW_PORT)];
    const { stdout } = await network.try('a', 'conntrack', '-L', '-p', 'udp', ...ofFlow);
    const member = ['m1', 'm2', 'm3'].find((each) => stdout.includes(`src=${network.v4(each)} `));
    name = member ?? '';
    return member !== undefined;
  });
  return name;
}

async function until(t: ExecutionContext, what: string, isTrue: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 15_000; performance.now() < end; ) if (await isTrue()) return;
  t.fail(`Not in time: ${what}`);
}

/** As started(), with the Service. */
async function served(t: ExecutionContext, sysctls: readonly string[] = []) {
  const rig = await started(t);
  for (const sysctl of sysctls) await rig.network.run('a', 'sysctl', '-qw', sysctl);
  await rig.host.write('dns.yaml', dns(['m1', 'm2', 'm3'], rig.network));
  if (sysctls.length === 0)
    await rig.host.until(
      'it answers',
      async () => (await askByDatagrams(rig.network, VIP, DNS)).by[0]?.startsWith('m') === true,
    );
  return rig;
}

function dns(
  members: readonly string[],
  network: TestNetwork,
  spec: Json = {},
  name = 'dns',
  port = DNS,
  annotations: Readonly<Record<string, string>> = {},
): readonly Json[] {
  const ports = [
    { name: 'dns', port: UDP_MEMBER_PORT, protocol: 'UDP' },
    { name: 'dns-tcp', port: UDP_MEMBER_PORT, protocol: 'TCP' },
  ];
  const slice = (addressType: 'IPv4' | 'IPv6', addressOf: (member: string) => string): Json => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${name}-${addressType.toLowerCase()}`,
      labels: { 'kubernetes.io/service-name': name },
    },
    addressType,
    endpoints: members.map((member) => ({ addresses: [addressOf(member)] })),
    ports,
  });
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, annotations: { 'headgate.io/load-balancer-ips': `${VIP},${VIP6}`, ...annotations } },
      spec: {
        type: 'LoadBalancer',
        loadBalancerClass: 'headgate.io/agent',
        ipFamilies: ['IPv4', 'IPv6'],
        ipFamilyPolicy: 'RequireDualStack',
        ports: [{ name: 'dns', port, protocol: 'UDP', targetPort: UDP_MEMBER_PORT }],
        ...spec,
      },
    },
    slice('IPv4', (member) => network.v4(member)),
    slice('IPv6', (member) => network.v6(member)),
  ];
}

/** A load balancer `a` with the VIPs, three members and a client on one network; the agent runs. */
async function started(t: ExecutionContext) {
  const network = await TestNetwork.create(t, ['client', 'a', 'm1', 'm2', 'm3']);
  await network.run('a', 'sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1');
  await network.run('a', 'ip', 'address', 'add', `${VIP}/32`, 'dev', 'eth0');
  await network.run('a', 'ip', 'address', 'add', `${VIP6}/128`, 'dev', 'eth0', 'nodad');
  const kill = new Map(['m1', 'm2', 'm3'].map((member) => [member, answerDatagrams(network, member)]));
  const host = await TestHost.create(t, { flags: ['--netns', network.netns('a')] });
  const agent = await host.start();
  return { host, network, agent, kill };
}
