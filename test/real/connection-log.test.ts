// The connection log: what a real HAProxy writes to syslog by UDP, to a socket and to a file, and that traffic waits for none.

import { once } from 'node:events';
import { readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { GRACE_MS } from '../../agent/haproxy/config/render-context.ts';
import { requires } from '../support/basics/requirements.ts';
import { processesOf, signal, TestHost } from '../support/host/agent.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { type LogLine, socketReceiver, udpReceiver } from '../support/traffic/log-receiver.ts';
import { startMembers, type TestMember } from '../support/traffic/members.ts';
import { connectTo } from '../support/traffic/sockets.ts';
import { ask, Client, Load } from '../support/traffic/traffic.ts';
import { gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';
import { MEMBER_PORT, VIP_PORT, webObjects } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true, programs: ['python3'] });

test('Each request is a JSON line with the names of Kubernetes, also after a reload', async (t) => {
  const { host, log } = await logged(t, { mode: 'http', log: 'all' });
  t.is(await ask(host.place()), host.address(11));
  await host.soon('the request is logged', async () => log.lines().length === 1);
  const [line] = log.lines();
  t.like(line, {
    namespace: 'default',
    service: 'web',
    port: VIP_PORT,
    vip: host.address(1),
    member: `${host.address(11)}:${MEMBER_PORT}`,
    pod: 'web-0',
    node: '-',
    method: 'GET',
    host: 'test',
    path: '/',
    status: 200,
    retries: '0',
    ended: '--',
  });
  t.true(Number(line?.bytesIn) > 20 && Number(line?.bytesOut) > 50);
  t.true(Math.abs(Number(line?.timeMs) - Date.now()) < 60_000);
  t.is(new Date(String(line?.time)).getTime(), Math.floor(Number(line?.timeMs) / 1_000) * 1_000);

  // Another Service: a reload, whose worker has no names at first.
  await host.serve({ name: 'other', address: host.address(2) });
  await host.until('the other answers', () => host.answers(2));
  await host.soon('a later request has the pod again', async () => {
    await ask(host.place());
    return log.lines().at(-1)?.pod === 'web-0';
  });

  await host.serve({
    members: [{ address: host.address(12), pod: 'web-1' }],
    annotations: { mode: 'http', log: 'all' },
  });
  await host.soon('the new member is named', async () => {
    await ask(host.place());
    return log.lines().at(-1)?.pod === 'web-1';
  });
});

test('A TCP connection is logged when it ends, with the pod that has gone meanwhile', async (t) => {
  const { host, log } = await logged(t, { log: 'all' });
  const client = await Client.connect(host.place());
  t.is(await client.ask(), host.address(11));
  await host.serve({ members: [{ address: host.address(12), pod: 'web-1' }], annotations: { log: 'all' } });
  await host.soon('the new member is there', async () => (await ask(host.place())) === host.address(12));
  const ofFirst = (): number => log.lines().filter(({ pod }) => pod === 'web-0').length;
  const before = ofFirst();
  client.close();
  await host.soon('the first connection is logged', async () => ofFirst() === before + 1);
  t.like(
    log.lines().findLast(({ pod }) => pod === 'web-0'),
    { member: `${host.address(11)}:${MEMBER_PORT}` },
  );
});

test('With `errors` only what fails is logged, and a member that has ended is named', async (t) => {
  const { host, log, members } = await logged(t, { mode: 'http', log: 'errors' });
  for (let times = 0; times < 20; times++) await ask(host.place());
  // A probe of the port.
  (await connectTo(host.address(1), VIP_PORT)).destroy();
  await members[0]?.kill();
  t.is(await answer(host, 'GET /gone HTTP/1.1\r\nHost: shop\r\n\r\n'), 'HTTP/1.1 503 Service Unavailable');
  t.is(await answer(host, 'no HTTP\r\n\r\n'), 'HTTP/1.1 400 Bad request');
  await host.soon('both are logged', async () => log.lines().length === 2);
  t.like(log.lines()[0], { path: '/gone', status: 503, pod: 'web-0', ended: 'SC', retries: '3' });
  const { version } = (await host.status()).haproxy;
  const words = Number.parseInt(version, 10) < 3 ? [undefined, undefined] : ['member', 'connect'];
  t.deepEqual([log.lines()[0]?.endedBy, log.lines()[0]?.endedIn], words);
  t.like(log.lines()[1], { service: 'web', error: 'request' });
});

