// Gateways in the landing: new ones, and those with another address or port, answer without a reload of the main HAProxy, and
// move there later.

import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { Agent, get } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createServer } from 'node:tls';
import ava, { type ExecutionContext } from 'ava';
import { eventually } from '../support/basics/eventually.ts';
import { requires } from '../support/basics/requirements.ts';
import { processesOf, signal, TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { goneBack, readMetrics } from '../support/report/metrics-text.ts';
import { startAuthorizer } from '../support/traffic/authorizer.ts';
import { type Answer, request, startEcho } from '../support/traffic/echo.ts';
import { serveNames, startHttpLoad, type Target } from '../support/traffic/namespace-http.ts';
import { slowHandshake } from '../support/traffic/slow-hello.ts';
import { askInTls, handshake, tlsSecret } from '../support/traffic/tls.ts';
import { API, WEB } from '../support/values/certificates.ts';
import {
  backendObjects,
  gatewayClassJson,
  gatewayJson,
  ingressClassJson,
  ingressJson,
  routeJson,
} from '../support/values/gateways.ts';

const test = requires(ava, { haproxy: true });
const inNamespaces = requires(ava, { haproxy: true, root: true, programs: ['ip', 'nsenter', 'sysctl'] });

type Json = Readonly<Record<string, unknown>>;

const PORT = 8080;
const HTTPS = 8443;
const NEW = 2;
/** Whose first message takes a second. */
const SLOW_CLIENTS = 12;

/** A host whose main HAProxy serves the Gateway `edge` at address 1; nothing moves from the landing before `rest()`. */
async function served(t: ExecutionContext<unknown>) {
  const host = await TestHost.create(t, { landing: true, flags: ['--reload-interval', '100ms'] });
  const file = join(host.directory, 'headgate.yaml');
  await writeFile(file, 'landingRest: 1h\n');
  const flags = ['--config', file];
  /** The Service `name`, with a member that answers with its name. */
  const service = async (name: string, annotations: Json = {}): Promise<void> => {
    const [object = {}, slice = {}] = backendObjects(name, await startEcho(t, name));
    const metadata = { ...(object.metadata as Json), annotations };
    await host.write(`service-${name}.yaml`, [{ ...object, metadata }, slice]);
  };
  const route = (name: string, gateway: string, to: string, path = '/', hostname = 'web.example') =>
    host.write(`route-${name}.yaml`, [
      routeJson(name, [{ name: gateway }], {
        hostnames: [hostname],
        rules: [
          {
            matches: [{ path: { type: 'PathPrefix', value: path } }],
            backendRefs: [{ name: to, port: 80 }],
          },
        ],
      }),
    ]);
  const gateway = (name: string, last: number, listeners: readonly Json[] = [HTTP]): Promise<void> =>
    host.write(`gateway-${name}.yaml`, [
      gatewayJson(name, { addresses: [{ type: 'IPAddress', value: host.address(last) }], listeners }),
    ]);
  await host.write('class.yaml', [gatewayClassJson(), tlsSecret('web-tls', WEB), tlsSecret('api-tls', API)]);
  await service('web');
  await route('web', 'edge', 'web');
  await gateway('edge', 1);
  const agent = await host.startWithLanding(flags);
  const ask = (last: number, path = '/', port = PORT): Promise<string> =>
    request({ address: host.address(last), port }, path, { headers: { host: 'web.example' } }).then(
      memberOf,
      (error: Error) => error.message,
    );
  const askTls = async (last: number, servername: string): Promise<string> => {
    const place = { address: host.address(last), port: HTTPS };
    const text = `GET / HTTP/1.1\r\nHost: ${servername}\r\nConnection: close\r\n\r\n`;
    const answer = await askInTls(place, { servername, rejectUnauthorized: false }, text);
    return /"member":"([^"]+)"/.exec(answer)?.[1] ?? answer;
  };
  const answers = (last: number, member: string, path = '/', port = PORT) =>
    eventually(
      () => ask(last, path, port),
      (answer) => answer === member,
    );
  await answers(1, 'web');
  const rest = async (): Promise<void> => {
    await writeFile(file, 'landingRest: 1s\n');
    agent.signal('SIGHUP');
  };
  const landed = async (): Promise<number> => (await host.status()).haproxy.landed;
  const moved = async (): Promise<void> => {
    await host.until('all are in the main HAProxy', async () => (await landed()) === 0);
    await host.until('the landing is empty', async () => (await sections(host)).length === 0);
  };
  return { host, agent, flags, service, route, gateway, ask, askTls, answers, rest, landed, moved };
}

