// Ingresses from a folder of manifests to real requests at the real HAProxy.

import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { API, type PemPair, WEB } from '../support/values/certificates.ts';
import { ingressClassJson, ingressJson } from '../support/values/gateways.ts';
import type { Json } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'curl'], root: true });

const VIP = '10.9.0.100';
const MEMBER_PORT = 8080;
const PREFIX = 'nginx.ingress.kubernetes.io/';

/** Answers with its name, and what it got. */
const MEMBER = (name: string) => `
  require('http').createServer((request, response) => {
    const { method, url, headers } = request;
    request.resume().on('end', () => response.end(JSON.stringify({ by: '${name}', method, url, headers })));
  }).listen(${MEMBER_PORT});`;

interface Answer {
  readonly status: number;
  readonly location: string;
  readonly by: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

test('Hosts, paths and their changes are followed without a reload', async (t) => {
  const { host, agent, ask, backends } = await served(t);
  await host.write('web.yaml', [
    ...backends(),
    ingressClass(),
    ingressJson('shop', rules('shop.example.org', { '/': 'web' })),
  ]);
  await host.until('it answers', async () => (await ask('shop.example.org', '/')).by === 'web');
  t.is((await ask('shop.example.org', '/any/path?q=1')).url, '/any/path?q=1');
  t.is((await ask('other.example.org', '/')).status, 404);

  const reloads = async () => (await agent.metrics())('headgate_haproxy_reloads_total');
  const before = await reloads();
  await host.write('web.yaml', [
    ...backends(),
    ingressClass(),
    ingressJson('shop', rules('shop.example.org', { '/': 'web', '/api': 'web' })),
    ingressJson('wild', rules('*.example.org', { '/': 'web' })),
  ]);
  await host.until('a wildcard answers', async () => (await ask('other.example.org', '/')).by === 'web');
  t.is((await ask('a.b.example.org', '/')).status, 404);
  t.is(await reloads(), before);
});

test('Paths with TLS are served on port 443 with the certificate of their host, and port 80 leads there', async (t) => {
  const { host, ask, curl, backends } = await served(t);
  await host.write('web.yaml', [
    ...backends(),
    ingressClass(),
    tlsSecret('web-tls', WEB),
    tlsSecret('api-tls', API),
    ingressJson('web', {
      ...rules('web.example', { '/': 'web' }),
      tls: [{ hosts: ['web.example'], secretName: 'web-tls' }],
    }),
    ingressJson('api', {
      ...rules('api.example', { '/': 'next' }),
      tls: [{ hosts: ['api.example'], secretName: 'api-tls' }],
    }),
  ]);
  await host.until('it answers', async () => (await ask('web.example', '/x', { https: true })).by === 'web');
  const plain = await ask('web.example', '/x?q=1');
  t.is(plain.status, 308);
  t.is(plain.location, 'https://web.example/x?q=1');
  t.is((await ask('api.example', '/', { https: true })).by, 'next');
  const subject = async (name: string) =>
    /subject:.*CN\s*=\s*(\S+)/.exec(
      await curl('-vk', '--resolve', `${name}:443:${VIP}`, `https://${name}/`),
    )?.[1];
  t.not(await subject('web.example'), await subject('api.example'));
});

test('Annotations of ingress-nginx do what they say', async (t) => {
  const { host, ask, backends } = await served(t);
  const canary = {
    [`${PREFIX}canary`]: 'true',
    [`${PREFIX}canary-by-header`]: 'X-Canary',
    [`${PREFIX}canary-by-cookie`]: 'canary',
    [`${PREFIX}canary-weight`]: '50',
  };
  await host.write('web.yaml', [
    ...backends(),
    ingressClass(),
    ingressJson('shop', rules('shop.example.org', { '/': 'web' })),
    ingressJson('next', rules('shop.example.org', { '/': 'next' }), canary),
    ingressJson('cut', rules('cut.example.org', { '/shop(/|$)(.*)': 'web' }), {
      [`${PREFIX}rewrite-target`]: '/base/$2',
    }),
    ingressJson('groups', rules('groups.example.org', { '/v([0-9]+)/?(.*)': 'web' }), {
      [`${PREFIX}rewrite-target`]: '/$2/v$1',
    }),
    ingressJson('gone', rules('gone.example.org', { '/': 'web' }), {
      [`${PREFIX}permanent-redirect`]: 'https://new.example.org/x',
    }),
    ingressJson('moved', rules('moved.example.org', { '/a': 'web' }), {
      [`${PREFIX}permanent-redirect`]: 'https://new.example.org/old$request_uri',
    }),
    ingressJson('named', rules('named.example.org', { '/': 'web' }), {
      [`${PREFIX}temporal-redirect`]: '$scheme://www.$host$uri?from=$host',
    }),
    ingressJson('root', rules('root.example.org', { '/': 'web' }), { [`${PREFIX}app-root`]: '/a?x=1' }),
    ingressJson('asked', rules('asked.example.org', { '/': 'web' }), {
      [`${PREFIX}app-root`]: '/login$is_args$args',
    }),
    ingressJson('away', rules('away.example.org', { '/old/?(.*)': 'web' }), {
      [`${PREFIX}rewrite-target`]: 'https://new.example.org:8443/in/$1',
    }),
    ingressJson('fixed', rules('fixed.example.org', { '/old': 'web' }), {
      [`${PREFIX}rewrite-target`]: 'https://new.example.org/$1',
    }),
    ingressJson('small', rules('small.example.org', { '/': 'web' }), { [`${PREFIX}proxy-body-size`]: '10' }),
    ingressJson('own', rules('own.example.org', { '/': 'web' }), {
      [`${PREFIX}whitelist-source-range`]: '192.0.2.0/24',
    }),
    ingressJson('own-next', rules('own.example.org', { '/': 'next' }), {
      ...canary,
      [`${PREFIX}proxy-body-size`]: '10',
    }),
    ingressJson('odd', rules('odd.example.org', { '/': 'web' }), {
      [`${PREFIX}server-snippet`]: 'deny all;',
    }),
    ...guardedPaths(),
  ]);
  await host.until('it answers', async () => (await ask('own.example.org', '/')).status === 403);
  t.is((await ask('odd.example.org', '/')).status, 403);
  for (const [url, status] of [
    ['/api/x', 200],
    ['/api/admin', 403],
    ['/api/admin/x', 403],
    ['/API/Admin', 403],
    ['/api/administrator', 403],
    ['/API/x', 200],
    ['/moved/x', 403],
    ['/Moved/x', 403],
    ['/moved/open/x', 200],
    ['/inner', 403],
    ['/inner/x', 403],
    ['/inner.php', 403],
    ['/INNER/x', 403],
    ['/inner-open/x', 200],
    ['/in', 200],
  ] as const)
    t.is((await ask('paths.example.org', url)).status, status, url);
  t.is((await ask('paths.example.org', '/moved/open/x')).url, '/new/x');
  t.is((await ask('shop.example.org', '/', { headers: ['X-Canary: always'] })).by, 'next');
  t.is((await ask('shop.example.org', '/', { headers: ['Cookie: a=b; canary=always'] })).by, 'next');
  const never = ['X-Canary: never', 'Cookie: canary=always'];
  t.is((await ask('shop.example.org', '/', { headers: never })).by, 'web');
  const by: string[] = [];
  for (let at = 0; at < 40; at++) by.push((await ask('shop.example.org', '/')).by);
  t.deepEqual([...new Set(by)].sort(), ['next', 'web']);

  t.is((await ask('cut.example.org', '/shop/a/b?q=1')).url, '/base/a/b?q=1');
  t.is((await ask('cut.example.org', '/shop')).url, '/base');
  t.is((await ask('cut.example.org', '/other')).status, 404);
  t.is((await ask('groups.example.org', '/v12/a/b?q=1')).url, '/a/b/v12?q=1');
  t.is((await ask('groups.example.org', '/v1..')).status, 400);
  t.is((await ask('groups.example.org', '/x')).status, 404);
  const gone = await ask('gone.example.org', '/y');
  t.deepEqual([gone.status, gone.location], [301, 'https://new.example.org/x']);
  const withQuery = await ask('gone.example.org', '/y?z=1');
  t.is(withQuery.location, 'https://new.example.org/x');
  for (const [host, url, status, location] of [
    ['moved', '/a/b?c=$uri', 301, 'https://new.example.org/old/a/b?c=$uri'],
    ['named', '/%24host/e?c=1', 302, 'http://www.named.example.org/$host/e?from=named.example.org'],
    ['root', '/', 302, 'http://root.example.org/a?x=1'],
    ['asked', '/', 302, 'http://asked.example.org/login'],
    ['asked', '/?a=$host&b=2', 302, 'http://asked.example.org/login?a=$host&b=2'],
    ['away', '/old/a/b?c=1', 302, 'https://new.example.org:8443/in/a/b?c=1'],
    ['away', '/Old', 302, 'https://new.example.org:8443/in/'],
    ['fixed', '/old/a', 302, 'https://new.example.org/'],
  ] as const) {
    const moved = await ask(`${host}.example.org`, url);
    t.deepEqual([moved.status, moved.location], [status, location]);
  }
  t.is((await ask('root.example.org', '/b')).by, 'web');
  t.is((await ask('small.example.org', '/', { body: 'x'.repeat(11) })).status, 413);
  t.is((await ask('small.example.org', '/', { body: 'x'.repeat(10) })).by, 'web');
  t.is((await ask('own.example.org', '/')).status, 403);
  const around = await ask('own.example.org', '/', { headers: ['X-Canary: always'] });
  t.is(around.status, 403, 'A canary with a limit of its own is no way around the ranges');

  const { problems } = await host.status();
  t.true(
    problems.some(({ object, reason }) => object === 'Ingress default/odd' && reason === 'InvalidAnnotation'),
  );
});

test('A client keeps its member by a cookie, also of members that came later, and after a reload', async (t) => {
  const { host, agent, network, curl } = await served(t);
  const objects = (members: readonly string[], more: readonly Json[] = []) => [
    ...backend(
      'web',
      members.map((each) => network.v4(each)),
    ),
    ingressClass(),
    ingressJson('shop', rules('shop.example.org', { '/': 'web' }), { [`${PREFIX}affinity`]: 'cookie' }),
    ...more,
  ];
  const ask = async (cookie: string) => {
    const words = ['-i', '--resolve', `shop.example.org:80:${VIP}`, 'http://shop.example.org/'];
    const text = await curl(...(cookie === '' ? [] : ['-H', `Cookie: INGRESSCOOKIE=${cookie}`]), ...words);
    return {
      by: /"by":"(\w+)"/.exec(text)?.[1],
      cookie: /set-cookie: INGRESSCOOKIE=(\w+)/i.exec(text)?.[1] ?? '',
    };
  };
  await host.write('web.yaml', objects(['m1']));
  await host.until('m1 answers', async () => (await ask('')).by === 'web');
  const words = ['-i', '--resolve', `shop.example.org:80:${VIP}`, 'http://shop.example.org/'];
  t.regex(await curl(...words), /^set-cookie: INGRESSCOOKIE=\w+; path=\/; HttpOnly; SameSite=Lax\r$/im);
  await host.write('web.yaml', objects(['m1', 'm2']));
  let later = { by: undefined as string | undefined, cookie: '' };
  await host.until('m2 answers', async () => {
    later = await ask('');
    return later.by === 'next';
  });
  t.regex(later.cookie, /^\w+$/);
  for (let at = 0; at < 10; at++) t.is((await ask(later.cookie)).by, 'next');

  const reloads = async () => (await agent.metrics())('headgate_haproxy_reloads_total');
  const before = await reloads();
  const other = ingressJson('other', rules('other.example.org', { '/': 'other' }));
  await host.write('web.yaml', objects(['m1', 'm2'], [...backend('other', [network.v4('m1')]), other]));
  await host.until('HAProxy has reloaded', async () => (await reloads()) > before);
  for (let at = 0; at < 10; at++) t.is((await ask(later.cookie)).by, 'next');

  // Another name and other attributes of the same pool's cookie are rows of maps.
  const named = ingressJson('named', rules('named.example.org', { '/': 'web' }), {
    [`${PREFIX}affinity`]: 'cookie',
    [`${PREFIX}session-cookie-name`]: 'route',
    [`${PREFIX}session-cookie-max-age`]: '60',
    [`${PREFIX}session-cookie-samesite`]: 'None',
    [`${PREFIX}session-cookie-secure`]: 'true',
  });
  const after = await reloads();
  await host.write(
    'web.yaml',
    objects(['m1', 'm2'], [...backend('other', [network.v4('m1')]), other, named]),
  );
  const askNamed = (...cookie: readonly string[]) =>
    curl(...cookie, '-i', '--resolve', `named.example.org:80:${VIP}`, 'http://named.example.org/');
  await host.until('the named cookie is set', async () =>
    /^set-cookie: route=\w+; Path=\/; Max-Age=60; HttpOnly; SameSite=None; Secure\r$/im.test(
      await askNamed(),
    ),
  );
  for (let at = 0; at < 10; at++) {
    const text = await askNamed('-H', `Cookie: a=b; route=${later.cookie}`);
    t.is(/"by":"(\w+)"/.exec(text)?.[1], 'next');
    t.notRegex(text, /set-cookie/i);
  }
  t.is(await reloads(), after);
});

async function served(t: ExecutionContext) {
  const network = await TestNetwork.create(t, ['client', 'a', 'm1', 'm2']);
  await network.run('a', 'ip', 'address', 'add', `${VIP}/32`, 'dev', 'eth0');
  network.start('m1', process.execPath, '-e', MEMBER('web'));
  network.start('m2', process.execPath, '-e', MEMBER('next'));
  const host = await TestHost.create(t, { flags: ['--netns', network.netns('a')] });
  const agent = await host.start();
  const curl = async (...words: readonly string[]): Promise<string> => {
    const { stdout, stderr } = await network.try('client', 'curl', '-s', '--max-time', '5', ...words);
    return `${stdout}${stderr}`;
  };
  const ask = async (
    name: string,
    path: string,
    given: { readonly https?: boolean; readonly headers?: readonly string[]; readonly body?: string } = {},
  ): Promise<Answer> => {
    const scheme = given.https ? 'https' : 'http';
    const words = ['--path-as-is', '-k', '--resolve', `${name}:${given.https ? 443 : 80}:${VIP}`];
    for (const header of given.headers ?? []) words.push('-H', header);
    if (given.body !== undefined) words.push('-d', given.body);
    const text = await curl(...words, '-w', '\n%{http_code} %{redirect_url}', `${scheme}://${name}${path}`);
    const [, body = '', status = '0', location = ''] = /^([\s\S]*)\n(\d+) (\S*)/.exec(text) ?? [];
    const echoed = body.startsWith('{') ? JSON.parse(body) : { by: '', url: '', headers: {} };
    return { ...echoed, status: Number(status), location };
  };
  const backends = () => [...backend('web', [network.v4('m1')]), ...backend('next', [network.v4('m2')])];
  return { host, agent, network, ask, curl, backends };
}

function ingressClass(): Json {
  return ingressClassJson('edge', { 'headgate.io/load-balancer-ips': VIP });
}

function backend(name: string, addresses: readonly string[]): readonly Json[] {
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: MEMBER_PORT }] },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      endpoints: addresses.map((address) => ({ addresses: [address] })),
      ports: [{ name: 'http', port: MEMBER_PORT, protocol: 'TCP' }],
    },
  ];
}

