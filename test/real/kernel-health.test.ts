// Health monitors of ports that the kernel forwards: HAProxy checks their members, or the agent itself by UDP, and the kernel
// sends no new flows to members that are down. Real HAProxy, nftables and traffic between namespaces.

import type { ChildProcess } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { inNamespace } from '../../agent/host/namespace.ts';
import { requires } from '../support/basics/requirements.ts';
import { type RunningAgent, TestHost } from '../support/host/agent.ts';
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

const VIP = '10.9.0.100';
const DNS = 53;
const HEALTH_PORT = 8081;
const FLOW_PORT = 40_053;
const LISTENER = 'default:dns:udp:53:v4';
const MEMBERS = ['m1', 'm2', 'm3'] as const;
type Member = (typeof MEMBERS)[number];
/** A fast monitor that reacts to a single check. */
const FAST = {
  'health-monitor-interval': '500ms',
  'health-monitor-timeout': '300ms',
  'health-monitor-rise': '1',
  'health-monitor-fall': '1',
};
const BY_TCP = { ...FAST, 'health-monitor': 'tcp', 'health-monitor-port': String(HEALTH_PORT) };

test.serial(
  'A UDP member that fails its check loses its flows, and gets none until it passes again',
  async (t) => {
    const { host, network, agent, listen, end } = await started(t);
    await host.write('dns.yaml', dns(network, BY_TCP));
    await untilAsked(host, network, 'm1 m2 m3');
    const asked = async (localPort: number): Promise<string> =>
      (await askByDatagrams(network, VIP, DNS, { isOneFlow: true, localPort })).by.join();
    let flow = FLOW_PORT;
    while ((await asked(flow)) !== 'm2') flow++;
    end('m2');
    await untilAsked(host, network, 'm1 m3');
    const { status, listeners } = await host.why('default/dns');
    t.is(status, 'DEGRADED');
    const down = listeners[0]?.members.find(({ name }) => name === `${network.v4('m2')}:${UDP_MEMBER_PORT}`);
    t.like(down, { status: 'ERROR', cause: 'the connection was refused or failed (L4CON)' });
    await host.until('the flow leaves it', async () => ['m1', 'm3'].includes(await asked(flow)));
    const name = `${network.v4('m2')}:${UDP_MEMBER_PORT}`;
    await host.until('the metrics show it', async () => {
      const metric = await agent.metrics();
      return (
        metric('headgate_member_up', { service: 'dns', address: name }) === 0 &&
        metric('headgate_pool_active_members', { service: 'dns' }) === 2
      );
    });
    const metric = await agent.metrics();
    t.true(metric('headgate_member_check_failures_total', { service: 'dns', address: name }) >= 1);
    t.is(metric('headgate_member_up', { service: 'dns' }), 2);
    t.is(
      metric('headgate_member_sessions_total', { service: 'dns' }),
      Number.NaN,
      'HAProxy has no traffic to count',
    );
    listen('m2');
    await untilAsked(host, network, 'm1 m2 m3');
    await host.until('it is told', async () => (await host.why('default/dns')).status === 'ONLINE');
  },
);

test.serial(
  'While all members fail, all of them get new flows, or none if the Service says so',
  async (t) => {
    const { host, network, listen, end } = await started(t);
    await host.write('dns.yaml', dns(network, BY_TCP));
    await untilAsked(host, network, 'm1 m2 m3');
    end('m1');
    await untilAsked(host, network, 'm2 m3');
    end('m2');
    end('m3');
    await untilAsked(host, network, 'm1 m2 m3');
    await host.until('it is told', async () => (await host.why('default/dns')).status === 'ERROR');
    const { problems, verdict } = await host.why('default/dns');
    t.is(verdict, 'members down');
    t.deepEqual(
      problems.map(({ reason }) => reason),
      ['AllMembersDown'],
    );
    await host.write('dns.yaml', dns(network, { ...BY_TCP, 'when-all-down': 'reject' }));
    await untilAsked(host, network, 'refused');
    listen('m3');
    await untilAsked(host, network, 'm3');
  },
);

test.serial(
  'A member that is down stays without new flows while the agent is killed and restarted',
  async (t) => {
    const { host, network, agent, listen, end } = await started(t);
    await host.write('dns.yaml', dns(network, BY_TCP));
    await untilAsked(host, network, 'm1 m2 m3');
    end('m2');
    await untilAsked(host, network, 'm1 m3');
    const down = `# down ${LISTENER} ${network.v4('m2')}:${UDP_MEMBER_PORT}\n`;
    await host.until('it is on disk', async () =>
      (await host.stateFile('nftables/headgate.nft')).includes(down),
    );
    const reloads = await host.reloads();
    await agent.kill();
    // Else a new flow from the port of an old one would go to the member of the old one.
    await network.run('a', 'conntrack', '-F');
    const asking = askByDatagrams(network, VIP, DNS, { count: 3_000 });
    await host.start();
    await untilAsked(host, network, 'm1 m3');
    t.false((await asking).by.includes('m2'));
    t.is(await host.reloads(), reloads);
    listen('m2');
    await untilAsked(host, network, 'm1 m2 m3');
  },
);

