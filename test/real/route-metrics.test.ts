// Responses of routes by status class, and refusals of a listener by check: what HAProxy counts, and that no count goes back over reloads and agents.

import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { type RunningAgent, TestHost } from '../support/host/agent.ts';
import { readMetrics } from '../support/report/metrics-text.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import {
  gatewayClassJson,
  gatewayJson,
  ingressClassJson,
  ingressJson,
  routeJson,
} from '../support/values/gateways.ts';
import type { Json } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true });

const PORT = 8080;
const METRIC = 'headgate_route_http_responses_total';

/** A Service for routes only, with these members. */
function backend(name: string, ...members: readonly string[]): readonly Json[] {
  const port = Number(members[0]?.split(':')[1] ?? 1);
  const ports = [{ name: 'http', port: 80, targetPort: port, protocol: 'TCP' }];
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'default', name },
      spec: { type: 'ClusterIP', clusterIP: '10.96.0.1', ports },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { namespace: 'default', name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      endpoints: members.map((member) => ({
        addresses: [member.split(':')[0]],
        conditions: { ready: true },
      })),
      ports: [{ name: 'http', port, protocol: 'TCP' }],
    },
  ];
}

async function served(t: ExecutionContext<unknown>, flags: readonly string[]): Promise<TestHost> {
  const host = await TestHost.create(t, { flags });
  const listeners = [{ name: 'http', port: PORT, protocol: 'HTTP' }];
  const addresses = [{ type: 'IPAddress', value: host.address(1) }];
  const on = (name: string, hostname: string, rules: readonly Json[]): Json =>
    routeJson(name, [{ name: 'edge' }], { hostnames: [hostname], rules });
  const to = (name: string): Json => ({ backendRefs: [{ name, port: 80 }] });
  await host.write('objects.yaml', [
    gatewayClassJson(),
    gatewayJson('edge', { addresses, listeners }),
    ...backend('web', await startEcho(t, 'web')),
    ...backend('empty'),
    on('plain', 'plain.example', [to('web')]),
    on('listed', 'listed.example', [
      { ...to('web'), matches: [{ headers: [{ name: 'x-a', value: 'b' }] }] },
      { ...to('empty'), matches: [{ path: { type: 'PathPrefix', value: '/empty' } }] },
    ]),
    on('wide', '*.wide.example', [{ ...to('web'), timeouts: { request: '5s' } }]),
    on('moved', 'moved.example', [
      { filters: [{ type: 'RequestRedirect', requestRedirect: { hostname: 'new.example' } }] },
    ]),
    on('broken', 'broken.example', [to('missing')]),
    ingressClassJson('other', { 'headgate.io/load-balancer-ips': host.address(2) }),
    ingressJson('shop', { ingressClassName: 'other' }),
  ]);
  return host;
}

/** By route and class, those that are not 0; and how many routes have series. */
async function counts(
  agent: RunningAgent,
): Promise<{ readonly routes: number; readonly counted: Readonly<Record<string, number>> }> {
  const text = await (await fetch(`${agent.url}/metrics`, { headers: { connection: 'close' } })).text();
  const samples = [...(readMetrics(text, 'text').get(METRIC)?.samples ?? [])];
  const named = samples.map(([series, value]) => {
    const of = (label: string): string => new RegExp(`${label}="([^"]*)"`).exec(series)?.[1] ?? '';
    return [`${of('kind')} ${of('namespace')}/${of('route')}`, of('code'), value] as const;
  });
  return {
    routes: new Set(named.map(([route]) => route)).size,
    counted: Object.fromEntries(
      named.filter(([, , value]) => value > 0).map(([route, code, value]) => [`${route} ${code}`, value]),
    ),
  };
}