/** Paths that are guarded beside wider ones that are not. */
function guardedPaths(): readonly Json[] {
  const guard = { [`${PREFIX}whitelist-source-range`]: '192.0.2.0/24' };
  const letters = { path: '/inner', pathType: 'ImplementationSpecific' };
  const backend = { service: { name: 'web', port: { number: 80 } } };
  const inner = { rules: [{ host: 'paths.example.org', http: { paths: [{ ...letters, backend }] } }] };
  return [
    ingressJson(
      'open',
      rules('paths.example.org', { '/': 'web', '/inner-open': 'web', '/(api)/.*': 'web' }),
      {
        [`${PREFIX}use-regex`]: 'true',
      },
    ),
    ingressJson('longer', rules('paths.example.org', { '/api/admin': 'web' }), guard),
    ingressJson('inner', inner, guard),
    ingressJson('below', rules('paths.example.org', { '/moved(/|$)(.*)': 'web' }), {
      ...guard,
      [`${PREFIX}rewrite-target`]: '/$2',
    }),
    ingressJson('below-open', rules('paths.example.org', { '/moved/open(/|$)(.*)': 'web' }), {
      [`${PREFIX}rewrite-target`]: '/new/$2',
    }),
  ];
}

/** Services by path; a path with a group is `ImplementationSpecific`. */
function rules(host: string, services: Readonly<Record<string, string>>): Json {
  const paths = Object.entries(services).map(([path, name]) => ({
    path,
    pathType: path.includes('(') ? 'ImplementationSpecific' : 'Prefix',
    backend: { service: { name, port: { number: 80 } } },
  }));
  return { rules: [{ host, http: { paths } }] };
}

function tlsSecret(name: string, { cert, key }: PemPair): Json {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'kubernetes.io/tls',
    metadata: { name },
    stringData: { 'tls.crt': cert, 'tls.key': key },
  };
}