test.serial(
  'HAProxy is reloaded for the monitor of a kernel port, not for its endpoints, and not for a port without one',
  async (t) => {
    const { host, network, end } = await started(t);
    await host.write('dns.yaml', dns(network, {}));
    await untilAsked(host, network, 'm1 m2 m3');
    t.false((await host.config()).includes(LISTENER));
    t.is(await host.reloads(), 0);
    await host.write('dns.yaml', dns(network, BY_TCP));
    await host.until('HAProxy checks them', async () => (await checked(host)).length === 3);
    t.is(await host.reloads(), 1);
    end('m3');
    await host.write('dns.yaml', dns(network, BY_TCP, ['m1', 'm3']));
    await untilAsked(host, network, 'm1');
    t.is((await checked(host)).length, 2);
    await host.write('dns.yaml', dns(network, BY_TCP, ['m2', 'm3'], { sessionAffinity: 'ClientIP' }));
    await untilAsked(host, network, 'm2');
    t.is(await host.reloads(), 1);
    await host.write('dns.yaml', dns(network, {}));
    await host.until('HAProxy has none of them', async () => (await checked(host)).length === 0);
    await untilAsked(host, network, 'm1 m2 m3');
    t.is((await host.status()).fault, '');
  },
);

test.serial('TCP connections that the kernel forwards go to members that answer a request', async (t) => {
  const { host, network, agent, end } = await started(t);
  for (const member of MEMBERS) network.serve(member, UDP_MEMBER_PORT);
  const web = (engine: string) =>
    dns(network, { ...BY_TCP, engine }, MEMBERS, { ports: [{ name: 'dns-tcp', port: 80 }] });
  const asked = async () => [...new Set(await askByConnections(network, VIP, 80, 60))].sort().join(' ');
  await host.write('dns.yaml', web('kernel'));
  await host.until('all answer', async () => (await asked()) === 'm1 m2 m3');
  const { stdout } = await network.try('a', 'ss', '-Hltn', 'sport', '=', '80');
  t.is(stdout, '', 'HAProxy does not listen');
  end('m1');
  await host.until('two answer', async () => (await asked()) === 'm2 m3');
  // With another engine, what is known about the members stays.
  const asking = askByConnections(network, VIP, 80, 4_000);
  let hasSlots = false;
  for (const engine of ['haproxy', 'kernel']) {
    await host.write('dns.yaml', web(engine));
    await host.until(`it is with ${engine}`, async () => {
      const listening = await network.try('a', 'ss', '-Hltn', 'sport', '=', '80');
      const rules = await network.run('a', 'nft', 'list', 'ruleset');
      hasSlots ||= rules.includes(`: ${network.v4('m1')} . ${UDP_MEMBER_PORT}`);
      const isServed = (await host.why('default/dns')).verdict === 'served';
      return (listening.stdout === '') === (engine === 'kernel') && isServed;
    });
  }
  t.false(hasSlots);
  t.deepEqual([...new Set(await asking)].sort(), ['m2', 'm3']);
  // The next agent does not take a backend that HAProxy only checks for a port that HAProxy has served.
  await agent.stop();
  const next = await host.start();
  const adoption = () => next.log.find(({ message }) => message === 'Adopted the running HAProxy');
  await host.until('HAProxy is adopted', async () => adoption() !== undefined);
  t.true(adoption()?.ours);
});