test('With `errors` a TCP client that waits for a dead member to speak first is logged', async (t) => {
  const { host, log, members } = await logged(t, { log: 'errors' });
  await ask(host.place());
  await members[0]?.kill();
  const socket = await connectTo(host.address(1), VIP_PORT);
  await once(socket, 'close');
  await host.soon('it is logged', async () => log.lines().length === 1);
  t.like(log.lines()[0], { ended: 'SC', bytesIn: 0, pod: 'web-0' });
});

test('Each line is one JSON object, whatever bytes clients send', async (t) => {
  const { host, log } = await logged(t, { mode: 'http', log: 'all' });
  const byte = fc.oneof(
    fc.integer({ min: 0, max: 255 }),
    fc.constantFrom(...Buffer.from('"\\\n\r%]}{,:\0\x7f\x80\xff')),
  );
  const bytes = fc.array(byte, { maxLength: 60 }).map((list) => Buffer.from(list).toString('latin1'));
  const visible = fc.string({
    unit: fc.constantFrom(...'"\\%]}{,:;\'`|<>^$@!~*()[]+=-_./abc019'),
    maxLength: 2_000,
  });
  const path = fc.oneof(bytes, visible);
  const hostName = fc.oneof(fc.constant('shop'), fc.constant('shop'), visible, bytes);
  const requests = fc.sample(fc.tuple(fc.constantFrom('GET', 'GET', 'GET', 'G"T'), path, hostName), 300);
  for (const [method, target, name] of requests) {
    const before = log.messages.length;
    const request = `${method} /${target} HTTP/1.0\r\nHost: ${name}\r\n\r\n`;
    const status = await answer(host, request, INCOMPLETE_MS);
    if (status !== '') await host.soon(`it is logged: ${status}`, async () => log.messages.length > before);
  }
  const [forwarded, refused] = [
    log.lines().filter(({ path }) => path),
    log.lines().filter(({ error }) => error),
  ];
  t.true(forwarded.length > 20 && refused.length > 20, `${forwarded.length} and ${refused.length}`);
  t.true(log.messages.every((message) => !/[\n\r\0]/.test(message.trimEnd())));

  // The longest line is not cut: each byte of this path takes two in JSON.
  const long = `/${'"'.repeat(1_200)}`;
  await answer(host, `GET ${long} HTTP/1.0\r\nHost: ${'"'.repeat(400)}\r\n\r\n`);
  await host.soon('it is logged', async () => String(log.lines().at(-1)?.path).length > 1_000);
  t.is(String(log.lines().at(-1)?.host).length, 255);
});

test('A client without its PROXY protocol header is logged, and one with it has its own address', async (t) => {
  const annotations = { 'accept-proxy-protocol': 'true', log: 'errors' };
  const { host, log, members } = await logged(t, annotations);
  await answer(host, 'GET / HTTP/1.0\r\n\r\n');
  await host.soon('it is logged', async () => log.lines().length === 1);
  t.like(log.lines()[0], { service: 'web', error: 'handshake' });
  await members[0]?.kill();
  await host.soon('a failure names the client', async () => {
    await answer(host, 'PROXY TCP4 198.51.100.7 192.0.2.10 51812 80\r\nGET / HTTP/1.0\r\n\r\n');
    return log.lines().at(-1)?.client === '198.51.100.7';
  });
  t.like(log.lines().at(-1), { clientPort: 51_812, vip: '192.0.2.10', pod: 'web-0', ended: 'SC' });
});

