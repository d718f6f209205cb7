// Health monitors on a real HAProxy with real members: what marks a member down, what marks it up, and what happens while
// all are down.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { type ProbedMember, startGrpcMember, startProbedMember } from '../support/traffic/probed-members.ts';
import { MEMBER_PORT } from '../support/values/service-objects.ts';
import { makeCredentials } from '../support/vrrp/pair-credentials.ts';

const test = requires(ava, { haproxy: true });

/** A fast monitor that reacts to a single check. */
const FAST = {
  'health-monitor-interval': '500ms',
  'health-monitor-rise': '1',
  'health-monitor-fall': '1',
};
const AT_ONCE = { ...FAST, 'health-monitor-path': '/healthz' };

async function probed(t: ExecutionContext<unknown>, host: TestHost, count: number): Promise<ProbedMember[]> {
  return Promise.all(
    Array.from({ length: count }, (_, at) => startProbedMember(t, host.address(11 + at), MEMBER_PORT)),
  );
}

/** The states `up` and `down` of the members from address 11 on, according to HAProxy's checks. */
async function statesOf(host: TestHost, count: number): Promise<string> {
  const servers = await host.servers();
  const words = Array.from({ length: count }, (_, at) => {
    const name = `${host.address(11 + at)}:${MEMBER_PORT}`;
    return servers.find(({ backend, server }) => backend.endsWith(':v4') && server === name)?.operational;
  });
  return words.join(' ');
}

async function untilStates(host: TestHost, states: string): Promise<void> {
  const count = states.split(' ').length;
  await host.until(states, async () => (await statesOf(host, count)) === states);
}

test('A probe sends the configured request and checks status and body', async (t) => {
  const host = await TestHost.create(t);
  const [good, other] = await probed(t, host, 2);
  if (good === undefined || other === undefined) return t.fail();
  good.answer = { body: '{"status": "UP", "load": 3}' };
  other.answer = good.answer;
  const annotations = {
    ...AT_ONCE,
    'health-monitor': 'http',
    'health-monitor-path': '/healthz?full=1',
    'health-monitor-host': 'www.example.com:8080',
    'health-monitor-expected-codes': '200',
    'health-monitor-expected-body': '"status": "UP"',
    'health-monitor-expected-body-pattern': '"load": [0-9]\\}$',
    'health-monitor-timeout': '300ms',
  };
  await host.serve({ members: [host.address(11), host.address(12)], annotations });
  await host.start();
  await host.until('both were probed', async () => good.probes.length > 0 && other.probes.length > 0);
  t.deepEqual(good.probes[0], { method: 'GET', path: '/healthz?full=1', host: 'www.example.com:8080' });
  await untilStates(host, 'up up');
  for (const bad of [
    { status: 201 },
    { body: '{"status": "DOWN", "load": 3}' },
    { body: '{"status": "UP", "load": 33}' },
    { isSilent: true },
  ]) {
    other.answer = { ...good.answer, ...bad };
    await untilStates(host, 'up down');
    other.answer = good.answer;
    await untilStates(host, 'up up');
  }
  t.is(await host.reloads(), 0);
});

test('An HTTPS probe sends the server name and checks the answer', async (t) => {
  const host = await TestHost.create(t);
  const pem = await readFile(await makeCredentials(host.directory), 'utf8');
  const start = (last: number) =>
    startProbedMember(t, host.address(last), MEMBER_PORT, { key: pem, cert: pem });
  const [good, other] = [await start(11), await start(12)];
  const annotations = {
    ...AT_ONCE,
    'health-monitor': 'https',
    'health-monitor-host': 'www.example.com:8443',
    'health-monitor-expected-codes': '200',
  };
  await host.serve({ members: [host.address(11), host.address(12)], annotations });
  await host.start();
  await host.until('both were probed', async () => good.probes.length > 0 && other.probes.length > 0);
  t.deepEqual(good.probes[0], { method: 'GET', path: '/healthz', host: 'www.example.com:8443' });
  t.deepEqual([...good.names], ['www.example.com']);
  await untilStates(host, 'up up');
  other.answer = { status: 503 };
  await untilStates(host, 'up down');
  other.answer = {};
  await untilStates(host, 'up up');
});

