// The table of docs/status.md: for each verdict a real client on one side, and on the other what each place says of it.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { type RunningAgent, TestHost } from '../support/host/agent.ts';
import { startMembers } from '../support/traffic/members.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { backendObjects, gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';
import { MEMBER_PORT, VIP_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true });

/** What a client gets: a status code, or nothing. */
type Answer = number | 'refused' | 'closed';

interface Expected {
  readonly verdict: string;
  /** All that a client gets in a row of requests. */
  readonly answers: readonly Answer[];
  /** In one of the sentences of `why`, and the reason of a problem. */
  readonly reason: RegExp | undefined;
  readonly problem?: string;
  /** What is said of a member that fails, in another sentence. */
  readonly member?: RegExp;
  /** The members that accept connections, as `list` shows it. */
  readonly ready: string;
}

/** By the key of `why`. */
const EXPECTED: Readonly<Record<string, Expected>> = {
  'default/good': { verdict: 'served', answers: [200], reason: undefined, ready: '1/1' },
  'default/dead': {
    verdict: 'members fail',
    answers: ['closed'],
    reason: /^All that clients tried at TCP port \d+ \(IPv4\) in the last minute failed$/,
    problem: 'MembersFail',
    ready: '0/2',
    member: /^\S+:17090: (\d+) of \1 connections failed in the last minute$/,
  },
  'default/error': {
    verdict: 'members fail',
    answers: [500],
    reason: /^All that clients tried at TCP port \d+ \(IPv4\) in the last minute failed$/,
    problem: 'MembersFail',
    ready: '0/1',
    member: /^\S+:17090: (\d+) of \1 requests got an answer of 5xx in the last minute$/,
  },
  'default/one': {
    verdict: 'served',
    answers: [200],
    reason: /^Clients get an answer at TCP port \d+ \(IPv4\) only because other members take over: \S+ fails/,
    problem: 'MembersFail',
    member: /^\S+:17090: (\d+) of \1 connections failed in the last minute$/,
    ready: '1/2',
  },
  'default/half': {
    verdict: 'served in part',
    answers: [200, 500],
    reason: /^A part of what clients tried at TCP port \d+ \(IPv4\) in the last minute failed$/,
    problem: 'MembersFail',
    member: /^\S+:17090: (\d+) of \1 requests got an answer of 5xx in the last minute$/,
    ready: '1/2',
  },
  'default/silent': {
    verdict: 'members fail',
    answers: ['closed'],
    reason: /^All that clients tried at TCP port \d+ \(IPv4\) in the last minute failed$/,
    problem: 'MembersFail',
    member: /^\S+:17090: (\d+) of \1 connections failed in the last minute$/,
    ready: '0/1',
  },
  'default/one-silent': {
    verdict: 'served in part',
    answers: [200, 'closed'],
    reason: /^A part of what clients tried at TCP port \d+ \(IPv4\) in the last minute failed$/,
    problem: 'MembersFail',
    member: /^\S+:17090: (\d+) of \1 connections failed in the last minute$/,
    ready: '1/2',
  },
  'default/late': {
    verdict: 'members fail',
    answers: [504],
    reason: /^All that clients tried at TCP port \d+ \(IPv4\) in the last minute failed$/,
    problem: 'MembersFail',
    member: /^\S+:17090: (\d+) of \1 requests got an answer of 5xx in the last minute$/,
    ready: '0/1',
  },
  'default/empty': {
    verdict: 'no ready member',
    answers: ['refused'],
    reason: /^TCP port \d+ \(IPv4\) has no member: /,
    ready: '0/0',
  },
  'default/down': {
    verdict: 'members down',
    answers: ['closed'],
    reason: /^The only ready member of TCP port \d+ \(IPv4\) fails its health check/,
    problem: 'AllMembersDown',
    ready: '0/1',
  },
  'gateway:default/edge': {
    verdict: 'served in part',
    answers: [200, 500],
    reason:
      /^HTTPRoute default\/half: Cannot serve all of it \(BackendNotFound\): Cannot send to Service "default\/missing"/,
    problem: 'InvalidRoute',
    ready: '1/1',
  },
  'gateway:default/gone': {
    verdict: 'no ready member',
    answers: [503],
    reason: /^pool:default\/none port 80: no ready member: see "headgate why pool:default\/none"$/,
    ready: '0/0',
  },
};

