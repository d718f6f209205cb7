// Two replicas of the real oauth2-proxy that are killed, hang, are slow and are replaced, one after the other, under load, behind
// a whole agent, which also reloads HAProxy: no request reaches the member that they did not allow, and none is answered with 5xx. AUTH_FAULTS=100 is the
// long run (`make soak KIND=auth`).

import { Agent, request as httpRequest } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { kubeNeeds } from '../support/kube/kube.ts';
import { startEcho } from '../support/traffic/echo.ts';
import { CLIENT_ID, type Oauth2Proxy, startOauth2Proxy, Visitor } from '../support/traffic/oauth2-proxy.ts';
import { startOidcProvider, USER } from '../support/traffic/oidc-provider.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { backendObjects, gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';
import { VIP_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { ...kubeNeeds('oauth2-proxy'), haproxy: true });

const FAULTS = Number(process.env.AUTH_FAULTS ?? 5);
const HOST = 'shop.example.org';
/** From two requests to the next two: more than a replica that hangs may owe. */
const INTERVAL_MS = 3;
const PORT = 4180;
/** Longer than HAProxy waits for an answer of one replica. */
const HANGS_MS = 6_000;

interface World {
  readonly host: TestHost;
  readonly place: Place;
  /** The last octet of each replica's address, in the order of the EndpointSlice. */
  readonly replicas: Map<number, Oauth2Proxy>;
  readonly start: (last: number) => Promise<void>;
  /** The slice says that these are ready, and that these end. */
  readonly write: (ready: readonly number[], ending?: readonly number[]) => Promise<void>;
  /** Gives the Gateway other trusted proxies, which takes a reload. */
  readonly reload: () => Promise<void>;
  readonly cookie: string;
  /** What the member got, by the user that it was told, and the client's name. */
  readonly got: ReadonlyMap<string, number>;
}

async function world(t: ExecutionContext): Promise<World> {
  t.timeout(60_000 + FAULTS * 15_000);
  const host = await TestHost.create(t);
  const place = { address: host.address(1), port: VIP_PORT };
  const issuer = await startOidcProvider(t, CLIENT_ID);
  const replicas = new Map<number, Oauth2Proxy>();
  const got = new Map<string, number>();
  const start = async (last: number): Promise<void> => {
    replicas.set(last, await startOauth2Proxy(t, issuer, `${host.address(last)}:${PORT}`));
  };
  await Promise.all([start(11), start(12)]);
  const member = await startEcho(t, 'web', ({ headers }) => {
    const key = `${headers['x-client']} is ${headers['x-auth-request-email']}`;
    got.set(key, (got.get(key) ?? 0) + 1);
  });
  const write = (ready: readonly number[], ending: readonly number[] = []): Promise<void> => {
    const [service, slice] = backendObjects('auth', `${host.address(11)}:${PORT}`);
    const endpoints = [
      ...ready.map((last) => ({ addresses: [host.address(last)], conditions: { ready: true } })),
      ...ending.map((last) => ({
        addresses: [host.address(last)],
        conditions: { ready: false, serving: true, terminating: true },
      })),
    ];
    return host.write('auth.yaml', [service ?? {}, { ...slice, endpoints }]);
  };
  await write([11, 12]);
  const externalAuth = {
    protocol: 'HTTP',
    backendRef: { name: 'auth', port: 80 },
    http: { allowedHeaders: ['Cookie'], allowedResponseHeaders: ['X-Auth-Request-Email'] },
  };
  const path = { type: 'PathPrefix', value: '/oauth2' };
  const gateway = (proxies: string): Promise<void> => {
    const spec = {
      addresses: [{ type: 'IPAddress', value: place.address }],
      listeners: [{ name: 'http', port: place.port, protocol: 'HTTP' }],
    };
    const annotations = { 'headgate.io/trusted-proxies': proxies };
    return host.write('gateway.yaml', [gatewayJson('edge', spec, { annotations })]);
  };
  await gateway('192.0.2.0/32');
  await host.write('routes.yaml', [
    gatewayClassJson(),
    ...backendObjects('web', member),
    routeJson('shop', [{ name: 'edge' }], {
      hostnames: [HOST],
      rules: [
        { matches: [{ path }], backendRefs: [{ name: 'auth', port: 80 }] },
        { filters: [{ type: 'ExternalAuth', externalAuth }], backendRefs: [{ name: 'web', port: 80 }] },
      ],
    }),
  ]);
  await host.start();
  const visitor = new Visitor(place);
  await host.until('a client can sign in', async () => {
    const { status } = await visitor.visit(`http://${HOST}/`);
    return status === 200;
  });
  got.clear();
  let reloads = 0;
  const reload = async (): Promise<void> => {
    const before = await host.worker();
    await gateway(`192.0.2.${++reloads % 200}/32`);
    await host.until('another worker serves', async () => (await host.worker()) !== before);
  };
  return { host, place, replicas, start, write, reload, cookie: visitor.cookie, got };
}