test('A TLS probe requires a handshake', async (t) => {
  const host = await TestHost.create(t);
  const pem = await readFile(await makeCredentials(host.directory), 'utf8');
  const good = await startProbedMember(t, host.address(11), MEMBER_PORT, { key: pem, cert: pem });
  // The member listens without TLS.
  await startProbedMember(t, host.address(12), MEMBER_PORT);
  const annotations = { ...FAST, 'health-monitor': 'tls', 'health-monitor-sni': 'db.example' };
  await host.serve({ members: [host.address(11), host.address(12)], annotations });
  await host.start();
  await untilStates(host, 'up down');
  await host.until('a name was asked for', async () => good.names.size > 0);
  t.deepEqual([...good.names], ['db.example']);
  t.is(good.probes.length, 0);
});

test('A probe uses the port that the Service names, and the port of the member may be silent', async (t) => {
  const host = await TestHost.create(t);
  const [first] = await probed(t, host, 2);
  const beside = await Promise.all(
    [11, 12].map((last) => startProbedMember(t, host.address(last), MEMBER_PORT + 1)),
  );
  if (first === undefined) return t.fail();
  first.answer = { status: 503 };
  const annotations = {
    ...AT_ONCE,
    'health-monitor': 'http',
    'health-monitor-port': String(MEMBER_PORT + 1),
    'health-monitor-expected-codes': '200',
  };
  await host.serve({ members: [host.address(11), host.address(12)], annotations });
  await host.start();
  await host.until('all were probed', async () => beside.every(({ probes }) => probes.length > 0));
  await untilStates(host, 'up up');
  t.is(first.probes.length, 0);
  const [, other] = beside;
  if (other !== undefined) other.answer = { status: 500 };
  await untilStates(host, 'up down');
});

for (const withTls of [false, true]) {
  test(`A gRPC probe checks the health of a server ${withTls ? 'with' : 'without'} TLS`, async (t) => {
    const host = await TestHost.create(t);
    const pem = withTls ? await readFile(await makeCredentials(host.directory), 'utf8') : '';
    const tls = withTls ? { key: pem, cert: pem } : undefined;
    const serving = await startGrpcMember(t, host.address(11), MEMBER_PORT, tls);
    const other = await startGrpcMember(t, host.address(12), MEMBER_PORT, tls);
    const annotations = {
      ...FAST,
      'health-monitor': withTls ? 'grpcs' : 'grpc',
      'health-monitor-host': 'orders.example',
      'health-monitor-grpc-service': 'shop.v1.Orders',
    };
    await host.serve({ members: [host.address(11), host.address(12)], annotations });
    await host.start();
    await host.until('both were probed', async () => serving.probes.length > 0 && other.probes.length > 0);
    const message = `0000000010${'0a0e'}${Buffer.from('shop.v1.Orders').toString('hex')}`;
    t.deepEqual(serving.probes[0], ['/grpc.health.v1.Health/Check', 'orders.example', message]);
    await untilStates(host, 'up up');
    other.health = 2;
    await untilStates(host, 'up down');
    other.health = 1;
    await untilStates(host, 'up up');
  });
}

test('HAProxy refuses no client while all members fail their checks', async (t) => {
  const host = await TestHost.create(t);
  const members = await probed(t, host, 3);
  const annotations = { ...AT_ONCE, 'health-monitor': 'http', 'health-monitor-expected-codes': '200' };
  await host.serve({ members: members.map((_, at) => host.address(11 + at)), annotations });
  await host.start();
  await untilStates(host, 'up up up');
  let refused = 0;
  let answered = 0;
  let isOver = false;
  t.teardown(() => {
    isOver = true;
  });
  const load = (async () => {
    while (!isOver) {
      if (await host.answers()) answered++;
      else refused++;
    }
  })();
  const untilMore = async (): Promise<void> => {
    const before = answered;
    await host.until('traffic continues', async () => answered > before + 50);
  };
  for (const member of members) member.answer = { status: 503 };
  await untilStates(host, 'down down down');
  await untilMore();

  // A new member gets its share in the meantime, and a removed member gets nothing.
  const next = await startProbedMember(t, host.address(14), MEMBER_PORT);
  next.answer = { status: 503 };
  await host.serve({ members: [12, 13, 14].map((last) => host.address(last)), annotations });
  await host.until('the new member is down', async () => (await statesOf(host, 4)).endsWith('down'));
  await host.until('the new member is asked', async () => next.requests > 10);
  const [gone] = members;
  const requests = gone?.requests;
  await untilMore();
  t.is(gone?.requests, requests);

  // The first healthy member gets all requests.
  next.answer = {};
  await host.until('it is up', async () => (await statesOf(host, 4)).endsWith('up'));
  const others = members.map((member) => member.requests);
  await untilMore();
  const more = members.map((member, at) => member.requests - (others[at] ?? 0));
  t.true(Math.max(...more) <= 1, `Others got ${more}`);
  isOver = true;
  await load;
  t.is(refused, 0);
  t.is(await host.reloads(), 0);
});