test('A Service in the landing is logged with its pods, and also after it has moved', async (t) => {
  const host = await TestHost.create(t, { landing: true });
  await startMembers(t, host, 1);
  const log = await udpReceiver(t, host.address(20));
  await host.serve({ name: 'first', address: host.address(2) });
  await host.start(['--connection-log-target', log.target, '--landing-rest', '3s']);
  await host.serve({
    members: [{ address: host.address(11), pod: 'web-0' }],
    annotations: { mode: 'http', log: 'all' },
  });
  const isNamed = async (): Promise<boolean> => {
    const before = log.messages.length;
    await ask(host.place());
    await host.soon('a line comes', async () => log.messages.length > before);
    return log.lines().at(-1)?.pod === 'web-0';
  };
  await host.until('the landing serves it', () => host.answers());
  await host.soon('it is named', isNamed);
  t.is((await host.status()).haproxy.landed, 1);
  await host.until('it has moved', async () => (await host.status()).haproxy.landed === 0);
  await host.soon('it is named again', isNamed);
});

test('The query of a request is not logged', async (t) => {
  const { host, log } = await logged(t, { mode: 'http', log: 'all' });
  await answer(host, 'GET /login?token=secret HTTP/1.0\r\n\r\n');
  await host.soon('it is logged', async () => log.lines().length === 1);
  t.like(log.lines()[0], { path: '/login', host: '-' });
  t.notRegex(log.messages.join(), /secret/);
});

test('A request of a Gateway is logged with its route, its rule, its client and its id', async (t) => {
  const host = await TestHost.create(t);
  const log = await udpReceiver(t, host.address(20));
  const place = { address: host.address(1), port: VIP_PORT };
  const member = await startEcho(t, 'web');
  const annotations = {
    'headgate.io/log': 'all',
    'headgate.io/request-ids': 'true',
    'headgate.io/trusted-proxies': '127.0.0.0/8',
  };
  const spec = {
    addresses: [{ type: 'IPAddress', value: place.address }],
    listeners: [{ name: 'http', port: place.port, protocol: 'HTTP' }],
  };
  const [, slice = {}] = webObjects({ address: '', members: ['127.0.0.1'], port: 80, portName: 'http' });
  const ports = [{ name: 'http', port: 80, protocol: 'TCP' }];
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'default', name: 'web' },
    spec: { type: 'ClusterIP', clusterIP: '10.96.0.1', ports },
  };
  const backendRefs = [{ name: 'web', port: 80 }];
  const rules = [
    { backendRefs },
    { matches: [{ path: { type: 'PathPrefix', value: '/admin' } }], backendRefs },
    {
      matches: [{ path: { type: 'PathPrefix', value: '/old' } }],
      filters: [{ type: 'RequestRedirect', requestRedirect: { hostname: 'new.example' } }],
    },
  ];
  await host.write('objects.yaml', [
    gatewayClassJson(),
    gatewayJson('edge', spec, { annotations }),
    routeJson('shop', [{ name: 'edge' }], { rules }),
    service,
    { ...slice, ports: [{ name: 'http', port: Number(member.split(':')[1]), protocol: 'TCP' }] },
  ]);
  await host.start(['--connection-log-target', log.target]);
  const asked = async (path: string, headers: Readonly<Record<string, string>> = {}): Promise<LogLine> => {
    const before = log.lines().length;
    await request(place, path, { headers: { host: 'shop.example', ...headers } });
    await host.soon('it is logged', async () => log.lines().length > before);
    return log.lines().at(-1) ?? {};
  };
  await host.until('it answers', async () => (await asked('/')).status === 200);
  const named = { 'X-Request-ID': 'edge-17', 'X-Forwarded-For': '198.51.100.7' };
  t.like(await asked('/admin/x', named), {
    namespace: 'default',
    service: 'edge',
    host: 'shop.example',
    route: 'HTTPRoute/default/shop#1',
    requestId: 'edge-17',
    client: '198.51.100.7',
    status: 200,
  });
  t.like(await asked('/old'), { route: 'HTTPRoute/default/shop#2', status: 302 });
  const own = await asked('/', { 'X-Request-ID': 'a"b' });
  t.is(own.route, 'HTTPRoute/default/shop#0');
  t.regex(String(own.requestId), /^[0-9a-f-]{36}$/);
  await host.write('objects.yaml', [
    gatewayClassJson(),
    gatewayJson('edge', spec, { annotations }),
    routeJson('shop', [{ name: 'edge' }], { rules, hostnames: ['other.example'] }),
    service,
  ]);
  await host.until('it is gone', async () => (await asked('/')).status === 404);
  t.is((await asked('/')).route, '-');
});

