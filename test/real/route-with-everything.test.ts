// One HTTPRoute with every filter, option and annotation that may stand together, through a whole agent: each does what it does
// alone.

import ava from 'ava';
import { eventually } from '../support/basics/eventually.ts';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { type Echo, request, startEcho } from '../support/traffic/echo.ts';
import { backendObjects, gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';
import { basic, HASHES } from '../support/values/users.ts';

const test = requires(ava, { haproxy: true });

const PORT = 8080;
const ORIGIN = 'https://app.example';
/** What the route asks for. */
const ASKED = { host: 'shop.example', 'x-env': 'prod', origin: ORIGIN, ...basic('ann', 'open') };

const headers = (type: 'Request' | 'Response', changes: object) => ({
  type: `${type}HeaderModifier`,
  [type === 'Request' ? 'requestHeaderModifier' : 'responseHeaderModifier']: changes,
});

const changed = (name: string) => ({
  set: [{ name: `${name}-set`, value: 'rule' }],
  add: [{ name: `${name}-add`, value: 'rule' }],
  remove: [`${name}-remove`],
});

const backend = (name: string) => ({
  name,
  port: 80,
  filters: [
    headers('Request', { set: [{ name: 'x-backend', value: name }] }),
    headers('Response', { set: [{ name: 'x-answered-by', value: name }] }),
  ],
});

const ANNOTATIONS = {
  'headgate.io/auth-type': 'basic',
  'headgate.io/auth-secret': 'users',
  'headgate.io/auth-remove-header': 'true',
  'headgate.io/proxy-body-size': '1k',
  'headgate.io/limit-rps': '1000',
};

const RULE = {
  matches: [
    {
      path: { type: 'PathPrefix', value: '/shop' },
      method: 'POST',
      headers: [{ name: 'x-env', value: 'prod' }],
      queryParams: [{ type: 'RegularExpression', name: 'v', value: '[0-9]+' }],
    },
    // A preflight request has none of these.
    { path: { type: 'PathPrefix', value: '/shop' }, method: 'OPTIONS' },
  ],
  filters: [
    headers('Request', changed('x-request')),
    headers('Response', changed('x-response')),
    {
      type: 'URLRewrite',
      urlRewrite: {
        hostname: 'inner.example',
        path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/store' },
      },
    },
    { type: 'RequestMirror', requestMirror: { backendRef: { name: 'copies', port: 80 } } },
    {
      type: 'CORS',
      cors: { allowOrigins: [ORIGIN], allowMethods: ['POST'], allowCredentials: true, maxAge: 60 },
    },
  ],
  timeouts: { request: '5s', backendRequest: '2s' },
  retry: { attempts: 1, codes: [503] },
  sessionPersistence: { sessionName: 'basket', type: 'Cookie' },
  backendRefs: [backend('web'), { ...backend('api'), weight: 0 }],
};

test.serial('An HTTPRoute with everything that may stand together does all of it', async (t) => {
  const host = await TestHost.create(t);
  const [place, from] = [{ address: host.address(1), port: PORT }, host.address(9)];
  const gateway = gatewayJson('edge', {
    addresses: [{ type: 'IPAddress', value: place.address }],
    listeners: [{ name: 'http', port: PORT, protocol: 'HTTP' }],
  });
  const copies: Echo[] = [];
  const [web, otherWeb] = [await startEcho(t, 'web'), await startEcho(t, 'web-2')];
  const api = await startEcho(t, 'api');
  const copy = await startEcho(t, 'copies', (echo) => copies.push(echo));
  const [, slice = {}] = backendObjects('web', otherWeb);
  const route = routeJson('all', [{ name: 'edge' }], { hostnames: ['shop.example'], rules: [RULE] });
  const annotations = { ...ANNOTATIONS, 'headgate.io/whitelist-source-range': `${from}/32` };
  await host.write('objects.yaml', [
    gatewayClassJson(),
    gateway,
    ...backendObjects('web', web),
    { ...slice, metadata: { ...(slice.metadata as object), name: 'web-2' } },
    ...backendObjects('api', api),
    ...backendObjects('copies', copy),
    { ...route, metadata: { ...(route.metadata as object), annotations } },
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: 'default', name: 'users' },
      stringData: { auth: `ann:${HASHES.bcrypt}` },
    },
  ]);
  await host.start();
  const ask = (more: Readonly<Record<string, string>> = {}, url = '/shop/x?v=1', body = 'order') =>
    request({ ...place, from }, url, {
      method: 'POST',
      headers: { ...ASKED, 'content-length': String(body.length), ...more },
      body,
    });
  await eventually(
    () => ask().catch(() => undefined),
    (answer) => answer?.status === 200,
  );
  copies.length = 0;

  const sent = {
    'x-request-set': 'client',
    'x-request-add': 'client',
    'x-request-remove': 'client',
  };
  const { echo, headers: answered } = await ask(sent);
  t.is(echo?.url, '/store/x?v=1');
  t.is(echo?.body, 'order');
  t.like(echo?.headers, {
    host: 'inner.example',
    'x-request-set': 'rule',
    'x-request-add': 'client, rule',
    'x-backend': 'web',
  });
  t.is(echo?.headers['x-request-remove'], undefined);
  t.is(echo?.headers.authorization, undefined);
  t.like(answered, {
    'x-response-set': 'rule',
    'x-response-add': 'rule',
    'x-answered-by': 'web',
    'access-control-allow-origin': ORIGIN,
    'access-control-allow-credentials': 'true',
  });
  await eventually(
    async () => copies,
    ([first]) => first?.url === '/store/x?v=1',
  );

  const cookie = answered['set-cookie']?.split(';', 1)[0] ?? '';
  t.regex(cookie, /^HEADGATE=./);
  for (let at = 0; at < 20; at++) t.is((await ask({ cookie })).echo?.member, echo?.member);

  const preflight = await request({ ...place, from }, '/shop/x?v=1', {
    method: 'OPTIONS',
    headers: { host: ASKED.host, origin: ORIGIN, 'access-control-request-method': 'POST' },
  });
  t.is(preflight.headers['access-control-allow-methods'], 'POST');
  const members = new Set<string | undefined>();
  for (let at = 0; at < 20; at++) members.add((await ask()).echo?.member);
  t.deepEqual([...members].sort(), ['web', 'web-2'], 'without the cookie');
  t.is((await ask({ authorization: 'Basic eDp5' })).status, 401);
  t.is((await ask({ 'x-env': 'test' })).status, 404);
  t.is((await ask({}, '/shop/x?v=a')).status, 404);
  t.is((await ask({}, '/shop/x?v=1', 'x'.repeat(1_025))).status, 413);
  const other = await request({ ...place, from: host.address(8) }, '/shop/x?v=1', {
    method: 'POST',
    headers: { ...ASKED, 'content-length': '0' },
  });
  t.is(other.status, 403);
  t.is((await host.why('gateway:default/edge')).verdict, 'served');
});
