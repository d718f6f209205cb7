// What clients get instead of HAProxy's own answers.

import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { checkErrorPages, MAX_PAGE_BYTES, PAGE_STATUSES } from '../../agent/certificates/error-pages.ts';
import { checkUserLines } from '../../agent/certificates/users.ts';
import type { Listener } from '../../agent/model/load-balancer.ts';
import type { RouteRule } from '../../agent/model/routes.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { type RenderedHaproxy, startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { TestHost } from '../support/host/agent.ts';
import { type Answer, request, startEcho } from '../support/traffic/echo.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';
import { entryOf, forwardTo, gatewayOf, POOL, poolOf, sectionOf } from '../support/values/routes.ts';
import { VIP_PORT, webObjects } from '../support/values/service-objects.ts';
import { HASHES } from '../support/values/users.ts';

const test = requires(ava, { haproxy: true });

const HOST = 'shop.example.org';
/** With all that means something in HAProxy's configuration, in a log format, in a template or in a shell. */
const bodyOf = (status: string): string =>
  `<h1>${status}: "Ä" 'x' \\ %[src] $HOME {{name}} # \${x} %% </h1>\r\n\n${status === '503' ? 'x'.repeat(MAX_PAGE_BYTES - 80) : ''}`;

/** A member that closes each connection, and one that never answers. */
async function startBroken(t: ExecutionContext, behaviour: 'closes' | 'waits'): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => behaviour === 'closes' && socket.destroy());
    t.teardown(() => socket.destroy());
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  return `127.0.0.1:${port}`;
}

interface Behind {
  readonly ask: (
    path: string,
    headers?: Readonly<Record<string, string>>,
    method?: string,
  ) => Promise<Answer>;
  readonly haproxy: RenderedHaproxy;
}

async function behind(t: ExecutionContext, statuses: readonly string[]): Promise<Behind> {
  const pages = checkErrorPages(Object.fromEntries(statuses.map((status) => [status, bodyOf(status)])));
  const users = checkUserLines(`ann:${HASHES.sha512}`);
  if (typeof pages === 'string' || typeof users === 'string') throw new Error('Not checked');
  const place: Place = { address: '127.0.0.1', port: await freePort() };
  const name = 'configmap default/pages';
  const changes: Partial<Listener> = {
    errorPages: { name, fingerprint: pages.fingerprint, statuses: pages.statuses },
    userLists: [{ name: 'secret default/users', fingerprint: users.fingerprint }],
  };
  const limits = { allowedCidrs: [], deniedCidrs: [], requestRate: 0, bodyBytes: 0 };
  const auth = { secret: 'default/users', realm: 'Shop', removesHeader: false };
  const to = (pool: string, more: Partial<RouteRule> = {}) => [pool, more] as const;
  const routes = {
    '/denied': to('web', { limits: { ...limits, deniedCidrs: ['127.0.0.0/8'] } }),
    '/often': to('web', { limits: { ...limits, requestRate: 1 } }),
    '/long': to('web', { limits: { ...limits, bodyBytes: 10 } }),
    '/password': to('web', { auth }),
    '/closes': to('closes'),
    '/waits': to('waits'),
    '/empty': to('empty'),
    '/web': to('web'),
  };
  const entries = Object.entries(routes).map(([path, [pool, more]]) => entryOf(path, pool, more));
  entries.push(entryOf('/nothing', forwardTo({})));
  const timeouts = { ...POOL.timeouts, server: 200 };
  const haproxy = await startRendered(
    t,
    [
      gatewayOf(place, [sectionOf('http', '*', { [HOST]: entries })], changes),
      poolOf('web', [await startEcho(t, 'web')]),
      poolOf('closes', [await startBroken(t, 'closes')]),
      poolOf('waits', [await startBroken(t, 'waits')], { pool: { ...POOL, timeouts } }),
      poolOf('empty', []),
    ],
    {
      pems: {
        certificate: () => undefined,
        authority: () => undefined,
        crl: () => undefined,
        users: () => users.pem.reveal(),
        pages: () => pages.pem.reveal(),
      },
    },
  );
  const ask: Behind['ask'] = (path, headers = {}, method = 'GET') =>
    request(place, path, { method, headers: { host: HOST, ...headers } });
  return { ask, haproxy };
}

/** Each status by a request that gets it. */
const ASKING: Readonly<Record<string, (ask: Behind['ask']) => Promise<Answer>>> = {
  400: (ask) => ask('/web/../x'),
  401: (ask) => ask('/password'),
  403: (ask) => ask('/denied'),
  404: (ask) => ask('/other'),
  413: (ask) => ask('/long', { 'content-length': '11' }, 'POST'),
  429: async (ask) => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => ask('/often')));
    return answers.find(({ status }) => status === 429) ?? (answers[0] as Answer);
  },
  500: (ask) => ask('/nothing'),
  502: (ask) => ask('/closes'),
  503: (ask) => ask('/empty'),
  504: (ask) => ask('/waits'),
};