test.serial(
  'Responses of routes are counted by class, and no count goes back over reloads and agents',
  async (t) => {
    const host = await served(t, ['--route-metrics']);
    let agent = await host.start();
    const place = { address: host.address(1), port: PORT };
    const ask = async (
      name: string,
      path = '/',
      headers: Readonly<Record<string, string>> = {},
    ): Promise<number> => (await request(place, path, { headers: { host: name, ...headers } })).status;
    await host.until('the Gateway answers', async () => (await ask('nobody.example')) === 404);
    await host.until('all routes are served', async () => (await ask('moved.example')) === 302);
    const { routes, counted } = await counts(agent);
    t.is(routes, 6, 'a route without requests has series as well');
    const moved = counted['HTTPRoute default/moved 3xx'] ?? 1;

    t.is(await ask('plain.example'), 200);
    t.is(await ask('plain.example', '/x'), 200);
    t.is(await ask('listed.example', '/', { 'x-a': 'b' }), 200);
    t.is(await ask('listed.example', '/empty'), 503);
    t.is(await ask('listed.example', '/'), 404, 'no rule matches');
    t.is(await ask('a.wide.example'), 200);
    t.is(await ask('moved.example'), 302);
    const shop = { address: host.address(2), port: 80 };
    t.is((await request(shop, '/', { headers: { host: 'example.org' } })).status, 200);
    t.is(await ask('broken.example'), 500);
    const expected: Record<string, number> = {
      'HTTPRoute default/plain 2xx': 2,
      'HTTPRoute default/listed 2xx': 1,
      'HTTPRoute default/listed 5xx': 1,
      'HTTPRoute default/wide 2xx': 1,
      'Ingress default/shop 2xx': 1,
      'HTTPRoute default/moved 3xx': moved + 1,
      'HTTPRoute default/broken 5xx': 1,
    };
    const isCounted = (what: string): Promise<void> =>
      host.until(what, async () => {
        const now = (await counts(agent)).counted;
        for (const [series, value] of Object.entries(expected)) t.true((now[series] ?? 0) <= value, series);
        return JSON.stringify(Object.entries(now).sort()) === JSON.stringify(Object.entries(expected).sort());
      });
    await isCounted('all is counted');

    const reloads = await host.reloads();
    await host.write('more.yaml', [
      ...backend('more', await startEcho(t, 'more')),
      routeJson('more', [{ name: 'edge' }], {
        hostnames: ['more.example'],
        rules: [{ backendRefs: [{ name: 'more', port: 80 }] }],
      }),
    ]);
    // The route needs no reload, but a new address of a Service does.
    await host.serve({ name: 'balanced', address: host.address(3), members: [] });
    await host.until(
      'the new worker serves',
      async () => (await host.reloads()) > reloads && (await ask('more.example')) === 200,
    );
    const { counted: afterReload } = await counts(agent);
    for (const [series, value] of Object.entries(expected))
      t.true((afterReload[series] ?? 0) >= value, `${series} after a reload`);
    t.is(await ask('plain.example'), 200);
    expected['HTTPRoute default/plain 2xx'] = 3;
    expected['HTTPRoute default/more 2xx'] = 1;
    await host.write('more.yaml', []);
    delete expected['HTTPRoute default/more 2xx'];
    await isCounted('both workers are counted, and a route that is gone has no series');

    await agent.kill();
    t.is(await ask('plain.example'), 200);
    expected['HTTPRoute default/plain 2xx'] = 4;
    agent = await host.start();
    await isCounted('the next agent continues');
  },
);

test.serial('Routes are not counted without the setting', async (t) => {
  const host = await served(t, []);
  const agent = await host.start();
  const place = { address: host.address(1), port: PORT };
  await host.until(
    'it answers',
    async () => (await request(place, '/', { headers: { host: 'plain.example' } })).status === 200,
  );
  t.deepEqual(await counts(agent), { routes: 0, counted: {} });
  t.false((await host.config()).includes('headgate:routes'));
});

test.serial('Refusals are counted by check without the setting, over reloads and agents', async (t) => {
  const host = await served(t, []);
  let agent = await host.start();
  const ask = async (path: string, name = 'plain.example'): Promise<number> =>
    (await request({ address: host.address(1), port: PORT }, path, { headers: { host: name } })).status;
  const refusals = async (service: string, check: string): Promise<number> =>
    (await agent.metrics())('headgate_listener_refusals_total', { service, check }) ?? Number.NaN;
  await host.until('it answers', async () => (await ask('/')) === 200);
  await host.until('all checks have rows', async () => (await refusals('edge', 'ambiguous path')) === 0);
  t.is(await refusals('edge', 'user'), Number.NaN, 'no route asks for one');
  t.is(await refusals('other', 'route'), 0);
  const before = await refusals('edge', 'route');
  for (const path of ['/a/../b', '/a/./b', '/']) await ask(path, path === '/' ? 'nobody.example' : undefined);
  await host.until('all are counted', async () => (await refusals('edge', 'route')) === before + 1);
  t.is(await refusals('edge', 'path'), 2);

  const reloads = await host.reloads();
  await host.serve({ name: 'balanced', address: host.address(3), members: [] });
  await host.until('HAProxy has reloaded', async () => (await host.reloads()) > reloads);
  t.is(await refusals('edge', 'path'), 2);
  await host.until('the new worker counts', async () => {
    await ask('/a/../b');
    return (await refusals('edge', 'path')) > 2;
  });
  const last = await refusals('edge', 'path');
  await agent.kill();
  t.is(await ask('/a/../b'), 400);
  agent = await host.start();
  await host.until('the next agent continues', async () => (await refusals('edge', 'path')) > last);
});
