// The setting `hostsOfOneNamespace` for a Gateway, on a real HAProxy: nobody but the owner answers for a host.

import ava from 'ava';
import { eventually } from '../support/basics/eventually.ts';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { backendObjects, gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';

const test = requires(ava, { haproxy: true });

type Json = Readonly<Record<string, unknown>>;

const PORT = 8080;
const HOST = 'x.example.org';

function inNamespace(namespace: string, second: number, json: Json): Json {
  const creationTimestamp = `2026-01-01T00:00:0${second}Z`;
  return { ...json, metadata: { ...(json.metadata as Json), namespace, creationTimestamp } };
}

test('A wildcard, an expression, and a ListenerSet of another namespace take no request of a host', async (t) => {
  const host = await TestHost.create(t);
  const route = (
    namespace: string,
    name: string,
    second: number,
    hostnames: readonly string[],
    path: Json,
    parent: Json = {},
  ) => {
    const parents = [{ name: 'edge', namespace: 'default', ...parent }];
    const rules = [{ matches: [{ path }], backendRefs: [{ name: 'web', port: 80 }] }];
    return inNamespace(namespace, second, routeJson(name, parents, { hostnames, rules }));
  };
  for (const namespace of ['owner', 'other'])
    await host.write(
      `${namespace}.yaml`,
      backendObjects('web', await startEcho(t, namespace)).map((each) => inNamespace(namespace, 0, each)),
    );
  const all = { allowedRoutes: { namespaces: { from: 'All' } } };
  await host.write('edge.yaml', [
    gatewayClassJson(),
    gatewayJson('edge', {
      addresses: [{ type: 'IPAddress', value: host.address(1) }],
      listeners: [{ name: 'http', port: PORT, protocol: 'HTTP', ...all }],
      allowedListeners: { namespaces: { from: 'All' } },
    }),
  ]);
  await host.write('routes.yaml', [
    route('owner', 'shop', 1, [HOST], { type: 'PathPrefix', value: '/shop' }),
    route('other', 'wild', 2, ['*.example.org'], { type: 'PathPrefix', value: '/' }),
    route('other', 'expression', 3, ['*.example.org', HOST], { type: 'RegularExpression', value: '/.*' }),
    route(
      'other',
      'extra',
      4,
      [],
      { type: 'PathPrefix', value: '/' },
      { kind: 'ListenerSet', name: 'extra', namespace: 'other' },
    ),
    inNamespace('other', 3, {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'ListenerSet',
      metadata: { name: 'extra' },
      spec: {
        parentRef: { name: 'edge', namespace: 'default' },
        listeners: [{ name: 'more', port: PORT, protocol: 'HTTP', hostname: HOST }],
      },
    }),
  ]);
  const ask = (name: string, path: string) =>
    request({ address: host.address(1), port: PORT }, path, { headers: { host: name } }).then(
      ({ status, echo }) => echo?.member ?? String(status),
      (error: Error) => error.message,
    );
  const answers = async () => [
    await ask(HOST, '/shop'),
    await ask(HOST, '/else'),
    await ask('y.example.org', '/else'),
  ];

  await host.start(['--hosts-of-one-namespace']);
  const seen = await eventually(answers, (given) => String(given) === 'owner,404,other');
  t.deepEqual(seen, ['owner', '404', 'other']);
});