const HTTP = { name: 'http', port: PORT, protocol: 'HTTP' };

const https = (...secrets: readonly string[]): Json => ({
  name: 'https',
  port: HTTPS,
  protocol: 'HTTPS',
  tls: { certificateRefs: secrets.map((name) => ({ name })) },
});

function memberOf({ echo, status }: Answer): string {
  return echo?.member ?? String(status);
}

/** The frontends and pools in the landing's file. */
async function sections(host: TestHost): Promise<readonly string[]> {
  const text = await readFile(host.landing.config, 'utf8');
  return Array.from(
    text.matchAll(/^(?:frontend|backend|listen) ((?:gateway|pool|ingress):\S+)(?<!:refusals)$/gm),
    ([, name = '']) => name,
  ).sort();
}

/** The name in the certificate for web.example. */
async function shownName(address: string): Promise<string> {
  const options = { servername: 'web.example', rejectUnauthorized: false };
  const { socket } = await handshake({ address, port: HTTPS }, options);
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return String(CN);
}

/** The processes of the HAProxy with this file. */
function processes(path: string): readonly number[] {
  return processesOf(dirname(path));
}

test.serial('A new Gateway answers without a reload of the main HAProxy, then moves there', async (t) => {
  const { host, service, route, gateway, ask, askTls, answers, rest, landed, moved } = await served(t);
  const reloads = await host.reloads();
  await service('api');
  await route('new-web', 'new', 'web');
  await route('new-api', 'new', 'api', '/api');
  await gateway('new', NEW, [HTTP, https('web-tls', 'api-tls')]);
  await answers(NEW, 'web');
  await answers(NEW, 'api', '/api');
  await eventually(
    () => askTls(NEW, 'web.example').catch(String),
    (answer) => answer === 'web',
  );
  t.is(await landed(), 1);
  t.is(await host.reloads(), reloads, 'the main HAProxy is not reloaded');
  t.deepEqual(await sections(host), [
    'gateway:default:new:tcp:8080:v4',
    'gateway:default:new:tcp:8443:v4',
    'pool:default:api:tcp:80:v4',
    'pool:default:web:tcp:80:v4',
  ]);
  t.false((await host.config()).includes('default:api'));
  t.is((await host.command('why', ['Gateway/default/new'])).status, 0);
  // A certificate is renewed.
  const [nameIn, workers] = [() => shownName(host.address(NEW)), processes(host.landing.config)];
  t.is(await nameIn(), 'web.example');
  await host.write('class.yaml', [gatewayClassJson(), tlsSecret('web-tls', API), tlsSecret('api-tls', API)]);
  await t.notThrowsAsync(eventually(nameIn, (name) => name === 'api.example'));
  t.deepEqual([processes(host.landing.config), await host.reloads()], [workers, reloads]);
  await rest();
  await moved();
  t.is(await host.reloads(), reloads + 1);
  t.is(await ask(NEW), 'web');
  t.is(await ask(NEW, '/api'), 'api');
  t.is(await askTls(NEW, 'web.example'), 'web');
});