interface Load {
  /** `CLIENT STATUS` → how often. */
  readonly counts: Map<string, number>;
  /** Requests that took a second and more. */
  slow: number;
  end(): Promise<void>;
}

/** As many requests a second, however long they take: clients do not wait for one another. */
function load({ place, cookie }: World): Load {
  const agent = new Agent({ keepAlive: true });
  const open = new Set<Promise<void>>();
  const all: Load = {
    counts: new Map(),
    slow: 0,
    end: async () => {
      clearInterval(timer);
      await Promise.all(open);
      agent.destroy();
    },
  };
  const ask = (client: string): Promise<number | string> =>
    new Promise((resolve) => {
      const headers = {
        host: HOST,
        'x-client': client,
        'x-auth-request-email': 'root',
        ...(client === 'ann' && { cookie }),
      };
      const sent = httpRequest({ host: place.address, port: place.port, headers, agent }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0));
      });
      // A connection that HAProxy has closed in the meantime, as browsers do.
      sent.on('error', ({ message }) => resolve(sent.reusedSocket ? ask(client) : message));
      sent.end();
    });
  const measured = async (client: string): Promise<void> => {
    const began = performance.now();
    const key = `${client} ${await ask(client)}`;
    all.counts.set(key, (all.counts.get(key) ?? 0) + 1);
    if (performance.now() - began > 1_000) all.slow++;
  };
  const timer = setInterval(() => {
    for (const client of ['ann', 'stranger']) {
      const one = measured(client).then(() => void open.delete(one));
      open.add(one);
    }
  }, INTERVAL_MS);
  return all;
}

function sumOf({ counts }: Load): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

type Fault = (world: World, at: number) => Promise<void>;

/** The replica of this number, and its place. */
function replicaOf({ replicas }: World, at: number): readonly [number, Oauth2Proxy] {
  const found = [...replicas][at % replicas.size];
  if (found === undefined) throw new Error('There is no replica');
  return found;
}

const faults: Readonly<Record<string, Fault>> = {
  killed: async (world, at) => {
    const [last, replica] = replicaOf(world, at);
    await replica.end('SIGKILL');
    await delay(300);
    await world.start(last);
  },
  hung: async (world, at) => {
    const [, { child }] = replicaOf(world, at);
    child.kill('SIGSTOP');
    await delay(HANGS_MS);
    child.kill('SIGCONT');
    await delay(200);
  },
  slow: async (world, at) => {
    const [, { child }] = replicaOf(world, at);
    for (let stop = 0; stop < 10; stop++) {
      child.kill('SIGSTOP');
      await delay(150);
      child.kill('SIGCONT');
      await delay(30);
    }
  },
  // Kubernetes ends a pod and says so at the same time.
  replaced: async (world) => {
    for (const [last, replica] of [...world.replicas]) {
      const next = last < 200 ? last + 2 : 11 + (last % 2);
      await world.start(next);
      world.replicas.delete(last);
      const others = [...world.replicas.keys()];
      await Promise.all([world.write(others, [last]), replica.end('SIGTERM')]);
      await delay(200);
      await world.write(others);
    }
  },

  // Not the service, but HAProxy, in the middle of its questions.
  reloaded: async (world) => {
    await world.reload();
    await delay(300);
  },
};

test.serial(
  'Replicas of oauth2-proxy that fail one after the other let in whom they know, and no request gets 5xx',
  async (t) => {
    const all = await world(t);
    const names = Object.keys(faults);
    const run = load(all);
    for (let at = 0; at < FAULTS; at++) {
      const name = names[at % names.length] ?? '';
      const [before, slow] = [sumOf(run), run.slow];
      await faults[name]?.(all, Math.floor(at / names.length));
      t.log(`${name}: ${sumOf(run) - before} requests, ${run.slow - slow} took a second and more`);
    }
    await run.end();
    t.log(Object.fromEntries(run.counts), Object.fromEntries(all.got));
    t.deepEqual([...run.counts.keys()].sort(), ['ann 200', 'stranger 302']);
    t.deepEqual([...all.got.keys()], [`ann is ${USER}`]);
    t.true((run.counts.get('ann 200') ?? 0) > 100 * FAULTS);
    t.true(run.slow < sumOf(run) / 50, 'A replica that hangs has few of the questions');
  },
);
