// NetworkPolicies at the load balancer, for the routes of a Gateway: requests and connections of clients that the members of a
// route's Service do not let in, with a whole agent on manifests.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { request } from '../support/traffic/echo.ts';
import { startFaultyMember } from '../support/traffic/faulty-members.ts';
import { backendObjects, gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';
import type { Json } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true });

const [HTTP, TCP] = [8080, 9000];
const MEMBER_PORT = 17_090;

test.serial('A route serves the clients that its members let in, and refuses others', async (t) => {
  const flags = ['--enforce-network-policy', 'ingress'];
  const host = await TestHost.create(t, { flags });
  const [friend, stranger, proxy] = [host.address(98), host.address(99), host.address(97)] as const;
  const [guarded, open] = await Promise.all(
    [11, 12].map((last) => startFaultyMember(t, host.address(last), MEMBER_PORT)),
  );
  const parents = [{ name: 'edge' }];
  const backend = (name: string) => ({ name, port: 80 });
  const rule = (path: string, name: string, more: Json = {}): Json => ({
    matches: [{ path: { type: 'PathPrefix', value: path } }],
    backendRefs: [backend(name)],
    ...more,
  });
  await host.write('objects.yaml', [
    gatewayClassJson(),
    gatewayJson(
      'edge',
      {
        addresses: [{ type: 'IPAddress', value: host.address(1) }],
        listeners: [
          { name: 'http', port: HTTP, protocol: 'HTTP' },
          { name: 'tcp', port: TCP, protocol: 'TCP' },
        ],
      },
      { annotations: { 'headgate.io/trusted-proxies': proxy } },
    ),
    routeJson('web', [{ name: 'edge', sectionName: 'http' }], {
      rules: [
        rule('/guarded', 'guarded'),
        rule('/open', 'open'),
        rule('/both', 'open', {
          filters: [{ type: 'RequestMirror', requestMirror: { backendRef: backend('guarded') } }],
        }),
      ],
    }),
    routeJson(
      'tcp',
      [{ ...parents[0], sectionName: 'tcp' }],
      { rules: [{ backendRefs: [backend('guarded')] }] },
      'TCPRoute',
    ),
    ...backendObjects('guarded', guarded?.place ?? ''),
    ...backendObjects('open', open?.place ?? ''),
    pod('guarded', host.address(11)),
    pod('open', host.address(12)),
  ]);
  const allow = (cidr: string) =>
    host.write('policy.yaml', [
      {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'NetworkPolicy',
        metadata: { name: 'guarded', namespace: 'default' },
        spec: {
          podSelector: { matchLabels: { app: 'guarded' } },
          ingress: [{ from: [{ ipBlock: { cidr } }], ports: [{ port: MEMBER_PORT }] }],
        },
      },
    ]);
  await allow(`${friend}/32`);
  await host.start();
  const status = async (path: string, from: string, port = HTTP, headers = {}): Promise<number> =>
    request({ address: host.address(1), port, from }, path, {
      headers: { host: 'x.example', ...headers },
    }).then(
      (answer) => answer.status,
      () => 0,
    );
  await host.until('the friend is served', async () => (await status('/guarded', friend)) === 200);
  t.is(await status('/guarded', stranger), 403);
  t.is(await status('/open', stranger), 200);
  t.is(await status('/', friend, TCP), 200);
  t.true([0, Number.NaN].includes(await status('/', stranger, TCP)));
  // The client is the one that a trusted proxy names, and no other header counts.
  t.is(await status('/guarded', proxy, HTTP, { 'x-forwarded-for': friend }), 200);
  t.is(await status('/guarded', proxy, HTTP, { 'x-forwarded-for': stranger }), 403);
  t.is(await status('/guarded', stranger, HTTP, { 'x-forwarded-for': friend }), 403);
  // A copy of a request has no client.
  const requests = guarded?.requests ?? 0;
  for (let at = 0; at < 5; at++) t.is(await status('/both', friend), 200);
  t.is(guarded?.requests, requests);
  t.regex((await host.command('why', ['gateway/default/edge'])).stdout, /served/);

  await allow(`${stranger}/32`);
  await host.until('the stranger is served', async () => (await status('/guarded', stranger)) === 200);
  t.is(await status('/guarded', friend), 403);
  await allow('2001:db8::/32');
  await host.until('no client is served', async () => (await status('/guarded', stranger)) === 403);
  t.is(await status('/guarded', friend), 403);
  await host.remove('policy.yaml');
  await host.until('everybody is served', async () => (await status('/guarded', friend)) === 200);
  t.is(await status('/guarded', stranger), 200);
});

function pod(app: string, address: string): Json {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: app, namespace: 'default', labels: { app } },
    spec: {},
    status: { phase: 'Running', podIPs: [{ ip: address }] },
  };
}