for (const landing of [true, false]) {
  test.serial(
    `A Service with TCP and UDP is checked ${landing ? 'in the landing and after it' : 'without a landing'}`,
    async (t) => {
      const { host, network, agent, end, listen } = await started(t, { landing });
      for (const member of MEMBERS) network.serve(member, UDP_MEMBER_PORT);
      end('m2');
      // A Service for the kernel alone does not land.
      await host.write('ntp.yaml', dns(network, BY_TCP, MEMBERS, {}, 'ntp', 123));
      await host.until(
        'the main HAProxy checks it',
        async () => (await checked(host, 'default:ntp:')).length === 3,
      );
      const ports = [
        { name: 'dns', port: DNS, protocol: 'UDP', targetPort: UDP_MEMBER_PORT },
        { name: 'dns-tcp', port: DNS, protocol: 'TCP', targetPort: UDP_MEMBER_PORT },
      ];
      await host.write('dns.yaml', dns(network, BY_TCP, MEMBERS, { ports }));
      await untilAsked(host, network, 'm1 m3');
      const { text } = await agent.get('/metrics');
      const series: readonly string[] = text.match(/^[a-z].*(?= \S+$)/gm) ?? [];
      t.deepEqual(
        series.filter((each, at) => series.indexOf(each) !== at),
        [],
        'The kernel and HAProxy count no listener twice',
      );
      t.regex(text, /^headgate_member_up\{.*port="53",protocol="UDP",pod="m2",address="[0-9.:]+"\} 0$/m);
      t.is((await host.status()).haproxy.landed, landing ? 1 : 0);
      await host.until(
        'the main HAProxy checks them',
        async () => (await checked(host)).length === 3,
        60_000,
      );
      await host.until('nothing is in the landing', async () => (await host.status()).haproxy.landed === 0);
      await untilAsked(host, network, 'm1 m3');
      listen('m2');
      await untilAsked(host, network, 'm1 m2 m3');
      t.is((await host.why('default/dns')).verdict, 'served');
    },
  );
}

test.serial(
  'A probe by UDP finds a closed port, takes silence for health, and is remembered over a restart',
  async (t) => {
    const { host, network, agent, kill } = await started(t, { isInside: true });
    await host.write('dns.yaml', dns(network, { ...FAST, 'health-monitor': 'udp' }));
    await untilAsked(host, network, 'm1 m2 m3');
    // Clients that close their socket before the answer comes refuse it by ICMP, which says nothing about the member.
    const leave = `for _ in $(seq 30); do echo > /dev/udp/${VIP}/${DNS}; sleep 0.1; done`;
    const leaving = network.start('client', 'bash', '--norc', '-c', leave);
    const statuses = new Set<string | undefined>();
    await host.until('the last client is gone', async () => {
      statuses.add((await host.why('default/dns')).status);
      return leaving.exitCode !== null;
    });
    t.deepEqual([...statuses], ['ONLINE']);

    // Beside traffic, nearly all that a member refuses are packets of clients.
    const twice = { ...FAST, 'health-monitor': 'udp', 'health-monitor-fall': '2' };
    await host.write('dns.yaml', dns(network, twice));
    const member = async (name: Member) =>
      (await host.why('default/dns')).listeners[0]?.members.find((each) =>
        each.name.startsWith(`${network.v4(name)}:`),
      );
    let isAsked = true;
    const asking = askByDatagrams(network, VIP, DNS, { count: 5_000, timeoutMs: 5 }).finally(() => {
      isAsked = false;
    });
    kill('m2');
    await host.until('it is down', async () => (await member('m2'))?.status === 'ERROR');
    t.true(isAsked);
    await asking;
    await untilAsked(host, network, 'm1 m3');
    t.like(await member('m2'), {
      status: 'ERROR',
      cause: 'nothing listens on its UDP port (ICMP port unreachable)',
    });
    t.is((await member('m1'))?.status, 'ONLINE');
    t.false((await host.config()).includes(LISTENER), 'HAProxy has no part in it');
    const { stdout } = await network.try('a', 'sh', '-c', 'ss -Hanu | wc -l');
    t.true(Number(stdout) <= 3, `Sockets are closed after each probe: ${stdout}`);
    const read = `fetch('${agent.url}/metrics').then((it) => it.text()).then(console.log)`;
    const text = await network.run('a', process.execPath, '-e', read);
    t.regex(text, new RegExp(`headgate_member_up\\{[^}]*address="${network.v4('m2')}:5353"\\} 0`));
    t.regex(text, new RegExp(`headgate_member_up\\{[^}]*address="${network.v4('m1')}:5353"\\} 1`));

    // The agent alone knows it.
    const down = `# down ${LISTENER} ${network.v4('m2')}:${UDP_MEMBER_PORT}\n`;
    await host.until('it is on disk', async () =>
      (await host.stateFile('nftables/headgate.nft')).includes(down),
    );
    await agent.kill();
    await network.run('a', 'conntrack', '-F');
    await launched(host);
    const { by } = await askByDatagrams(network, VIP, DNS, { count: 300 });
    t.deepEqual([...new Set(by)].sort(), ['m1', 'm3']);
    t.is((await member('m2'))?.status, 'ERROR');

    // A firewall that drops the datagrams, or a member that has nothing to say, is no failure.
    const drop =
      'table ip silent {\n chain in { type filter hook input priority 0; udp dport 5353 drop; }\n}';
    await network.run('m2', 'nft', drop);
    await host.until('it is back', async () => (await member('m2'))?.status === 'ONLINE');
  },
);