test.serial('What each place says of a load balancer is what its clients see', async (t) => {
  const host = await TestHost.create(t);
  await startMembers(t, host);
  await startBroken(t, host.address(12));
  await startSilent(t, host.address(15));
  const [good, broken, dead, silent] = [11, 12, 13, 15].map((last) => host.address(last)) as [
    string,
    string,
    string,
    string,
  ];
  const vips = new Map(Object.keys(EXPECTED).map((key, at) => [key, host.address(21 + at)]));
  const vip = (key: string): string => vips.get(key) ?? '';
  const http = { mode: 'http' };
  const service = (name: string, members: readonly string[], annotations = {}) =>
    host.serve({ name, address: vip(`default/${name}`), members, annotations });
  await service('good', [good]);
  await service('dead', [dead, host.address(14)]);
  await service('error', [broken], http);
  await service('one', [good, dead]);
  await service('half', [good, broken], http);
  // As soon as its clients give up, which close their half of the connection.
  const impatient = { 'timeout-client': '1s', 'timeout-server': '1s' };
  await service('silent', [silent], impatient);
  await service('one-silent', [good, silent], impatient);
  await service('late', [silent], { ...http, ...impatient });
  await service('empty', []);
  await service('down', [dead], { 'health-monitor': 'tcp', 'health-monitor-interval': '1s' });
  await host.write('routes.yaml', [
    gatewayClassJson(),
    gateway('edge', vip('gateway:default/edge')),
    gateway('gone', vip('gateway:default/gone')),
    ...backendObjects('web', `${good}:${MEMBER_PORT}`),
    backendObjects('none', '')[0] ?? {},
    route('half', 'edge', ['web', 'missing']),
    route('none', 'gone', ['none']),
  ]);
  const agent = await host.start();
  const clients = Object.keys(EXPECTED).map((key) => startClient(t, { address: vip(key), port: VIP_PORT }));
  const places = placesOf(host, agent);
  for (const [at, [key, expected]] of Object.entries(EXPECTED).entries()) {
    await host.until(
      `${key} is ${expected.verdict} and names its reason`,
      async () => {
        const { verdict, reasons } = await places.why(key);
        const sentences = [expected.reason, expected.member].filter((each) => each !== undefined);
        const isTold = sentences.every((sentence) => reasons.some((each) => sentence.test(each)));
        return verdict === expected.verdict && isTold;
      },
      90_000,
    );
    const answers = (await clients[at]?.answers()) ?? [];
    t.deepEqual(answers, expected.answers, key);
    await t.notThrowsAsync(sayTheSame(t, key, expected, places));
    t.regex(await places.whyText(`${vip(key)}:${VIP_PORT}`), new RegExp(`: ${expected.verdict}`), key);
  }
  const { status, stdout } = await host.command('why', [dead]);
  t.is(status, 1);
  t.regex(stdout, new RegExp(`^${dead} is a member of 3 ports:$`, 'm'));
  t.regex(
    stdout,
    /default\/dead TCP port \d+ \(IPv4\): .* ERROR .*(\d+) of \1 connections failed in the last minute/,
  );
});

/** Every place besides `why`. */
async function sayTheSame(
  t: ExecutionContext<unknown>,
  key: string,
  { verdict, problem, ready }: Expected,
  places: ReturnType<typeof placesOf>,
): Promise<void> {
  t.regex(await places.whyText(key), new RegExp(`^\\S+ \\S+: ${verdict}`, 'm'), key);
  t.regex(await places.list(), new RegExp(`^${key} .* ${ready} .* ${verdict}(  |$)`, 'm'), key);
  t.is((await places.page(key)).verdict, verdict, key);
  const labels = labelsOf(key);
  const shown = (await places.metrics())('headgate_load_balancer_verdict', { ...labels, verdict });
  t.is(shown, verdict === 'served' ? Number.NaN : 1, key);
  if (problem === undefined) return;
  t.true(Number((await places.metrics())('headgate_problems', { reason: problem })) > 0, key);
  const { problems } = await places.status();
  const [, name = ''] = key.split(':');
  t.true(
    problems.some(({ reason, object }) => reason === problem && (name !== '' || object === `Service ${key}`)),
    key,
  );
}