test.serial('Routes, Services and members of a Gateway in the landing change at once', async (t) => {
  const { host, service, route, gateway, answers, rest, moved, ask } = await served(t);
  const reloads = await host.reloads();
  await gateway('new', NEW);
  await answers(NEW, '404');
  await route('new', 'new', 'web');
  await answers(NEW, 'web');
  // A new Service, its members, and a route to it from a Gateway of the main HAProxy as well.
  await service('api');
  await route('new', 'new', 'api');
  await answers(NEW, 'api');
  await host.write('service-api.yaml', backendObjects('api', await startEcho(t, 'other')));
  await answers(NEW, 'other');
  await route('api', 'edge', 'api', '/api');
  await answers(1, 'other', '/api');
  await host.write('service-api.yaml', backendObjects('api', await startEcho(t, 'third')));
  await answers(1, 'third', '/api');
  await answers(NEW, 'third');
  // The landing lets go of a pool whose last route is gone.
  await route('new', 'new', 'web');
  await answers(NEW, 'web');
  await host.write('service-api.yaml', backendObjects('api', await startEcho(t, 'fourth')));
  await answers(1, 'fourth', '/api');
  t.is(await host.reloads(), reloads, 'the main HAProxy is not reloaded');
  await rest();
  await moved();
  t.deepEqual([await ask(NEW), await ask(1, '/api')], ['web', 'fourth']);
});

test.serial('A connection to an old listener of a Gateway with a new port follows its routes', async (t) => {
  const { host, service, route, gateway, answers } = await served(t);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const sockets = new Set<number | undefined>();
  const askAgain = () =>
    new Promise<string>((resolve, reject) => {
      const place = { host: host.address(1), port: PORT, agent, headers: { host: 'web.example' } };
      get(place, async (response) => {
        sockets.add(response.socket.localPort);
        let text = '';
        for await (const chunk of response.setEncoding('utf8')) text += chunk;
        resolve(response.statusCode === 200 ? JSON.parse(text).member : String(response.statusCode));
      }).on('error', reject);
    });
  t.is(await askAgain(), 'web');
  await gateway('edge', 1, [HTTP, { name: 'more', port: PORT + 1, protocol: 'HTTP' }]);
  await answers(1, 'web', '/', PORT + 1);
  const isPaused = async () => /^gateway:default:edge.*,PAUSED,/m.test(await host.haproxy('show stat'));
  await host.until('the old listener takes no connections', isPaused);
  await service('api');
  await route('web', 'edge', 'api');
  await answers(1, 'api');
  await t.notThrowsAsync(eventually(askAgain, (member) => member === 'api'));
  await host.write('service-api.yaml', backendObjects('api', await startEcho(t, 'other')));
  await t.notThrowsAsync(eventually(askAgain, (member) => member === 'other'));
  t.true(await isPaused());
  t.is(sockets.size, 1);
});

test.serial('A new port of a Gateway lands with all of it, and a removed Gateway leaves both', async (t) => {
  const { host, gateway, ask, answers, rest, moved, landed } = await served(t);
  const reloads = await host.reloads();
  await gateway('edge', 1, [HTTP, { name: 'more', port: PORT + 1, protocol: 'HTTP' }]);
  await answers(1, 'web', '/', PORT + 1);
  t.is(await ask(1), 'web');
  t.deepEqual([await landed(), await host.reloads()], [1, reloads]);
  await rest();
  await moved();
  t.deepEqual([await ask(1), await ask(1, '/', PORT + 1)], ['web', 'web']);
  // The new setting alone reloads a main HAProxy that keeps old listeners.
  t.true((await host.reloads()) <= reloads + 2);
  await host.remove('gateway-edge.yaml');
  await eventually(
    () => ask(1),
    (answer) => answer.includes('ECONNREFUSED'),
  );
});