test("HAProxy's own format has HAProxy's own lines", async (t) => {
  const { host, log } = await logged(t, { mode: 'http', log: 'all' }, ['--connection-log-format', 'haproxy']);
  await ask(host.place());
  await host.soon('it is logged', async () => log.messages.length === 1);
  t.regex(String(log.messages[0]), /default:web:tcp:\d+:v4 .*"GET \/ HTTP\/1.1"/);
});

test('A Service without the annotation has the log of the setting', async (t) => {
  const { host, log } = await logged(t, {}, ['--connection-log', 'all']);
  await ask(host.place());
  await host.soon('it is logged', async () => log.lines().length === 1);
  await host.serve({ annotations: { log: 'none' } });
  await host.until('HAProxy has reloaded', async () => (await host.reloads()) === 1);
  await delay(GRACE_MS);
  const before = log.lines().length;
  await ask(host.place());
  await ask(host.place());
  t.is(log.lines().length, before);
});

for (const [state, prepare] of [
  ['away', async () => undefined],
  ['stuck', async (t: ExecutionContext, path: string) => (await socketReceiver(t, path)).pause()],
] as const) {
  test(`Requests do not wait for a log target that is ${state}`, async (t) => {
    const host = await TestHost.create(t);
    await startMembers(t, host, 1);
    const path = join(host.directory, 'log.sock');
    await prepare(t, path);
    await host.serve({ annotations: { mode: 'http', log: 'all' } });
    await host.start(['--connection-log-target', `socket:${path}`]);
    const load = new Load(t, host.place(), { kind: 'kept' });
    await load.answered(3_000);
    const { failures, slowest } = await load.stop();
    t.deepEqual(failures, []);
    t.true(slowest < 1_000, `${slowest} ms`);
    if (state === 'away') return;
    const info = await host.haproxy('show info');
    t.true(Number(/^DroppedLogs: (\d+)/m.exec(info)?.[1]) > 1_000);
  });
}

test('A log target that comes back gets lines again, without a reload', async (t) => {
  const host = await TestHost.create(t);
  await startMembers(t, host, 1);
  const path = join(host.directory, 'log.sock');
  await host.serve({ annotations: { log: 'all' } });
  const agent = await host.start(['--connection-log-target', `socket:${path}`]);
  await ask(host.place());
  await host.until('the agent warns', async () => agent.hasLogged('HAProxy loses the connection log'));
  const log = await socketReceiver(t, path);
  await ask(host.place());
  await host.soon('it is logged', async () => log.lines().length === 1);
  t.is(await host.reloads(), 0);
  await host.until('the agent says so', async () =>
    agent.hasLogged('The connection log has its socket again'),
  );
});

test('A file gets the lines without the agent, and is made again if it is gone', async (t) => {
  const { host, file, lines } = await loggedToFile(t);
  const agent = await host.start(['--connection-log-target', `file:${file}`]);
  await host.until('the writer runs', async () => agent.hasLogged('Started the log writer'));
  await ask(host.place());
  await host.soon('a line is in the file', async () => (await lines()).length === 1);
  t.like((await lines())[0], { service: 'web', pod: 'web-0', status: 200 });

  await agent.kill();
  await ask(host.place());
  await host.soon('a line comes without the agent', async () => (await lines()).length === 2);
  const [writer] = writersOf(host);
  const next = await host.start(['--connection-log-target', `file:${file}`]);
  t.deepEqual(writersOf(host), [writer]);

  await rename(file, `${file}.1`);
  await host.until('a new file gets lines', async () => {
    await ask(host.place());
    return (await lines()).length > 0;
  });

  signal(writersOf(host)[0] ?? 0, 'SIGKILL');
  await host.until('another writer runs', async () => next.hasLogged('The log writer has ended'));
  const before = (await lines()).length;
  await host.until('lines come again', async () => {
    await ask(host.place());
    return (await lines()).length > before;
  });

  const [last] = writersOf(host);
  await next.stop();
  const toEndIt = next.log.find((line) => 'toEndIt' in line)?.toEndIt;
  t.true(
    String(toEndIt).split(' ').includes(String(last)),
    `The last line names the writer, too: ${toEndIt}`,
  );
  await host.start();
  await host.soon('without the setting no writer runs', async () => writersOf(host).length === 0);
});