test('Each status that HAProxy answers with has its page, byte by byte', async (t) => {
  t.deepEqual(Object.keys(ASKING), PAGE_STATUSES);
  const { ask, haproxy } = await behind(t, PAGE_STATUSES);
  for (const [status, asking] of Object.entries(ASKING)) {
    const answer = await asking(ask);
    t.is(String(answer.status), status);
    t.is(Buffer.from(answer.body, 'latin1').toString(), bodyOf(status));
    t.is(answer.headers['content-type'], 'text/html; charset=utf-8', status);
    t.is(answer.headers['cache-control'], 'no-cache', status);
    t.is(answer.headers['content-length'], String(Buffer.byteLength(bodyOf(status))), status);
  }
  t.is((await ASKING[401]?.(ask))?.headers['www-authenticate'], 'Basic realm="Shop"');
  t.is((await ask('/web')).echo?.member, 'web');
  const head = await ask('/other', {}, 'HEAD');
  t.deepEqual([head.status, head.body], [404, '']);
  const config = await readFile(haproxy.paths.config, 'utf8');
  t.false(config.includes('<h1>'));
});

test('Statuses without a page keep the short texts of this load balancer', async (t) => {
  const { ask } = await behind(t, ['502']);
  for (const [status, asking] of Object.entries(ASKING)) {
    const answer = await asking(ask);
    t.is(String(answer.status), status);
    t.is(answer.body.includes('%[src]'), status === '502', status);
  }
  t.is((await ask('/denied')).body, 'client not allowed\n');
  t.is((await ask('/other')).body, 'no route\n');
});

test('A page of the largest size that is allowed arrives whole', async (t) => {
  const pages = checkErrorPages({ 404: 'p'.repeat(MAX_PAGE_BYTES), 503: 'q'.repeat(MAX_PAGE_BYTES) });
  if (typeof pages === 'string') throw new Error(pages);
  const place = { address: '127.0.0.1', port: await freePort() };
  const errorPages = { name: 'configmap default/pages', ...pages };
  const gateway = gatewayOf(place, [sectionOf('http', '*', { [HOST]: [entryOf('/', 'empty')] })], {
    errorPages,
    requestIds: true,
  });
  const none = () => undefined;
  const pems = { certificate: none, authority: none, crl: none, pages: () => pages.pem.reveal() };
  await startRendered(t, [gateway, poolOf('empty', [])], { pems });
  const of = async (host: string) => {
    const { status, body, headers } = await request(place, '/', { headers: { host } });
    t.regex(headers['x-request-id'] ?? '', /^[0-9a-f-]{36}$/);
    return [status, body.length];
  };
  t.deepEqual(await of('other.example'), [404, MAX_PAGE_BYTES]);
  t.deepEqual(await of(HOST), [503, MAX_PAGE_BYTES]);
});

test.serial(
  'Pages of a ConfigMap are followed by a reload, and stay over a restart of the agent',
  async (t) => {
    const host = await TestHost.create(t);
    const place = { address: host.address(1), port: VIP_PORT };
    const [, slice = {}] = webObjects({ address: '', members: ['127.0.0.1'], portName: 'http' });
    const gateway = gatewayJson('edge', {
      addresses: [{ type: 'IPAddress', value: place.address }],
      listeners: [{ name: 'http', port: place.port, protocol: 'HTTP' }],
    });
    const annotations = { 'headgate.io/error-pages': 'pages' };
    await host.write('objects.yaml', [
      gatewayClassJson(),
      { ...gateway, metadata: { ...(gateway.metadata as object), annotations } },
      routeJson('shop', [{ name: 'edge' }], { hostnames: [HOST] }),
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { namespace: 'default', name: 'web' },
        spec: {
          type: 'ClusterIP',
          clusterIP: '10.96.0.1',
          ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
        },
      },
      slice,
    ]);
    const configMap = (data: Readonly<Record<string, string>>) =>
      host.write('pages.yaml', [
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name: 'pages' }, data },
      ]);
    const bodyNow = async () => (await request(place, '/', { headers: { host: 'other.example' } })).body;
    const agent = await host.start();
    await host.until(
      'without the ConfigMap it is a short text',
      async () => (await bodyNow()) === 'no route\n',
    );
    t.is((await agent.metrics())('headgate_problems', { reason: 'InvalidErrorPages' }), 1);

    await configMap({ 404: 'first', '404.html': 'x' });
    await host.until('the page is served', async () => (await bodyNow()) === 'first');
    t.is((await agent.metrics())('headgate_problems', { reason: 'InvalidErrorPages' }), 1);
    const why = await host.command('why', ['gateway:default/edge']);
    t.regex(why.stdout, /key "404.html" is not a status that can have a page/);

    await configMap({ 404: 'second' });
    await host.until('the next one, too', async () => (await bodyNow()) === 'second');
    t.is((await agent.metrics())('headgate_problems', { reason: 'InvalidErrorPages' }) ?? 0, 0);

    const { pages } = host.paths;
    await rm(pages, { recursive: true });
    await host.until('a removed file comes back', async () =>
      (await readdir(pages).catch(() => [])).some((file) => file.endsWith('_404.html')),
    );
    const output = join(host.directory, 'rendered');
    await host.command('render', ['--output', output]);
    const [rendered = ''] = await readdir(join(output, 'haproxy', 'pages'));
    t.is(await readFile(join(output, 'haproxy', 'pages', rendered), 'utf8'), 'second');

    const { mtimeMs } = await stat(join(pages, rendered));
    await agent.stop();
    await host.start();
    t.is(await bodyNow(), 'second');
    t.is((await stat(join(pages, rendered))).mtimeMs, mtimeMs);

    await host.remove('pages.yaml');
    await host.until('the short text without the ConfigMap', async () => (await bodyNow()) === 'no route\n');
  },
);