test.serial('The port of a ListenerSet lands', async (t) => {
  const { host, answers, ask, landed } = await served(t);
  const set = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'ListenerSet',
    metadata: { namespace: 'default', name: 'more', uid: 'uid-more', generation: 1 },
    spec: { parentRef: { name: 'edge' }, listeners: [{ ...HTTP, name: 'more', port: PORT + 1 }] },
  };
  const parent = { kind: 'ListenerSet', group: 'gateway.networking.k8s.io', name: 'more' };
  const addresses = [{ type: 'IPAddress', value: host.address(1) }];
  const allowedListeners = { namespaces: { from: 'Same' } };
  await host.write('gateway-edge.yaml', [
    gatewayJson('edge', { addresses, listeners: [HTTP], allowedListeners }),
  ]);
  const reloads = await host.reloads();
  await host.write('more.yaml', [set, routeJson('more', [parent])]);
  await answers(1, 'web', '/', PORT + 1);
  t.deepEqual([await ask(1), await landed(), await host.reloads()], ['web', 1, reloads]);
});

test.serial(
  'A Gateway in the landing is served there by an agent that is killed, and after a reboot',
  async (t) => {
    const { host, agent, flags, service, route, gateway, ask, answers, landed } = await served(t);
    await service('api');
    await route('new', 'new', 'api');
    await gateway('new', NEW);
    await answers(NEW, 'api');
    await host.until("the landing's file has it", async () => (await sections(host)).length === 2);
    await host.until(
      'its worker of before has ended',
      async () => processes(host.landing.config).length === 2,
    );
    const [main, landing] = [processes(host.paths.config), processes(host.landing.config)];
    await agent.kill();
    t.is(await ask(NEW), 'api', 'without the agent');
    const again = await host.start(flags);
    await host.until('it is still there', async () => (await landed()) === 1);
    t.is(await ask(NEW), 'api');
    t.deepEqual([processes(host.paths.config), processes(host.landing.config)], [main, landing]);
    await again.kill();
    for (const pid of [...main, ...landing]) signal(pid, 'SIGKILL');
    await host.start(flags);
    await answers(NEW, 'api');
    await answers(1, 'web');
    t.is(await landed(), 1);
  },
);

test.serial(
  'A Gateway in a landing that is killed answers again, in the main HAProxy if the landing cannot start',
  async (t) => {
    const { host, agent, flags, service, route, gateway, answers, landed } = await served(t);
    await service('api');
    await route('new', 'new', 'api');
    await gateway('new', NEW);
    await answers(NEW, 'api');
    for (const pid of processes(host.landing.config)) signal(pid, 'SIGKILL');
    await answers(NEW, 'api');
    t.is(await landed(), 1);
    await agent.kill();
    for (const pid of processes(host.landing.config)) signal(pid, 'SIGKILL');
    const broken = join(host.directory, 'haproxy-broken');
    const runtime = join(host.runtimeDir, 'haproxy-landing');
    const script = `#!/bin/sh\ncase "$*" in *${runtime}*) exit 1;; esac\nexec ${host.haproxyProgram} "$@"\n`;
    await writeFile(broken, script, { mode: 0o755 });
    const next = await host.start([...flags, '--haproxy', broken]);
    await answers(NEW, 'api');
    await host.until('nothing is left to the landing', async () => (await landed()) === 0);
    t.regex(next.text, /The landing does not serve/);
  },
);

