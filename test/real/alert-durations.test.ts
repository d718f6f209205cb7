// The shipped rules with their own `for`, in real outages of ALERT_MINUTES on real hosts: each alert fires once, lasts as long
// as the outage, and ends after it (`make alerts`; docs/operations.md says how long). The outages run at the same time,
// each with a Prometheus of its own that scrapes and evaluates every 15 seconds.

import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { unlink, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { startHaproxy } from '../../agent/haproxy/instance/process.ts';
import { requires } from '../support/basics/requirements.ts';
import { haproxyExecutable } from '../support/haproxy/haproxy.ts';
import { type RunningAgent, signal, TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { nftExecutable, signalNft } from '../support/host/nft.ts';
import { kubeNeeds, startKube } from '../support/kube/kube.ts';
import { createNodeService } from '../support/kube/node-service.ts';
import { courseOf, INTERVAL_S, inMinutes, type Times, untilEnded } from '../support/report/alert-course.ts';
import { Prometheus } from '../support/report/prometheus.ts';
import { answerDatagrams, UDP_MEMBER_PORT } from '../support/traffic/datagrams.ts';
import { startMember, type TestMember } from '../support/traffic/members.ts';
import { SteadyClient } from '../support/traffic/steady-client.ts';
import { Authority, tlsSecret } from '../support/traffic/tls.ts';
import { Client } from '../support/traffic/traffic.ts';
import { gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';
import { MEMBER_PORT, VIP_PORT, webObjects } from '../support/values/service-objects.ts';
import { startAgentPair } from '../support/vrrp/agent-pair.ts';
import { Clients } from '../walks/walk-clients.ts';

const MINUTES = Number(process.env.ALERT_MINUTES ?? 10);
/** Before the outage, so that a rate over minutes has seen clients that are served. */
const LEAD_MS = 120_000;
/** The longest range of a rule, after which its alert ends. */
const MOST_AFTER_MINUTES = 8;
const ALL_MS = LEAD_MS + (MINUTES + MOST_AFTER_MINUTES + 6) * 60_000;

const test = requires(ava, { ...kubeNeeds(), haproxy: true });
const rooted = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['prometheus', 'keepalived', 'ip', 'nft', 'nsenter', 'sysctl', 'openssl'],
});

interface Expected {
  readonly alert: string;
  /** Such as `service="web"`; '' for all. */
  readonly labels: string;
  readonly outage: string;
  /** Seconds of its `for`. */
  readonly waits: number;
  /** Seconds of the range of its rate. */
  readonly range?: number;
  /** Refused, or answered with an error, for the time of the outage. */
  readonly client?: SteadyClient;
}

interface Drill {
  readonly agents: readonly RunningAgent[];
  readonly begin: () => unknown;
  readonly end: () => unknown;
  readonly expected: readonly Expected[];
}

/** Prints a row for each alert. */
async function drill(t: ExecutionContext<unknown>, { agents, begin, end, expected }: Drill): Promise<void> {
  t.timeout(ALL_MS);
  const targets = agents.map(({ url }) => new URL(url ?? '').host);
  const prometheus = await Prometheus.start(t, targets, INTERVAL_S);
  await delay(LEAD_MS);
  t.deepEqual(await prometheus.query('ALERTS{alertstate="firing"}'), [], 'before the outage');
  const began = Date.now();
  await begin();
  await delay(MINUTES * 60_000 - (Date.now() - began));
  const times: Times = { begin: began, end: Date.now() };
  await end();
  const alerts = expected.map(({ alert }) => alert);
  await untilEnded(prometheus, alerts, MOST_AFTER_MINUTES).catch((error: Error) => t.log(error.message));
  for (const each of expected) await judge(t, prometheus, each, times);
  const names = alerts.map((each) => `Headgate${each}`).join('|');
  const others = await prometheus.query(
    `count by (alertname, alertstate) (count_over_time(ALERTS{alertname!~"${names}"}[1h]))`,
  );
  const words = others.map(({ metric }) => `${metric.alertname} ${metric.alertstate}`);
  t.log(`Others: ${words.join(', ') || 'none'}`);
}

async function judge(
  t: ExecutionContext<unknown>,
  prometheus: Prometheus,
  { alert, labels, outage, waits, range = 0, client }: Expected,
  times: Times,
): Promise<void> {
  const { pending, firing, resolved, times: count } = await courseOf(prometheus, alert, labels, times);
  const cells = [outage, inMinutes(pending), inMinutes(firing), inMinutes(resolved)];
  t.log(`| Headgate${alert} | ${cells.join(' | ')} |`);
  const what = `${alert} (${outage})`;
  t.is(count, 1, `${what} fires once`);
  t.true(
    firing !== undefined && firing <= waits + range + 4 * INTERVAL_S,
    `${what} fires in time: ${firing}`,
  );
  t.true((resolved ?? -1) >= 0, `${what} lasts as long as the outage: ${resolved}`);
  t.true((resolved ?? 0) <= range + 6 * INTERVAL_S, `${what} ends after it: ${resolved}`);
  if (client === undefined) return;
  // The last seconds of a long request, and the first ones of an outage, are not counted.
  const during = client.between(times.begin + 15_000, times.end - 5_000);
  const before = client.between(times.begin - LEAD_MS + 10_000, times.begin - 5_000);
  t.log(`  ${during.failures} of ${during.attempts} requests fail in it, ${before.failures} before`);
  t.true(during.failures > 0 && before.failures === 0, what);
}

test('Members and certificates that fail', async (t) => {
  t.timeout(ALL_MS);
  const { host, agent } = await hostWith(t, () => '', ['--route-metrics']);
  const member = memberStarter(t, host);
  const http = { mode: 'http' };
  /** Members that end in the outage, by their address. */
  const doomed = new Map<string, TestMember>();
  const start = async (last: number, dies = false): Promise<string> => {
    const started = await member(last);
    if (dies) doomed.set(started.address, started);
    return started.address;
  };
  const several = async (first: number, count: number, dead: number): Promise<readonly string[]> =>
    Promise.all(Array.from({ length: count }, (_, at) => start(first + at, at < dead)));
  const services = [
    { name: 'tcp-none', members: await several(20, 1, 0), annotations: {} },
    { name: 'http-none', members: await several(21, 1, 0), annotations: http },
    { name: 'tcp-dead', members: await several(22, 2, 2), annotations: {} },
    { name: 'http-dead', members: await several(24, 2, 2), annotations: http },
    { name: 'tcp-five', members: await several(26, 5, 4), annotations: {} },
    { name: 'http-five', members: await several(31, 5, 4), annotations: http },
    { name: 'tcp-three', members: await several(36, 3, 1), annotations: {} },
    { name: 'http-three', members: await several(39, 3, 1), annotations: http },
  ].map((each, at) => ({ ...each, address: host.address(1 + at) }));
  let isFailing = false;
  const failing = createHttpServer((_, response) => {
    response.statusCode = isFailing ? 500 : 200;
    response.end('answer');
  });
  failing.listen(MEMBER_PORT, host.address(42));
  t.teardown(() => failing.close());
  await once(failing, 'listening');
  const errors = {
    name: 'http-500',
    address: host.address(9),
    members: [host.address(42)],
    annotations: http,
  };
  for (const each of [...services, errors]) await host.serve(each);
  // So that the pools that fail are fewer than a quarter of all.
  for (let at = 0; at < 12; at++)
    await host.serve({ name: `well-${at}`, address: host.address(100 + at), members: [host.address(20)] });
  const listeners = [{ name: 'http', port: VIP_PORT, protocol: 'HTTP' }];
  const addresses = [{ type: 'IPAddress', value: host.address(10) }];
  const rules = [{ backendRefs: [{ name: 'http-500', port: VIP_PORT }] }];
  await host.write('gateway.yaml', [
    gatewayClassJson(),
    gatewayJson('edge', { addresses, listeners }),
    routeJson('api', [{ name: 'edge' }], { rules }),
  ]);
  const all = [...services, errors];
  const gateway = { name: 'edge', address: host.address(10) };
  for (const { address } of [...all, gateway])
    await host.until(`${address} is served`, () => host.answers(Number(address.split('.').at(-1))), 60_000);
  const clients = new Map(
    [...all, gateway].map(({ name, address }) => [name, new SteadyClient(t, { address, port: VIP_PORT })]),
  );
  // A second one, because the alerts on errors ask for more than one answer in a second.
  for (const { address } of [errors, gateway]) new SteadyClient(t, { address, port: VIP_PORT });
  const thief = createServer((socket) => socket.on('error', () => undefined).end());
  t.teardown(() => {
    thief.close();
  });

  const authority = await Authority.create(t);
  const shop = await authority.issueUntil('shop.example', new Date(Date.now() + LEAD_MS + 75_000));
  await host.write('secret.yaml', [tlsSecret('shop', shop)]);
  const https = { mode: 'https', 'tls-certificate': 'shop' };
  await host.serve({
    name: 'shop',
    address: host.address(11),
    members: [host.address(20)],
    annotations: https,
  });

  const of = (name: string, alert: string, outage: string, waits: number, range = 0): Expected => {
    const client = alert === 'Redispatches' ? undefined : clients.get(name);
    return { alert, labels: `service="${name}"`, outage, waits, range, ...(client && { client }) };
  };
  await drill(t, {
    agents: [agent],
    begin: async () => {
      for (const { name, ...each } of services)
        if (name.endsWith('-none')) await host.serve({ name, ...each, members: [] });
      for (const each of doomed.values()) await each.kill();
      isFailing = true;
      thief.listen(VIP_PORT, host.address(12));
      await once(thief, 'listening');
      await host.serve({ name: 'taken', address: host.address(12), members: [host.address(20)] });
    },
    end: async () => {
      for (const each of services) if (each.name.endsWith('-none')) await host.serve(each);
      for (const address of doomed.keys()) {
        const again = await startMember(address, MEMBER_PORT);
        t.teardown(() => again.kill());
      }
      isFailing = false;
      thief.close();
      await host.write('secret.yaml', [
        tlsSecret('shop', await authority.issue({ names: ['shop.example'] })),
      ]);
    },
    expected: [
      of('tcp-none', 'PoolDown', 'TCP, scaled to no pod', 120),
      of('http-none', 'PoolDown', 'HTTP, scaled to no pod', 120),
      of('tcp-dead', 'MembersFail', 'TCP, all pods dead but Ready', 60, 180),
      of('http-dead', 'MembersFail', 'HTTP, all pods dead but Ready', 60, 180),
      of('tcp-five', 'ConnectErrors', 'TCP, four of five pods dead', 300, 300),
      of('http-five', 'ConnectErrors', 'HTTP, four of five pods dead', 300, 300),
      of('tcp-three', 'Redispatches', 'TCP, one of three pods dead', 300, 300),
      of('http-three', 'Redispatches', 'HTTP, one of three pods dead', 300, 300),
      of('http-500', 'HttpErrors', 'all pods answer 500', 300, 300),
      { ...of('edge', 'HttpErrors', 'a Gateway, all pods answer 500', 300, 300), labels: 'owner="gateway"' },
      { ...of('edge', 'RouteErrors', 'all pods answer 500', 300, 300), labels: 'route="api"' },
      { ...NO_CLIENT, alert: 'AddressUnavailable', outage: 'the port is taken', waits: 120 },
      // The certificate expires some time after the beginning, and the rule waits a minute.
      { ...NO_CLIENT, alert: 'CertificateExpired', outage: 'a certificate expires', waits: 60, range: 90 },
    ],
  });
});

const NO_CLIENT = { labels: '' };

test('All members of most pools fail their checks', async (t) => {
  t.timeout(ALL_MS);
  const { host, agent } = await hostWith(t);
  const member = memberStarter(t, host);
  const members: TestMember[] = [];
  const annotations = {
    ...{ mode: 'http', 'health-monitor': 'tcp', 'health-monitor-interval': '2s' },
    'when-all-down': 'reject',
  };
  for (const at of [1, 2, 3, 4]) {
    members.push(await member(10 + at));
    await host.serve({
      ...{ name: `web-${at}`, address: host.address(at), annotations },
      members: [host.address(10 + at)],
    });
  }
  for (const at of [1, 2, 3, 4]) await host.until('it is served', () => host.answers(at), 60_000);
  const client = new SteadyClient(t, host.place(1));
  t.timeout(ALL_MS);
  await drill(t, {
    agents: [agent],
    begin: () => Promise.all(members.slice(0, 3).map((each) => each.kill())),
    end: async () => {
      for (const { address } of members.slice(0, 3)) {
        const again = await startMember(address, MEMBER_PORT);
        t.teardown(() => again.kill());
      }
    },
    expected: [
      { alert: 'ManyPoolsDown', labels: '', outage: 'three of four pools fail their checks', waits: 120 },
      {
        ...{ alert: 'PoolDown', labels: 'service="web-1"', outage: 'HTTP, its pods fail their checks' },
        ...{ waits: 120, client },
      },
    ],
  });
});

test('An authorization server answers 500', async (t) => {
  t.timeout(ALL_MS);
  const { host, agent } = await hostWith(t);
  await memberStarter(t, host)(11);
  let isAway = false;
  const authorizer = createHttpServer((_, response) => response.writeHead(isAway ? 500 : 200).end());
  authorizer.listen(MEMBER_PORT, host.address(12));
  t.teardown(() => authorizer.close());
  await once(authorizer, 'listening');
  await host.serve({ name: 'web', address: host.address(2), members: [host.address(11)] });
  await host.serve({ name: 'auth', address: host.address(3), members: [host.address(12)] });
  const listeners = [{ name: 'http', port: VIP_PORT, protocol: 'HTTP' }];
  const addresses = [{ type: 'IPAddress', value: host.address(1) }];
  const externalAuth = { protocol: 'HTTP', backendRef: { name: 'auth', port: VIP_PORT }, http: {} };
  const backendRefs = [{ name: 'web', port: VIP_PORT }];
  const rules = [{ filters: [{ type: 'ExternalAuth', externalAuth }], backendRefs }];
  await host.write('gateway.yaml', [
    gatewayClassJson(),
    gatewayJson('edge', { addresses, listeners }),
    routeJson('api', [{ name: 'edge' }], { rules }),
  ]);
  await host.until('it is served', () => host.answers(), 60_000);
  const client = new SteadyClient(t, host.place());
  await drill(t, {
    agents: [agent],
    begin: () => {
      isAway = true;
    },
    end: () => {
      isAway = false;
    },
    expected: [
      {
        ...{
          alert: 'AuthorizerAway',
          labels: 'service="auth"',
          outage: 'an authorization server answers 500',
        },
        ...{ waits: 60, range: 180, client },
      },
    ],
  });
});

test('A pool has no free address', async (t) => {
  t.timeout(ALL_MS);
  const { host, agent, settings } = await hostWith(t, (own) => poolOf(own, 202));
  const pooled = (name: string) => host.write(`${name}.yaml`, webObjects({ name, address: '', members: [] }));
  await pooled('one');
  await drill(t, {
    agents: [agent],
    begin: () => pooled('two'),
    // The address of a Service that goes is held for a while.
    end: async () => {
      await writeFile(settings, poolOf(host, 203));
      agent.signal('SIGHUP');
    },
    expected: [
      { ...NO_CLIENT, alert: 'AddressPoolExhausted', outage: 'the last address is given', waits: 300 },
    ],
  });
});

/** The settings with a pool from address 201 on. */
function poolOf(host: Pick<TestHost, 'address'>, last: number): string {
  return `pools: [{ name: local, blocks: ["${host.address(201)}-${host.address(last)}"] }]\n`;
}

test('HAProxy is gone', async (t) => {
  t.timeout(ALL_MS);
  const { host, agent: first } = await hostWith(t);
  await memberStarter(t, host)(11);
  await host.serve();
  await host.until('it is served', () => host.answers(), 60_000);
  await first.stop();
  const agent = await host.start(['--haproxy-supervisor', 'external']);
  const client = new SteadyClient(t, host.place());
  await drill(t, {
    agents: [agent],
    begin: async () => {
      for (const pid of [await host.master(), await host.worker()]) signal(pid, 'SIGKILL');
    },
    end: () =>
      startHaproxy(haproxyExecutable, host.paths, async () => (await host.answers()) || undefined, 30_000),
    expected: [{ alert: 'HaproxyDown', labels: '', outage: 'HAProxy is killed', waits: 60, client }],
  });
});

test('Connections near the limit', async (t) => {
  t.timeout(ALL_MS);
  const { host, agent } = await hostWith(t, () => 'maxConnections: 60\n');
  // It waits forever, other than a server of HTTP.
  const member = createServer((socket) => socket.on('error', () => undefined));
  member.listen(MEMBER_PORT, host.address(11));
  t.teardown(() => {
    member.close();
  });
  await host.serve();
  const isServed = async () => (await host.why()).verdict === 'served';
  await host.until('it is served', isServed, 60_000);
  const open: Client[] = [];
  t.teardown(() => open.forEach((each) => void each.close()));
  await drill(t, {
    agents: [agent],
    begin: async () => {
      while (open.length < 51) open.push(await Client.connect(host.place()));
    },
    end: () => open.forEach((each) => void each.close()),
    expected: [
      { alert: 'ConnectionsNearLimit', labels: '', outage: '51 of 60 connections are open', waits: 120 },
    ],
  });
});

test('No agent can be scraped', async (t) => {
  t.timeout(ALL_MS);
  const { host, agent } = await hostWith(t);
  await host.serve();
  await drill(t, {
    agents: [agent],
    begin: () => agent.kill(),
    end: () => host.start(['--listen', new URL(agent.url ?? '').host]),
    expected: [{ alert: 'NoAgent', labels: '', outage: 'the only agent is killed', waits: 120 }],
  });
});

test('The API server is away', async (t) => {
  t.timeout(ALL_MS);
  const kube = await startKube(t, { leaseNamespace: true });
  t.teardown(() => kube.stop());
  const host = await TestHost.create(t, { flags: ['--kubeconfig', kube.kubeconfig] });
  t.timeout(ALL_MS);
  await createNodeService(t, kube, host, 'shop');
  const agent = await host.start();
  await host.until('it is served', () => host.answers(), 60_000);
  await drill(t, {
    agents: [agent],
    begin: () => kube.killApiServer(),
    end: () => kube.startApiServer(),
    expected: [{ alert: 'ApiDisconnected', labels: '', outage: 'the API server is killed', waits: 300 }],
  });
});

rooted('The kernel has no rules', async (t) => {
  t.timeout(ALL_MS);
  const network = await TestNetwork.create(t, ['a', 'client', 'm']);
  const flags = ['--netns', network.netns('a')];
  const host = await TestHost.create(t, { flags });
  t.timeout(ALL_MS);
  const broken = join(host.directory, 'nft-is-broken');
  const nft = join(host.directory, 'nft');
  writeFileSync(nft, `#!/bin/sh\n[ ! -e ${broken} ] || exit 139\nexec ${nftExecutable} "$@"\n`, {
    mode: 0o755,
  });
  flags.push('--nft', nft);
  const vip = '10.9.2.1';
  await network.run('a', 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
  await network.run('a', 'ip', 'address', 'add', `${vip}/32`, 'dev', 'eth0');
  t.teardown(answerDatagrams(network, 'm'));
  const ports = [{ name: 'dns', port: 8080, protocol: 'UDP', targetPort: UDP_MEMBER_PORT }];
  const [service = {}, slice = {}] = webObjects({
    ...{ name: 'udp', address: vip, members: [network.v4('m')], spec: { ports } },
  });
  const own = [{ name: 'dns', port: UDP_MEMBER_PORT, protocol: 'UDP' }];
  await host.write('udp.yaml', [service, { ...slice, ports: own }]);
  const agent = await host.start();
  const clients = await Clients.start(network, [{ key: 'default/udp', address: vip }]);
  await host.until('it answers', async () => clients.last('default/udp').join() === 'answer', 60_000);
  await drill(t, {
    agents: [agent],
    begin: async () => {
      writeFileSync(broken, '');
      await signalNft(network, 'KILL');
      await network.run('a', nftExecutable, 'flush', 'ruleset');
    },
    end: async () => {
      t.false(clients.last('default/udp').includes('answer'));
      await unlink(broken);
    },
    expected: [
      { alert: 'NotServed', labels: 'service="udp"', outage: 'UDP, nft ends at each start', waits: 120 },
    ],
  });
});

const VIP = '10.9.1.1';

for (const [alert, outage, begin, end] of [
  ['NoMaster', 'the network of both hosts is down', ['down'], ['up']],
  ['TwoMasters', 'advertisements do not arrive', ['deaf'], ['hears']],
] as const)
  rooted(`VRRP of a pair: ${outage}`, async (t) => {
    t.timeout(ALL_MS);
    const { active, standby, network } = await startAgentPair(t, VIP, {
      prepare: (host, net) => host.serve({ address: VIP, port: 8080, members: [net.v4('client')] }),
    });
    t.timeout(ALL_MS);
    const turn = async (how: string): Promise<void> => {
      for (const { name } of [active, standby])
        if (how === 'deaf' || how === 'hears') await network.deafen(name, how === 'deaf');
        else await network.run(name, 'ip', 'link', 'set', 'eth0', how);
    };
    await drill(t, {
      agents: [active.agent, standby.agent],
      begin: () => turn(begin[0]),
      end: () => turn(end[0]),
      expected: [{ alert, labels: '', outage, waits: 60 }],
    });
  });

async function hostWith(
  t: ExecutionContext<unknown>,
  text: (host: Pick<TestHost, 'address'>) => string = () => '',
  flags: readonly string[] = [],
): Promise<{ readonly host: TestHost; readonly agent: RunningAgent; readonly settings: string }> {
  const host = await TestHost.create(t);
  t.timeout(ALL_MS);
  const settings = join(host.directory, 'headgate.yaml');
  await writeFile(settings, text(host));
  return { host, agent: await host.start(['--config', settings, ...flags]), settings };
}

/** Starts a member at an address of the host; it ends with the test. */
function memberStarter(t: ExecutionContext<unknown>, host: TestHost): (last: number) => Promise<TestMember> {
  return async (last) => {
    const member = await startMember(host.address(last), MEMBER_PORT);
    t.teardown(() => member.kill());
    return member;
  };
}