test('Requests do not wait for a disk that hangs', async (t) => {
  const { host, file, lines } = await loggedToFile(t);
  const agent = await host.start(['--connection-log-target', `file:${file}`]);
  await host.until('the writer runs', async () => agent.hasLogged('Started the log writer'));
  // A process that waits for its disk does as little as one that is stopped.
  for (const writer of writersOf(host)) signal(writer, 'SIGSTOP');
  const load = new Load(t, host.place(), { kind: 'kept' });
  await load.answered(3_000);
  const { failures, slowest } = await load.stop();
  t.deepEqual(failures, []);
  t.true(slowest < 1_000, `${slowest} ms`);
  for (const writer of writersOf(host)) signal(writer, 'SIGCONT');
  await host.soon('some lines were kept', async () => (await lines()).length > 0);
});

test('A file in a folder that does not exist is a fault in the log, and stops nothing', async (t) => {
  const { host } = await loggedToFile(t);
  const agent = await host.start(['--connection-log-target', `file:${host.directory}/none/c.log`]);
  await host.soon('the log says why', async () => agent.hasLogged('Cannot write the connection log'));
  t.is(await ask(host.place()), host.address(11));
  const check = await host.command('check', ['--connection-log-target', `socket:${host.directory}/none`]);
  t.regex(check.stdout, /BAD {2}connection log: there is no socket /);
});

test('A file needs a HAProxy that the agent starts', async (t) => {
  const host = await TestHost.create(t);
  const { status, stderr } = await host.command('run', [
    ...['--haproxy-supervisor', 'external', '--connection-log-target', 'file:/var/log/c.log'],
  ]);
  t.is(status, 2);
  t.regex(
    stderr,
    /connectionLogTarget: "file:\/var\/log\/c\.log" needs a writer, which only the agent starts/,
  );
});

async function loggedToFile(t: ExecutionContext) {
  const host = await TestHost.create(t);
  await startMembers(t, host, 1);
  await host.serve({
    members: [{ address: host.address(11), pod: 'web-0' }],
    annotations: { mode: 'http', log: 'all' },
  });
  const file = join(host.directory, 'connections.log');
  const lines = async (): Promise<readonly LogLine[]> => {
    const text = await readFile(file, 'utf8').catch(() => '');
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as LogLine);
  };
  return { host, file, lines };
}

/** The pids of the log writer. */
function writersOf({ runtimeDir }: TestHost): readonly number[] {
  return processesOf(join(runtimeDir, 'connection-log'));
}

/** HAProxy answers a request that is complete much sooner. */
const INCOMPLETE_MS = 300;

interface Logged {
  readonly host: TestHost;
  readonly log: Awaited<ReturnType<typeof udpReceiver>>;
  readonly members: readonly TestMember[];
}

/** A Service with the pod `web-0` at address 11, whose log goes to syslog by UDP; a member without an endpoint at 12. */
async function logged(
  t: ExecutionContext,
  annotations: Readonly<Record<string, string>>,
  flags: readonly string[] = [],
): Promise<Logged> {
  const host = await TestHost.create(t);
  const members = await startMembers(t, host, 2);
  const log = await udpReceiver(t, host.address(20));
  await host.serve({ members: [{ address: host.address(11), pod: 'web-0' }], annotations });
  await host.start(['--connection-log-target', log.target, ...flags]);
  return { host, log, members };
}

/** The first line of the answer to these bytes; '' for none. */
async function answer(host: TestHost, request: string, timeoutMs = 10_000): Promise<string> {
  const socket = await connectTo(host.address(1), VIP_PORT);
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
    socket.end();
  });
  socket.setTimeout(timeoutMs, () => socket.destroy());
  socket.write(request, 'latin1');
  // once() would reject for a connection that HAProxy resets.
  await new Promise((resolve) => socket.once('close', resolve));
  return text.split('\r\n')[0] ?? '';
}