function placesOf(host: TestHost, agent: RunningAgent) {
  return {
    why: (key: string) => host.why(key),
    whyText: async (key: string) => (await host.command('why', [key])).stdout,
    list: async () => (await host.command('list')).stdout,
    status: () => host.status(),
    metrics: () => agent.metrics(),
    page: (key: string) => pageOf(agent, key),
  };
}

const DETAIL = /^event: detail\ndata: (\{.*)\n\n/m;

/** The first view that the page gets, with the load balancer open. */
async function pageOf(agent: RunningAgent, key: string) {
  const response = await fetch(`${agent.url}/events?open=${encodeURIComponent(key)}`);
  const reader = response.body?.getReader();
  let text = '';
  while (!DETAIL.test(text)) {
    const { value, done } = (await reader?.read()) ?? { done: true };
    if (done) break;
    text += Buffer.from(value ?? []).toString();
  }
  await reader?.cancel();
  return JSON.parse(DETAIL.exec(text)?.[1] ?? '{}') as { readonly verdict: string };
}

function labelsOf(key: string): Readonly<Record<string, string>> {
  const [owner, name = ''] = key.includes(':') ? key.split(':') : ['', key];
  const [namespace = '', service = ''] = name.split('/');
  return { namespace, service, ...(owner !== '' && { owner: owner ?? '' }) };
}

function gateway(name: string, address: string) {
  return gatewayJson(name, {
    addresses: [{ type: 'IPAddress', value: address }],
    listeners: [{ name: 'http', port: VIP_PORT, protocol: 'HTTP' }],
  });
}

function route(name: string, parent: string, services: readonly string[]) {
  const backendRefs = services.map((each) => ({ name: each, port: 80 }));
  return routeJson(name, [{ name: parent }], { rules: [{ backendRefs }] });
}

/** Answers every request with 500. */
async function startBroken(t: ExecutionContext<unknown>, address: string): Promise<Server> {
  const server = createServer((_, response) => {
    response.writeHead(500).end();
  });
  server.listen(MEMBER_PORT, address);
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return server;
}

/** Answers its first requests, and then takes connections and never answers. */
async function startSilent(t: ExecutionContext<unknown>, address: string): Promise<void> {
  let left = 8;
  const server = createServer((_, response) => {
    if (left-- > 0) response.end(address);
  });
  server.listen(MEMBER_PORT, address);
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
}

const PAUSE_MS = 250;
/** Requests in a row of answers. */
const ROW = 8;

/** Sends a request on a new connection four times a second, until the test ends. */
function startClient(t: ExecutionContext<unknown>, place: Place) {
  const last: Answer[] = [];
  const one = async (): Promise<void> => {
    last.push(await answerOf(place));
    if (last.length > ROW) last.shift();
  };
  const timer = setInterval(() => void one(), PAUSE_MS);
  t.teardown(() => clearInterval(timer));
  return {
    /** What it got of late, each once. */
    answers: async () => {
      for (let at = 0; at < ROW; at++) await one();
      return [...new Set(last)].sort();
    },
  };
}

function answerOf({ address, port }: Place): Promise<Answer> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, timeout: 8_000 });
    let text = '';
    let isConnected = false;
    const end = (): void => {
      socket.destroy();
      const status = /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1];
      resolve(status === undefined ? (isConnected ? 'closed' : 'refused') : Number(status));
    };
    socket.on('connect', () => {
      isConnected = true;
      socket.write('GET / HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n');
    });
    socket.on('data', (data) => {
      text += data.toString('latin1');
    });
    socket.on('error', end).on('timeout', end).on('close', end);
  });
}