test.serial('Counts of a pool in both continue over the move', async (t) => {
  const { agent, service, route, gateway, ask, answers, rest, landed } = await served(t);
  await service('api', { 'headgate.io/health-monitor': 'tcp' });
  await route('api', 'edge', 'api', '/api');
  await answers(1, 'api', '/api');
  await route('new-api', 'new', 'api', '/api');
  await gateway('new', NEW);
  await answers(NEW, 'api', '/api');
  const counted = async () => {
    const all = readMetrics(await (await fetch(`${agent.url}/metrics`)).text(), 'text');
    return new Map([...all].filter(([name]) => /^headgate_(listener|pool|member|route|haproxy)_/.test(name)));
  };
  let before = await counted();
  const failed: string[] = [];
  let asked = 0;
  const askBoth = async (): Promise<void> => {
    for (const last of [1, NEW]) {
      const answer = await ask(last, '/api');
      asked++;
      if (answer !== 'api') failed.push(answer);
    }
  };
  for (let at = 0; at < 20; at++) await askBoth();
  await rest();
  for (let isOver = false; !isOver; ) {
    isOver = (await landed()) === 0;
    await askBoth();
    const after = await counted();
    t.deepEqual(goneBack(before, after), []);
    before = after;
  }
  t.deepEqual(failed, []);
  const labels = { namespace: 'default', service: 'api', port: '80', owner: 'pool' };
  const sessions = async () => (await agent.metrics())('headgate_pool_sessions_total', labels);
  await t.notThrowsAsync(eventually(sessions, (count) => count >= asked));
});

test.serial(
  'Clients with session affinity keep their member over the move, also if the members have changed',
  async (t) => {
    const { host, route, gateway, answers, rest, moved } = await served(t);
    const names = ['one', 'two', 'three'] as const;
    const members = await Promise.all(names.map((name) => startEcho(t, name)));
    const serve = (count: number): Promise<void> => {
      const objects = members.slice(0, count).map((member, at) => {
        const [service = {}, slice = {}] = backendObjects('api', member);
        const [own, metadata] = [service.spec as Json, slice.metadata as Json];
        return [
          { ...service, spec: { ...own, sessionAffinity: 'ClientIP' } },
          { ...slice, metadata: { ...metadata, name: `api-${at}` } },
        ] as const;
      });
      return host.write('service-api.yaml', [
        ...objects.slice(0, 1).map(([service]) => service),
        ...objects.map(([, slice]) => slice),
      ]);
    };
    await serve(1);
    await route('new', 'new', 'api');
    await gateway('new', NEW);
    await answers(NEW, 'one');
    const askFrom = async (last: number): Promise<string> => {
      const place = { address: host.address(NEW), port: PORT, from: host.address(last) };
      return memberOf(await request(place, '/', { headers: { host: 'web.example' } }));
    };
    const clients = Array.from({ length: 12 }, (_, at) => 100 + at);
    const asked = () => Promise.all(clients.map(askFrom));
    const before = await asked();
    await serve(3);
    let last = 130;
    await host.until('new clients reach the others', async () => (await askFrom(last++)) !== 'one');
    t.deepEqual(await asked(), before);
    await rest();
    await moved();
    t.deepEqual(await asked(), before);
  },
);