test('Failed checks stop the only member only if the Service configures that', async (t) => {
  const host = await TestHost.create(t);
  const [member] = await probed(t, host, 1);
  if (member === undefined) return t.fail();
  member.answer = { status: 503 };
  const annotations = { ...AT_ONCE, 'health-monitor': 'http', 'health-monitor-expected-codes': '200' };
  await host.serve({ annotations });
  const agent = await host.start();
  await untilStates(host, 'down');
  t.true(await host.answers());
  await host.until('it is told', async () => (await host.why()).status === 'ERROR');
  const { verdict, problems, listeners } = await host.why();
  t.is(verdict, 'members down');
  t.deepEqual(
    problems.map(({ reason }) => reason),
    ['AllMembersDown'],
  );
  const [told] = listeners[0]?.members ?? [];
  t.like(told, { status: 'ERROR', cause: 'the response has an unexpected status (L7STS)' });
  await host.until(
    'the numbers say so',
    async () => (await host.status()).operating.counts.member.ERROR === 1,
  );
  const metrics = await agent.metrics();
  t.is(metrics('headgate_operating_status', { kind: 'load_balancer', status: 'ERROR' }), 1);
  t.is(metrics('headgate_operating_status', { kind: 'member', status: 'ONLINE' }), 0);
  t.is(metrics('headgate_problems', { reason: 'AllMembersDown' }), 1);
  const { stdout } = await host.command('status');
  t.regex(stdout, /default\/web: ERROR, the only ready member fails its health check/);
  await host.serve({ annotations: { ...annotations, 'when-all-down': 'reject' } });
  await host.until('it is refused', async () => !(await host.answers()));
  await host.until('that is told', async () => (await host.why()).verdict === 'members down');
  member.answer = {};
  await host.until('it is back', () => host.answers());
  await host.until('that is told, too', async () => (await host.why()).status === 'ONLINE');
});

test('The agent reads the results of checks at the interval of the settings', async (t) => {
  const host = await TestHost.create(t);
  const [member] = await probed(t, host, 1);
  if (member === undefined) return t.fail();
  const config = join(host.directory, 'headgate.yaml');
  await writeFile(config, 'healthReadInterval: 500ms\n');
  await host.serve({ annotations: { ...AT_ONCE, 'health-monitor': 'http' } });
  member.answer = { status: 503 };
  const agent = await host.start(['--config', config]);
  const told = async () => (await host.why()).status;
  await host.until('it is told', async () => (await told()) === 'ERROR');
  await writeFile(config, 'healthReadInterval: 10m\n');
  agent.signal('SIGHUP');
  await host.until('it is taken', async () => agent.hasLogged('healthReadInterval'));
  member.answer = { status: 200 };
  await untilStates(host, 'up');
  t.is(await told(), 'ERROR', 'HAProxy acts on it at once, the agent has yet to look');
  await writeFile(config, 'healthReadInterval: 500ms\n');
  agent.signal('SIGHUP');
  await host.until('it is told, too', async () => (await told()) === 'ONLINE');
});

test('A new member, or a member of a new HAProxy, is down only after the configured number of failed checks', async (t) => {
  const host = await TestHost.create(t);
  const [first, second] = await probed(t, host, 2);
  if (first === undefined || second === undefined) return t.fail();
  const annotations = {
    'health-monitor': 'http',
    'health-monitor-interval': '500ms',
    'health-monitor-fall': '4',
    'health-monitor-path': '/healthz',
    'health-monitor-rise': '1',
    'health-monitor-expected-codes': '200',
  };
  await host.serve({ annotations });
  await host.start();
  await untilStates(host, 'up');
  second.answer = { status: 503 };
  await host.serve({ members: [host.address(11), host.address(12)], annotations });
  await untilStates(host, 'up down');
  t.true(second.probes.length >= 4, `After ${second.probes.length} probes`);

  // The same over a reload.
  await host.until('it has been found well', async () => first.probes.length >= 2);
  const worker = await host.worker();
  await host.serve({ name: 'api', address: host.address(2), members: [] });
  await host.until('another worker serves', async () => (await host.worker()) !== worker);
  first.answer = { status: 503 };
  const before = first.probes.length;
  await untilStates(host, 'down down');
  t.true(first.probes.length - before >= 4, `After ${first.probes.length - before} probes`);
});