test.serial('Probes by UDP are sent from the network namespace of the VIPs', async (t) => {
  const { host, network, kill } = await started(t);
  await host.write('dns.yaml', dns(network, { ...FAST, 'health-monitor': 'udp' }));
  await untilAsked(host, network, 'm1 m2 m3');
  t.deepEqual((await host.why('default/dns')).problems, []);
  kill('m2');
  await untilAsked(host, network, 'm1 m3');
  const member = (await host.why('default/dns')).listeners[0]?.members.find(({ name }) =>
    name.startsWith(`${network.v4('m2')}:`),
  );
  t.like(member, { status: 'ERROR', cause: 'nothing listens on its UDP port (ICMP port unreachable)' });
});

/** HAProxy's servers of a listener that the kernel serves. */
async function checked(host: TestHost, prefix = LISTENER) {
  const servers = await host.servers();
  return servers.filter(({ backend, state }) => backend.startsWith(prefix) && state !== 'maint');
}

/** Waits until exactly these members get new flows, or `refused`. */
async function untilAsked(host: TestHost, network: TestNetwork, names: string): Promise<void> {
  await host.until(`only ${names} are asked`, async () => {
    // The kernel sends few errors of ICMP to one client.
    const count = names === 'refused' ? 1 : 60;
    const { by } = await askByDatagrams(network, VIP, DNS, { count });
    return [...new Set(by)].sort().join(' ') === names;
  });
}

interface Rig {
  readonly landing?: boolean;
  /** The agent runs in the namespace of the load balancer. */
  readonly isInside?: boolean;
}

/** A load balancer `a` with the VIP, three members that answer UDP and a TCP probe, and a client; the agent runs. */
async function started(t: ExecutionContext, { landing = false, isInside = false }: Rig = {}) {
  const network = await TestNetwork.create(t, ['client', 'a', ...MEMBERS]);
  await network.run('a', 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
  await network.run('a', 'ip', 'address', 'add', `${VIP}/32`, 'dev', 'eth0');
  const kills = new Map(MEMBERS.map((member) => [member, answerDatagrams(network, member)]));
  const probed = new Map<Member, ChildProcess>();
  const listen = (member: Member): void => {
    const script = `require('net').createServer((socket) => socket.on('error', () => 0).end()).listen(${HEALTH_PORT}, '::')`;
    probed.set(member, network.start(member, process.execPath, '-e', script));
  };
  for (const member of MEMBERS) listen(member);
  const netns = network.netns('a');
  const flags = ['--landing-rest', '3s', ...(isInside ? [] : ['--netns', netns])];
  const host = await TestHost.create(t, { landing, flags: [...flags, ...nftFlags] });
  if (isInside) {
    const [program, args] = inNamespace(netns, host.headgate, ['"$@"']);
    host.headgate = join(host.directory, 'inside');
    await writeFile(host.headgate, `#!/bin/sh\nexec ${program} ${args.join(' ')}\n`, { mode: 0o755 });
  }
  return {
    host,
    network,
    agent: await (isInside ? launched(host) : host.start()),
    listen,
    end: (member: Member): void => void probed.get(member)?.kill('SIGKILL'),
    /** Ends what answers UDP. */
    kill: (member: Member): void => kills.get(member)?.(),
  };
}

/** An agent in another namespace cannot be asked by HTTP. */
async function launched(host: TestHost): Promise<RunningAgent> {
  const agent = await host.launch();
  await host.until('the agent answers', async () => (await host.status()).haproxy.serving, 60_000);
  return agent;
}

/** A Service with the VIP, its name, and endpoints; annotations without the prefix. */
function dns(
  network: TestNetwork,
  annotations: Readonly<Record<string, string>>,
  members: readonly string[] = MEMBERS,
  spec: Json = {},
  name = 'dns',
  port = DNS,
): readonly Json[] {
  const prefixed = Object.entries(annotations).map(([key, value]) => [`headgate.io/${key}`, value]);
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        name,
        annotations: { 'headgate.io/load-balancer-ips': VIP, ...Object.fromEntries(prefixed) },
      },
      spec: {
        type: 'LoadBalancer',
        loadBalancerClass: 'headgate.io/agent',
        ports: [{ name: 'dns', port, protocol: 'UDP', targetPort: UDP_MEMBER_PORT }],
        ...spec,
      },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      endpoints: members.map((member) => ({
        addresses: [network.v4(member)],
        targetRef: { kind: 'Pod', name: member },
      })),
      ports: [
        { name: 'dns', port: UDP_MEMBER_PORT, protocol: 'UDP' },
        { name: 'dns-tcp', port: UDP_MEMBER_PORT, protocol: 'TCP' },
      ],
    },
  ];
}