test.serial('A Gateway that passes TLS on, ends TLS and forwards TCP lands and moves', async (t) => {
  const { host, route, gateway, rest, moved, landed } = await served(t);
  const reloads = await host.reloads();
  const member = createServer(API, (socket) => {
    socket.on('error', () => undefined);
    socket.end('passed');
  }).listen(0, '127.0.0.1');
  await once(member, 'listening');
  t.teardown(() => member.close());
  await host.write(
    'service-raw.yaml',
    backendObjects('raw', `127.0.0.1:${(member.address() as AddressInfo).port}`),
  );
  const raw = { rules: [{ backendRefs: [{ name: 'raw', port: 80 }] }] };
  await host.write('route-raw.yaml', [
    routeJson(
      'raw',
      [{ name: 'new', sectionName: 'passed' }],
      { hostnames: ['api.example'], ...raw },
      'TLSRoute',
    ),
    routeJson('tcp', [{ name: 'new', sectionName: 'tcp' }], raw, 'TCPRoute'),
  ]);
  await route('new', 'new', 'web');
  await gateway('new', NEW, [
    HTTP,
    { ...https('web-tls'), hostname: 'web.example' },
    { name: 'passed', port: HTTPS, protocol: 'TLS', hostname: 'api.example', tls: { mode: 'Passthrough' } },
    { name: 'tcp', port: PORT + 1, protocol: 'TCP' },
  ]);
  /** The name in the certificate that a client gets. */
  const shownAt = async (port: number, servername: string): Promise<string> => {
    const place = { address: host.address(NEW), port };
    const made = await handshake(place, { servername, rejectUnauthorized: false }).catch(() => undefined);
    const name = made?.socket.getPeerCertificate().subject?.CN;
    made?.socket.destroy();
    return String(name ?? 'none');
  };
  const names = async () => [
    await shownAt(HTTPS, 'web.example'),
    await shownAt(HTTPS, 'api.example'),
    await shownAt(PORT + 1, 'x'),
  ];
  const all = ['web.example', 'api.example', 'api.example'];
  await t.notThrowsAsync(eventually(names, (found) => found.join() === all.join()));
  t.deepEqual([await landed(), await host.reloads()], [1, reloads]);
  const failed: string[] = [];
  let isOver = false;
  // Some of them are in the landing when it lets go.
  const slow = Array.from({ length: SLOW_CLIENTS }, async () => {
    while (!isOver) {
      const place = { address: host.address(NEW), port: HTTPS };
      await slowHandshake(place, { servername: 'web.example', rejectUnauthorized: false }, () => delay(1_000))
        .then(({ socket }) => socket.destroy())
        .catch((error: Error) => failed.push(error.message));
    }
  });
  await rest();
  while (!isOver) {
    isOver = (await landed()) === 0;
    const found = await names();
    if (found.join() !== all.join()) failed.push(found.join());
  }
  await Promise.all(slow);
  await moved();
  t.deepEqual(await names(), all);
  t.deepEqual(failed, []);
});

test.serial('A slow request is let in by its authorization server while the landing lets go', async (t) => {
  const { host, gateway, rest, moved, landed } = await served(t);
  const authorizer = await startAuthorizer(t);
  authorizer.answer = (response) => void response.end();
  await host.write('service-auth.yaml', backendObjects('auth', authorizer.place));
  const externalAuth = { protocol: 'HTTP', backendRef: { name: 'auth', port: 80 }, http: { path: '/check' } };
  await host.write('route-new.yaml', [
    routeJson('new', [{ name: 'new' }], {
      hostnames: ['web.example'],
      rules: [
        { filters: [{ type: 'ExternalAuth', externalAuth }], backendRefs: [{ name: 'web', port: 80 }] },
      ],
    }),
  ]);
  await gateway('new', NEW, [HTTP]);
  const place = { address: host.address(NEW), port: PORT };
  const asked = async (between: () => Promise<unknown>): Promise<string> => {
    const socket = connect(place.port, place.address).setEncoding('utf8');
    socket.write('GET / HTTP/1.1\r\nhost: web.example\r\n');
    await between();
    socket.write('connection: close\r\n\r\n');
    let text = '';
    for await (const chunk of socket) text += chunk;
    return text.split(' ')[1] ?? 'nothing';
  };
  const status = (between = async () => undefined as unknown): Promise<string> =>
    asked(between).catch((error: Error) => error.message);
  await t.notThrowsAsync(eventually(status, (found) => found === '200'));
  t.is(await landed(), 1);
  const statuses = new Set<string>();
  let isOver = false;
  const slow = Array.from({ length: SLOW_CLIENTS }, async () => {
    while (!isOver) statuses.add(await status(() => delay(1_000)));
  });
  await rest();
  await moved();
  isOver = true;
  await Promise.all(slow);
  t.deepEqual([...statuses], ['200']);
});

