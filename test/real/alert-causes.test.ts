// The cause of each alert on real hosts, with a real Prometheus and the project's rules: the cause raises the alert, and
// the remedy in docs/operations.md#alerts ends it. Alerts that last for hours are only raised.

import { once } from 'node:events';
import { appendFile, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { startHaproxy } from '../../agent/haproxy/instance/process.ts';
import { requires } from '../support/basics/requirements.ts';
import { haproxyExecutable } from '../support/haproxy/haproxy.ts';
import { type RunningAgent, signal, TestHost } from '../support/host/agent.ts';
import { Prometheus } from '../support/report/prometheus.ts';
import { type Answering, startAuthorizer } from '../support/traffic/authorizer.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { startMember, startMembers } from '../support/traffic/members.ts';
import { Client } from '../support/traffic/traffic.ts';
import { gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';
import { type Json, MEMBER_PORT, VIP_PORT } from '../support/values/service-objects.ts';
import { order, startAgentPair } from '../support/vrrp/agent-pair.ts';

const test = requires(ava, { haproxy: true, programs: ['prometheus'] });
const paired = requires(ava, {
  haproxy: true,
  root: true,
  programs: ['prometheus', 'keepalived', 'ip', 'nft', 'nsenter', 'sysctl', 'openssl'],
});

const VIP = '10.9.1.1';

test('Reached limits raise alerts, which end after a higher limit or fewer clients', async (t) => {
  const { host, agent, settings } = await hostWith(t, 'maxConnections: 60\n');
  await startMembers(t, host, 2);
  const full = { name: 'full', address: host.address(1), members: [host.address(11)] };
  const queue = { name: 'queue', address: host.address(2), members: [host.address(12)] };
  await host.serve({ ...full, annotations: { 'connection-limit': '20' } });
  const narrow = { 'member-connection-limit': '1', 'timeout-queue': '5m' };
  await host.serve({ ...queue, annotations: narrow });
  const prometheus = await watch(t, agent);
  await host.until('both are served', async () => (await host.answers(1)) && host.answers(2));

  const clients = [...(await connections(t, host, 1, 20)), ...(await connections(t, host, 2, 33))];
  const limits = ['ListenerFull', 'PoolQueue', 'ConnectionsNearLimit'];
  for (const alert of limits) await raised(prometheus, alert);
  await host.serve({ ...full, annotations: { 'connection-limit': '100' } });
  await ended(prometheus, 'ListenerFull');
  await writeFile(settings, 'maxConnections: 600\n');
  agent.signal('SIGHUP');
  await ended(prometheus, 'ConnectionsNearLimit');
  for (const client of clients) client.close();
  await ended(prometheus, 'PoolQueue');
  t.pass();
});

test('Lost members raise alerts, which end with their return or without requests', async (t) => {
  const { host, agent } = await hostWith(t);
  const members = await startMembers(t, host, 3);
  const annotations = {
    mode: 'http',
    'health-monitor': 'tcp',
    'health-monitor-interval': '1s',
    'when-all-down': 'reject',
  };
  for (const [at, { address }] of members.entries())
    await host.serve({ name: `web-${at}`, address: host.address(1 + at), members: [address], annotations });
  const prometheus = await watch(t, agent);
  await host.until('they are served', async () => (await host.answers(1)) && host.answers(3));
  const clients = [1].map((last) => new Asking(t, `http://${host.address(last)}:${VIP_PORT}/`));
  for (const member of members) await member.kill();
  // HAProxy itself answers while all members are down.
  for (const alert of ['ManyPoolsDown', 'PoolDown']) await raised(prometheus, alert);
  await prometheus.until('listener:headgate_http_errors:ratio_rate5m > 0.05');
  await prometheus.until('pool:headgate_connection_errors:ratio_rate5m > 0.05');
  const less =
    'ALERTS{alertname=~"Headgate(MembersFail|MembersDown|ConnectErrors|HttpErrors)",service="web-0"}';
  await prometheus.until(`absent(${less})`);
  for (const { address } of members) {
    const again = await startMember(address, MEMBER_PORT);
    t.teardown(() => again.kill());
  }
  await ended(prometheus, 'ManyPoolsDown');
  await ended(prometheus, 'PoolDown');
  for (const client of clients) await client.stop();
  t.pass();
});

test('In mode tcp a Service without endpoints raises one alert although nothing counts its clients, until a member is back', async (t) => {
  const { host, agent } = await hostWith(t);
  const [member] = await startMembers(t, host, 1);
  const members = [member?.address ?? ''];
  await host.serve({ members });
  const prometheus = await watch(t, agent);
  await host.until('it is served', () => host.answers(1));
  const client = new Asking(t, `http://${host.address(1)}:${VIP_PORT}/`);
  const connections = 'headgate_listener_connections_total{service="web"}';
  await prometheus.until(`increase(${connections}[1h]) > 10`);
  await host.serve({ members: [] });
  await prometheus.until('ALERTS{alertname="HeadgatePoolDown",namespace="default",service="web"}');

  // The series of the simulated outage (test/deploy/outages.ts): no counter moves while clients are refused.
  await prometheus.until('headgate_listener_up{service="web"} == 0');
  await prometheus.until('headgate_pool_active_members{service="web"} == 0');
  const counters = [connections, 'headgate_pool_sessions_total', 'headgate_pool_connection_errors_total'];
  const read = async () =>
    Promise.all(counters.map(async (name) => (await prometheus.query(name)).map(({ value }) => value)));
  await prometheus.until(`${connections} == ${connections} offset 3s`);
  const [before, asked] = [await read(), client.failures];
  await host.until('clients are refused', async () => client.failures >= asked + 50);
  await prometheus.until(`${connections} == ${connections} offset 3s`);
  t.deepEqual(await read(), before);
  t.deepEqual(before[2], [0]);

  const alerts = await prometheus.query('ALERTS');
  t.deepEqual(
    alerts.map(({ metric }) => metric.alertname),
    ['HeadgatePoolDown'],
  );
  await host.serve({ members });
  await ended(prometheus, 'PoolDown');
  await client.stop();
});

test('Members that do not accept, that answer 500, and one of several that is dead raise an alert each', async (t) => {
  const { host, agent } = await hostWith(t);
  const [live] = await startMembers(t, host, 1);
  const dead = [12, 13, 14, 15].map((last) => host.address(last));
  const some = [live?.address ?? '', ...dead];
  const failing = createHttpServer((_, response) => response.writeHead(500).end());
  failing.listen(MEMBER_PORT, host.address(16));
  t.teardown(() => failing.close());
  await once(failing, 'listening');
  await host.serve({ name: 'dead', members: dead });
  await host.serve({ name: 'one-of-three', address: host.address(2), members: some.slice(0, 3) });
  await host.serve({ name: 'one-of-five', address: host.address(3), members: some });
  const http = { name: 'failing', address: host.address(4), annotations: { mode: 'http' } };
  await host.serve({ ...http, members: [host.address(16)] });
  const prometheus = await watch(t, agent);
  await host.until('they are served', () => host.answers(2));
  const clients = [1, 2, 3, 4].map((last) => new Asking(t, `http://${host.address(last)}:${VIP_PORT}/`));
  const expected = {
    MembersFail: 'dead',
    Redispatches: 'one-of-three',
    ConnectErrors: 'one-of-five',
    HttpErrors: 'failing',
  };
  for (const [alert, service] of Object.entries(expected))
    await prometheus.until(`ALERTS{alertname="Headgate${alert}",service="${service}"}`);
  await prometheus.until('count(count by (service) (ALERTS)) == 4 unless count(ALERTS) != 4');
  // The series of the simulated outages.
  await prometheus.until('headgate_pool_active_members{service="dead"} == 4');
  await prometheus.until('rate(headgate_pool_connection_errors_total{service="dead"}[20s]) > 0');
  const errors = await prometheus.query('headgate_pool_connection_errors_total{service="one-of-three"}');
  t.deepEqual(
    errors.map(({ value }) => value),
    [0],
  );
  for (const client of clients) await client.stop();
});

test('An authorization server that is gone, hangs or answers 500 raises its own alert, and its metrics name it', async (t) => {
  const { host, agent } = await hostWith(t);
  const place = { address: host.address(1), port: VIP_PORT };
  const gateway = {
    addresses: [{ type: 'IPAddress', value: place.address }],
    listeners: [{ name: 'http', port: place.port, protocol: 'HTTP' }],
  };
  const answers: Readonly<Record<string, Answering>> = {
    fails: (response) => response.writeHead(500).end(),
    hangs: () => undefined,
    refuses: (response) => response.writeHead(401).end(),
    gone: (response) => response.writeHead(200).end(),
  };
  const web = await startEcho(t, 'web');
  const objects = [...backendJson('web', web)];
  for (const [name, answer] of Object.entries(answers)) {
    const auth = await startAuthorizer(t);
    auth.answer = answer;
    objects.push(
      ...backendJson(name, ...(name === 'gone' ? [] : [auth.place])),
      routeJson(name, [{ name: 'edge' }], {
        hostnames: [`${name}.example`],
        rules: [{ filters: [asksJson(name)], backendRefs: [{ name: 'web', port: 80 }] }],
      }),
    );
  }
  await host.write('objects.yaml', [gatewayClassJson(), gatewayJson('edge', gateway), ...objects]);
  const prometheus = await watch(t, agent);
  const ask = async (name: string): Promise<number> =>
    (await request(place, '/', { headers: { host: `${name}.example` } }).catch(() => undefined))?.status ?? 0;
  await host.until('the routes are served', async () => (await ask('refuses')) === 401);
  const clients = Object.keys(answers).flatMap((name) => Array.from({ length: 3 }, () => name));
  let isOver = false;
  const all = clients.map(async (name) => {
    while (!isOver) {
      const status = await ask(name);
      if (!isOver) t.true([0, 401, 404, 503].includes(status), `${name} ${status}`);
      await delay(20);
    }
  });
  for (const name of ['fails', 'hangs', 'gone'])
    await prometheus.until(`ALERTS{alertname="HeadgateAuthorizerAway",service="${name}"}`);
  await prometheus.until(
    'headgate_pool_response_time_average_seconds{service="refuses",profile=~".*asked.*"} > 0',
  );
  await prometheus.until('headgate_pool_http_responses_total{service="refuses",code="4xx"} > 10');
  await prometheus.until('headgate_listener_refusals_total{service="edge",check="authorization"} > 20');
  const alerts = await prometheus.query('count by (alertname, service) (ALERTS{service!="edge"})');
  isOver = true;
  t.deepEqual(alerts.map(({ metric }) => `${metric.alertname} ${metric.service}`).sort(), [
    'HeadgateAuthorizerAway fails',
    'HeadgateAuthorizerAway gone',
    'HeadgateAuthorizerAway hangs',
  ]);
  await Promise.all(all);
});

test('A stopped HAProxy, changes of files and sockets by other processes, and occupied ports raise alerts', async (t) => {
  const { host, agent } = await hostWith(t);
  const [member] = await startMembers(t, host, 1);
  await host.serve();
  const prometheus = await watch(t, agent);
  const thief = await listener(t, host.address(2));
  await host.serve({ name: 'taken', address: host.address(2), members: [member?.address ?? ''] });
  await raised(prometheus, 'AddressUnavailable');
  thief.close();
  await ended(prometheus, 'AddressUnavailable');
  await host.until('it is served', () => host.answers(2));

  for (let times = 1; times <= 5; times++) {
    await appendFile(host.paths.config, '\n# mine\n');
    await host.until(
      'it is repaired',
      async () => (await agent.metrics())('headgate_repairs_total', { what: 'file' }) === times,
    );
  }
  await raised(prometheus, 'Drift');
  signal(await host.worker(), 'SIGKILL');
  await host.until('HAProxy is back', () => host.answers());
  await raised(prometheus, 'ProcessLost');

  await host.write('broken.yaml', 'kind: [');
  await raised(prometheus, 'ObjectProblems');
  await host.remove('broken.yaml');
  await ended(prometheus, 'ObjectProblems');
  t.pass();
});

test('A missing HAProxy raises an alert, and its start ends the alert', async (t) => {
  const { host, agent: first } = await hostWith(t);
  await startMembers(t, host, 1);
  await host.serve();
  await first.stop();
  const agent = await host.start(['--haproxy-supervisor', 'external']);
  const prometheus = await watch(t, agent);
  for (const pid of [await host.master(), await host.worker()]) signal(pid, 'SIGKILL');
  await raised(prometheus, 'HaproxyDown');
  await prometheus.until('headgate_operating_status{kind="load_balancer",status="OFFLINE"} == 1');
  await prometheus.until('headgate_listener_operating_status{service="web",status="OFFLINE"} == 1');
  await startHaproxy(haproxyExecutable, host.paths, async () => (await host.answers()) || undefined, 30_000);
  await ended(prometheus, 'HaproxyDown');
  await prometheus.until('headgate_operating_status{kind="load_balancer",status="ONLINE"} == 1');
  t.pass();
});

paired(
  'A fault of one host of a pair, or between both, raises an alert, which ends with the fault',
  async (t) => {
    const { active, standby, network } = await startAgentPair(t, VIP, {
      prepare: (host, net) => host.serve({ address: VIP, port: 8080, members: [net.v4('client')] }),
    });
    const targets = [active, standby].map(({ agent }) => new URL(agent.url ?? '').host);
    const prometheus = await Prometheus.start(t, targets);
    await prometheus.until('min(headgate_pair_peer_ready) == 1');

    await order(standby.host, 'maintenance', 'on');
    for (const alert of ['MaintenanceForgotten', 'PeerNotReady']) await raised(prometheus, alert);
    await order(standby.host, 'maintenance', 'off');
    for (const alert of ['MaintenanceForgotten', 'PeerNotReady']) await ended(prometheus, alert);

    await standby.host.serve({ name: 'more', address: '10.9.1.2', port: 8080, members: [] });
    await raised(prometheus, 'PeerBehind');
    await active.host.serve({ name: 'more', address: '10.9.1.2', port: 8080, members: [] });
    await ended(prometheus, 'PeerBehind');

    const haproxy = [await standby.host.master(), await standby.host.worker()];
    for (const pid of haproxy) signal(pid, 'SIGSTOP');
    await raised(prometheus, 'HostLowered');
    for (const pid of haproxy) signal(pid, 'SIGCONT');
    await ended(prometheus, 'HostLowered');

    await network.run(standby.name, 'ip', 'link', 'set', 'eth0', 'down');
    await raised(prometheus, 'VrrpFault');
    await network.run(active.name, 'ip', 'link', 'set', 'eth0', 'down');
    await raised(prometheus, 'NoMaster');
    for (const { name } of [active, standby]) await network.run(name, 'ip', 'link', 'set', 'eth0', 'up');
    for (const alert of ['VrrpFault', 'NoMaster']) await ended(prometheus, alert);

    for (const { name } of [active, standby]) await network.deafen(name);
    await raised(prometheus, 'TwoMasters');
    for (const { name } of [active, standby]) await network.deafen(name, false);
    await ended(prometheus, 'TwoMasters');
    t.pass();
  },
);

/** A Service for routes only, with these members. */
function backendJson(name: string, ...members: readonly string[]): readonly Json[] {
  const port = Number(members[0]?.split(':')[1] ?? 1);
  const ports = [{ name: 'http', port: 80, targetPort: port, protocol: 'TCP' }];
  const labels = { 'kubernetes.io/service-name': name };
  return [
    {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { namespace: 'default', name } },
      spec: { type: 'ClusterIP', clusterIP: '10.96.0.1', ports },
    },
    {
      ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
      metadata: { namespace: 'default', name: `${name}-1`, labels },
      endpoints: members.map((each) => ({ addresses: [each.split(':')[0]], conditions: { ready: true } })),
      ports: [{ name: 'http', port, protocol: 'TCP' }],
    },
  ];
}

/** A filter: the Service is asked. */
function asksJson(name: string): Json {
  return {
    type: 'ExternalAuth',
    externalAuth: { protocol: 'HTTP', backendRef: { name, port: 80 }, http: { path: '/check' } },
  };
}

async function hostWith(
  t: ExecutionContext<unknown>,
  text = '',
): Promise<{ readonly host: TestHost; readonly agent: RunningAgent; readonly settings: string }> {
  const host = await TestHost.create(t);
  const settings = join(host.directory, 'headgate.yaml');
  await writeFile(settings, text);
  return { host, agent: await host.start(['--config', settings]), settings };
}

function watch(t: ExecutionContext<unknown>, agent: RunningAgent): Promise<Prometheus> {
  return Prometheus.start(t, [new URL(agent.url ?? '').host]);
}

/** Pending or firing, because the tests do not wait for the duration of an alert. */
function raised(prometheus: Prometheus, alert: string): Promise<void> {
  return prometheus.until(`ALERTS{alertname="Headgate${alert}"}`);
}

function ended(prometheus: Prometheus, alert: string): Promise<void> {
  return prometheus.until(`absent(ALERTS{alertname="Headgate${alert}"})`);
}

async function connections(
  t: ExecutionContext<unknown>,
  host: TestHost,
  last: number,
  count: number,
): Promise<readonly Client[]> {
  const clients: Client[] = [];
  t.teardown(() => {
    for (const client of clients) client.close();
  });
  for (let at = 0; at < count; at++) clients.push(await Client.connect(host.place(last)));
  return clients;
}

async function listener(t: ExecutionContext<unknown>, address: string): Promise<Server> {
  const server = createServer().listen(VIP_PORT, address);
  t.teardown(() => {
    server.close();
  });
  await once(server, 'listening');
  return server;
}

/** A client that repeats a request, with any answer. */
class Asking {
  readonly #stopping = new AbortController();
  readonly #over: Promise<void>;
  /** Requests without an answer. */
  failures = 0;

  constructor(t: ExecutionContext<unknown>, url: string) {
    this.#over = this.#ask(url);
    t.teardown(() => this.stop());
  }

  stop(): Promise<void> {
    this.#stopping.abort();
    return this.#over;
  }

  async #ask(url: string): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      await fetch(url, { headers: { connection: 'close' } })
        .then((response) => response.text())
        .catch(() => this.failures++);
      await delay(10);
    }
  }
}
