// `routes-1k`: with a real API server, 1,000 HTTPRoutes of 20 Services wait for a Gateway; the time from the end of its creation
// until a request of each route is answered, and how many statuses are written for it. Reference: as many status patches, as
// fast as the API server takes them from sixteen connections. Then another 1,000 routes are written to the served Gateway.

import { deployDefinitions } from '../../test/support/kube/deploy.ts';
import { createGatewayClass, deployGatewayApi } from '../../test/support/kube/gateway-api.ts';
import type { Kube } from '../../test/support/kube/kube.ts';
import { buildPrograms, Rig } from '../api/rig.ts';
import { type ApiService, Services } from '../api/services.ts';
import { settled } from '../api/settled.ts';
import type { Agent } from '../support/agent.ts';
import { isolated } from '../support/isolated.ts';
import { request } from '../support/request.ts';
import { type Bench, type Benchmark, type Row, row } from '../support/row.ts';
import { type Scratch, withScratch } from '../support/scratch.ts';
import { pause } from '../support/until.ts';

const COUNT = 1_000;
const SERVICES = 20;
const PORT = 8080;
const NAMESPACE = 'routes';
const ADDRESS = '127.40.0.1';
const CONTROLLER = 'headgate.io/gateway-controller';
const API = `/apis/gateway.networking.k8s.io/v1/namespaces/${NAMESPACE}`;
const WRITERS = 16;
const BETWEEN_REQUESTS_MS = 5;
const MOST_MS = 120_000;
const MAX_SECONDS = 2;
/** For 1,000 routes. */
const MAX_WRITES = 1_200;

export const routesAtOnce: Benchmark = {
  rows: ['routes-1k'],
  run: async (bench, selected) => {
    await buildPrograms();
    return isolated(import.meta.url, bench, selected);
  },
};

export function measure(bench: Bench): Promise<void> {
  return withScratch(async (scratch) => bench.measured(await routesRow(bench, scratch)));
}

async function routesRow(bench: Bench, scratch: Scratch): Promise<Row> {
  bench.report('routes-1k: starting and filling the API server');
  const rig = await Rig.start(bench, scratch);
  const { kube } = rig;
  await Promise.all([deployDefinitions(kube), deployGatewayApi(kube)]);
  await createGatewayClass(kube, 'bench', CONTROLLER);
  const services = new Services(kube, { namespace: NAMESPACE, servedBy: ['kube-proxy'], port: 80 });
  await services.fill(SERVICES, () => 1);
  const count = bench.scaled(COUNT, 20);
  const first = routesOf(services.all, 'first', count);
  const later = routesOf(services.all, 'later', count);
  await inParallel(first, (each) => kube.must('POST', `${API}/httproutes`, each.object));
  const agent = rig.startAgent(scratch, 'agent', NAMESPACE);
  await settled(agent);
  const writesBefore = await agent.counter('headgate_status_writes_total');

  bench.report('routes-1k: creating the Gateway');
  await kube.must('POST', `${API}/gateways`, GATEWAY);
  const value = await untilAllAnswer(first);
  await settled(agent);
  const writes = (await agent.counter('headgate_status_writes_total')) - writesBefore;
  await assertStatuses(kube, count);

  bench.report('routes-1k: writing more routes');
  const again = await written(kube, agent, later);
  bench.report('routes-1k: patching statuses');
  const reference = await patchAll(kube, first);
  return row({
    name: 'routes-1k',
    value,
    unit: 's',
    target: `≤ ${MAX_SECONDS} s until all answer, ≤ ${MAX_WRITES} status writes`,
    met: value <= MAX_SECONDS && writes <= MAX_WRITES,
    reference: { name: `${count} status patches`, value: reference },
    details: {
      routes: count,
      'status writes': writes,
      'more routes at the served Gateway, until all are written, s': again.took,
      'from the last write until all answer, s': again.served,
      'their status writes': again.writes,
    },
  });
}

interface BenchRoute {
  readonly name: string;
  readonly host: string;
  /** The pod that answers. */
  readonly answer: string;
  readonly object: object;
}

const GATEWAY = {
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'Gateway',
  metadata: { name: 'edge' },
  spec: {
    gatewayClassName: 'bench',
    addresses: [{ type: 'IPAddress', value: ADDRESS }],
    listeners: [{ name: 'http', port: PORT, protocol: 'HTTP' }],
  },
};

function routesOf(services: readonly ApiService[], prefix: string, count: number): readonly BenchRoute[] {
  return Array.from({ length: count }, (_, at) => {
    const service = services[at % services.length];
    const [name, host] = [`${prefix}-${at}`, `${prefix}-${at}.example.org`];
    const spec = {
      parentRefs: [{ name: 'edge' }],
      hostnames: [host],
      rules: [{ backendRefs: [{ name: service?.name, port: 80 }] }],
    };
    const metadata = { name };
    const object = { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute', metadata, spec };
    return { name, host, answer: service?.members[0] ?? '', object };
  });
}

async function inParallel<T>(all: readonly T[], work: (one: T) => Promise<unknown>): Promise<void> {
  const left = all[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (const each of left) await work(each);
  };
  await Promise.all(Array.from({ length: WRITERS }, worker));
}

/** Returns the seconds that it took. */
async function untilAllAnswer(routes: readonly BenchRoute[]): Promise<number> {
  const began = performance.now();
  for (const { host, answer } of routes) {
    for (;;) {
      const { body } = await request(ADDRESS, PORT, undefined, undefined, host);
      if (body === answer) break;
      if (performance.now() - began > MOST_MS) throw new Error(`${host} is not served: "${body}"`);
      await pause(BETWEEN_REQUESTS_MS);
    }
  }
  return (performance.now() - began) / 1_000;
}

async function written(
  kube: Kube,
  agent: Agent,
  routes: readonly BenchRoute[],
): Promise<{ readonly took: number; readonly served: number; readonly writes: number }> {
  const before = await agent.counter('headgate_status_writes_total');
  const began = performance.now();
  await inParallel(routes, (each) => kube.must('POST', `${API}/httproutes`, each.object));
  const took = (performance.now() - began) / 1_000;
  const served = await untilAllAnswer(routes);
  await settled(agent);
  return { took, served, writes: (await agent.counter('headgate_status_writes_total')) - before };
}

async function assertStatuses(kube: Kube, count: number): Promise<void> {
  const { items } = await kube.must('GET', `${API}/httproutes`);
  const accepted = items.filter(({ status }: ListedRoute) =>
    status?.parents?.some(({ conditions }) =>
      conditions.some(({ type, status: value }) => type === 'Accepted' && value === 'True'),
    ),
  );
  if (accepted.length !== count) throw new Error(`${accepted.length} of ${count} routes are Accepted`);
}

interface ListedRoute {
  readonly status?: {
    readonly parents?: readonly {
      readonly conditions: readonly { readonly type: string; readonly status: string }[];
    }[];
  };
}

/** Returns the seconds that it took. */
async function patchAll(kube: Kube, routes: readonly BenchRoute[]): Promise<number> {
  const status = { status: { parents: [] } };
  const began = performance.now();
  await inParallel(routes, ({ name }) => kube.must('PATCH', `${API}/httproutes/${name}/status`, status));
  return (performance.now() - began) / 1_000;
}