inNamespaces.serial('No request fails while Gateways land, change, get a port and move', async (t) => {
  const { network, host } = await inOwnNetwork(t);
  const file = join(host.directory, 'headgate.yaml');
  const service = (name: string, member: (typeof MEMBERS)[number]): Promise<void> =>
    host.write(
      `service-${name}.yaml`,
      backendObjects(name, `${network.v4('member')}:${17_090 + MEMBERS.indexOf(member)}`),
    );
  const route = (gateway: string, to: string): Promise<void> =>
    host.write(`route-${gateway}.yaml`, [
      routeJson(gateway, [{ name: gateway }], {
        hostnames: ['web.example'],
        rules: [{ backendRefs: [{ name: to, port: 80 }] }],
      }),
    ]);
  const gateway = (name: string, n: number, ...listeners: readonly Json[]): Promise<void> =>
    host.write(`gateway-${name}.yaml`, [
      gatewayJson(name, { addresses: [{ type: 'IPAddress', value: vip(n) }], listeners }),
    ]);
  const target = (n: number, port: number, ...members: readonly string[]): Target => ({
    address: vip(n),
    port,
    host: 'web.example',
    isTls: port === HTTPS,
    members,
  });
  const answers = async ({ address, port, isTls, members: [member = ''] }: Target): Promise<void> => {
    const url = `${isTls ? 'https' : 'http'}://web.example:${port}/`;
    const words = ['-sk', '--max-time', '3', '--resolve', `web.example:${port}:${address}`, url];
    await host.until(
      `${member} answers at ${address}:${port}`,
      async () => (await network.try('client', 'curl', ...words)).stdout === member,
    );
  };
  const landingRest = async (rest: string): Promise<void> => {
    await writeFile(file, `landingRest: ${rest}\n`);
    const isInEffect = () => agent.text.split('A changed setting is in effect').length;
    const before = isInEffect();
    agent.signal('SIGHUP');
    await host.until('the setting is in effect', async () => {
      const { isReloading, reloadPending } = (await host.status()).haproxy;
      return isInEffect() > before && !isReloading && reloadPending.length === 0;
    });
  };
  const landed = async (): Promise<number> => (await host.status()).haproxy.landed;
  await writeFile(file, 'landingRest: 1h\n');
  await host.write('class.yaml', [gatewayClassJson(), tlsSecret('web-tls', WEB)]);
  await service('web', 'web');
  await route('edge', 'web');
  await gateway('edge', 1, HTTP);
  const agent = await host.startWithLanding(['--config', file]);
  const edge = target(1, PORT, 'web');
  await answers(edge);
  const load = startHttpLoad(network);
  await load.ask(edge);

  // A new Gateway lands.
  await service('api', 'api');
  await route('new', 'api');
  await gateway('new', 2, HTTP, https('web-tls'));
  const [plain, tls] = [target(2, PORT, 'api'), target(2, HTTPS, 'api')];
  await answers(plain);
  await answers(tls);
  t.is(await landed(), 1);
  /** Changes what answers at the new Gateway. */
  const follow = async (
    change: Promise<void>,
    before: string,
    member: string,
    isMoving = false,
  ): Promise<void> => {
    await load.ask(edge, target(2, PORT, before, member), target(2, HTTPS, before, member));
    await change;
    await answers(target(2, PORT, member));
    await answers(target(2, HTTPS, member));
    // A replaced worker accepts connections for a moment, and follows after the other.
    await delay(200);
    // So does the other HAProxy while both serve.
    if (!isMoving) await load.ask(edge, target(2, PORT, member), target(2, HTTPS, member));
  };
  await follow(service('api', 'other'), 'api', 'other');
  await follow(route('new', 'web'), 'other', 'web');
  await follow(route('new', 'api'), 'web', 'other');
  // It moves, and changes all the time.
  await landingRest('1s');
  for (let isOver = false, turn = 0; !isOver; turn++) {
    isOver = (await landed()) === 0;
    if (turn % 2 === 0) await follow(route('new', 'web'), 'other', 'web', true);
    else await follow(route('new', 'api'), 'web', 'other', true);
  }
  await host.until('the landing is empty', async () => (await sections(host)).length === 0);
  await follow(route('new', 'web'), 'other', 'web');

  // A port comes to the Gateway of the main HAProxy.
  await landingRest('1h');
  const reloads = await host.reloads();
  await gateway('edge', 1, HTTP, { name: 'more', port: PORT + 1, protocol: 'HTTP' });
  const more = target(1, PORT + 1, 'web');
  await answers(more);
  t.deepEqual([await landed(), await host.reloads()], [1, reloads]);
  const others = [plain, tls].map((each) => ({ ...each, members: ['web'] }));
  await load.ask(edge, more, ...others);
  await host.until('its old listeners in the main HAProxy take no connections', async () =>
    (await host.haproxy('show stat'))
      .split('\n')
      .some((line) => /^gateway:default:edge.*,PAUSED,/.test(line)),
  );
  // Clients of the old listeners follow its routes as well.
  await load.ask({ ...edge, members: ['web', 'other'] }, { ...more, members: ['web', 'other'] }, ...others);
  await route('edge', 'api');
  await answers({ ...edge, members: ['other'] });
  await answers({ ...more, members: ['other'] });
  await load.ask({ ...edge, members: ['other'] }, { ...more, members: ['other'] }, ...others);
  await landingRest('1s');
  await host.until('it has moved', async () => (await landed()) === 0);
  await host.until('the landing is empty', async () => (await sections(host)).length === 0);
  const { done, failed } = await load.end();
  t.log(`${done} requests`);
  t.true(done > 1_000, `${done} requests`);
  t.deepEqual(failed, []);
});

inNamespaces.serial('An Ingress lands, and a new address of its class', async (t) => {
  const { network, host } = await inOwnNetwork(t);
  const serve = (...vips: readonly number[]): Promise<void> =>
    host.write('ingress.yaml', [
      ...backendObjects('web', `${network.v4('member')}:${memberPort('web')}`),
      ingressClassJson('edge', { 'headgate.io/load-balancer-ips': vips.map(vip).join() }),
      ingressJson('web'),
    ]);
  const answers = (n: number): Promise<void> =>
    host.until(`it answers at ${vip(n)}`, async () => {
      const words = ['-s', '--max-time', '3', '-H', 'host: example.org', `http://${vip(n)}/`];
      return (await network.try('client', 'curl', ...words)).stdout === 'web';
    });
  await host.startWithLanding(['--landing-rest', '1h']);
  const reloads = await host.reloads();
  await serve(1);
  await answers(1);
  t.deepEqual([(await host.status()).haproxy.landed, await host.reloads()], [1, reloads]);
  t.deepEqual(await sections(host), ['ingress:-:edge:tcp:80:v4', 'pool:default:web:tcp:80:v4']);
  await serve(1, 2);
  await answers(2);
  await answers(1);
  t.is(await host.reloads(), reloads);
});

const MEMBERS = ['web', 'api', 'other'] as const;

function vip(n: number): string {
  return `10.9.2.${n}`;
}

function memberPort(member: (typeof MEMBERS)[number]): number {
  return 17_090 + MEMBERS.indexOf(member);
}

/** A load balancer, a client and the members, each in its own network namespace. */
async function inOwnNetwork(t: ExecutionContext<unknown>) {
  const network = await TestNetwork.create(t, ['lb', 'client', 'member']);
  for (const n of [1, 2]) await network.run('lb', 'ip', 'address', 'add', `${vip(n)}/32`, 'dev', 'lo');
  await network.run('client', 'ip', 'route', 'add', '10.9.2.0/24', 'via', network.v4('lb'));
  serveNames(network, 'member', memberPort('web'), MEMBERS);
  const host = await TestHost.create(t, {
    landing: true,
    flags: [
      '--netns',
      network.netns('lb'),
      '--reload-interval',
      '100ms',
      '--haproxy-user=',
      '--haproxy-group=',
    ],
  });
  return { network, host };
}
