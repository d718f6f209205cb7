// Answers of a default backend instead of members (custom-http-errors), and what it gets while there is no member: Ingresses from a
// folder of manifests to requests at the real HAProxy.

import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { ingressClassJson, ingressJson } from '../support/values/gateways.ts';
import type { Json } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'curl'], root: true });

const VIP = '10.9.0.100';
const PORT = 8080;
const PREFIX = 'nginx.ingress.kubernetes.io/';

/** Answers with the status in the path. */
const MEMBER = `
  require('http').createServer((request, response) => {
    request.resume();
    const headers = { 'x-member': 'yes', 'set-cookie': 'member=1', 'www-authenticate': 'Basic realm="m"' };
    response.writeHead(Number(request.url.slice(1, 4)) || 200, headers);
    response.end('secret of the member'.repeat(request.url.includes('big') ? 100000 : 1));
  }).listen(${PORT});`;

/** Answers with status 418 and what it got, or as the file \`mode\` says. */
const PAGES = `
  let mode = 'echo';
  require('http').createServer((request, response) => { mode = request.url.slice(1); response.end(); }).listen(8081);
  require('http').createServer((request, response) => {
    request.resume();
    const { method, url, headers } = request;
    if (mode === 'hang') return;
    if (mode === 'cut') return request.socket.destroy();
    if (mode === 'close') return request.socket.end('HTTP/1.1 418 Teapot\\r\\n\\r\\nto its end');
    if (mode === 'never') return request.socket.write('HTTP/1.1 418 Teapot\\r\\n\\r\\n' + 'x'.repeat(30000));
    if (mode === 'empty') return response.writeHead(204).end();
    if (mode.startsWith('fields'))
      for (let at = 0; at < Number(mode.slice(6)); at++) response.setHeader('x-' + at, '1');
    response.writeHead(mode === 'again' ? 404 : 418, { 'content-type': 'application/json', 'set-cookie': ['a=1', 'b=2'] });
    if (mode === 'endless') {
      const more = () => { while (response.write('x'.repeat(10000))); response.once('drain', more); };
      return more();
    }
    if (mode.startsWith('size')) return response.end('p'.repeat(Number(mode.slice(4))));
    response.end(JSON.stringify({ method, url, headers }));
  }).listen(${PORT});`;

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly head: string;
}

const SHOP = {
  'custom-http-errors': '404, 401,503',
  'default-backend': 'pages',
  'enable-cors': 'true',
  'cors-allow-origin': 'https://a.example',
};

test('A default backend answers instead of members, with its own status and the headers of ingress-nginx', async (t) => {
  const { ask, mode } = await served(t);
  t.is((await ask('/200')).body, 'secret of the member');
  t.is((await ask('/500')).body, 'secret of the member', 'another status');
  const words = ['-H', 'Accept: text/html', '-H', 'Cookie: a=b', '-H', 'Authorization: Basic eDp5'];
  const client = [
    ...words,
    '-H',
    'X-Code: 1',
    '-H',
    'x-headgate-pool: pool:x',
    '-H',
    'Origin: https://a.example',
  ];
  const found = await ask('/404/a?b=c', client);
  t.is(found.status, 418);
  const { method, url, headers } = JSON.parse(found.body);
  t.is(`${method} ${url}`, 'GET /');
  t.like(headers, {
    'x-code': '404',
    'x-format': 'text/html',
    'x-original-uri': '/404/a?b=c',
    'x-namespace': 'default',
    'x-ingress-name': 'shop',
    'x-service-name': 'web',
    'x-service-port': '80',
    host: 'shop.example.org',
  });
  t.is(/x-request-id: (\S+)/.exec(found.head)?.[1], headers['x-request-id']);
  t.is(headers.cookie, undefined);
  t.is(headers.authorization, undefined);
  const own = Object.keys(headers).filter((name) => name.startsWith('x-headgate'));
  t.deepEqual(own, ['x-headgate-question']);
  const loop = await ask('/404', ['-H', 'x-headgate-question: 1']);
  t.is(`${loop.status} ${loop.body}`, '404 Error 404\n', 'a question of its own');
  t.regex(found.head, /set-cookie: a=1\r\n/);
  t.regex(found.head, /set-cookie: b=2\r\n/);
  t.regex(found.head, /access-control-allow-origin: https:\/\/a\.example\r\n/);
  t.regex(found.head, /strict-transport-security: max-age=60\r\n/);
  t.notRegex(found.head, /member|x-headgate|www-authenticate/);

  t.is((await ask('/404big')).status, 418, 'what remains of the answer is dropped');
  t.is((await ask('/404', ['-X', 'POST', '-d', 'x'.repeat(100000)])).status, 418);
  const head = await ask('/404', ['-I']);
  t.is(head.status, 418);
  t.is(head.body, '');
  t.regex((await ask('/401')).head, /www-authenticate: basic realm="m"\r\n/);

  await mode('again');
  t.is((await ask('/404')).status, 404, 'is not replaced again');
  await mode('empty');
  const empty = await ask('/404');
  t.is(`${empty.status} ${empty.body}`, '204 ');
  await mode('close');
  t.is((await ask('/404')).body, 'to its end');
  await mode('size15000');
  t.is((await ask('/404')).body.length, 15000);
  const packed = await ask('/404', ['--compressed']);
  t.is(`${packed.status} ${packed.body.length}`, '418 15000');
});

test('Without a usable answer of the default backend clients get the status alone', async (t) => {
  const { ask, mode, host, objects } = await served(t);
  for (const each of ['size20000', 'endless', 'never', 'cut', 'hang']) {
    await mode(each);
    const began = Date.now();
    const { status, body, head } = await ask('/404');
    t.is(`${status} ${body}`, '404 Error 404\n', each);
    t.notRegex(head, /x-member|member=1/);
    t.true(Date.now() - began < 9000, each);
  }
  for (let fields = 80; fields <= 105; fields++) {
    await mode(`fields${fields}`);
    t.regex(String((await ask('/404')).status), /^(404|418|50.)$/, `${fields} fields`);
  }
  const answers = await Promise.all(Array.from({ length: 200 }, () => ask('/503')));
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [503], 'many at once');
  await mode('echo');
  t.is((await ask('/404')).status, 418);
  await host.write('web.yaml', objects({ pages: [] }));
  await host.until('no default backend', async () => (await ask('/404')).body === 'Error 404\n');
});

test('Without a default backend the class has the pages, and clients get the status alone for others', async (t) => {
  const { ask, host, objects } = await served(t);
  const pages = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'pages' },
    data: { 404: '<h1>Nothing here</h1>', 401: '<h1>Who are you?</h1>' },
  };
  const { 'default-backend': _, ...others } = SHOP;
  const named = { 'headgate.io/error-pages': 'default/pages', 'headgate.io/load-balancer-ips': VIP };
  const backends = objects({}).filter(({ kind }) => kind === 'Service' || kind === 'EndpointSlice');
  await host.write('web.yaml', [
    ...backends,
    pages,
    ingressClassJson('edge', named),
    ingress('shop', others),
  ]);
  await host.until('the page of the class', async () => (await ask('/404')).body.includes('Nothing here'));
  const found = await ask('/404', ['-H', 'Origin: https://a.example']);
  t.is(`${found.status} ${found.body.trim()}`, '404 <h1>Nothing here</h1>');
  t.regex(found.head, /content-type: text\/html; charset=utf-8\r\n/);
  t.regex(found.head, /access-control-allow-origin: https:\/\/a\.example\r\n/);
  t.notRegex(found.head, /member/);
  t.is((await ask('/404', ['-I'])).status, 404);
  t.is((await ask('/404big')).status, 404);
  const alone = await ask('/503');
  t.is(`${alone.status} ${alone.body}`, '503 Error 503\n');
  const challenged = await ask('/401');
  t.is(`${challenged.status} ${challenged.body}`, '401 Error 401\n');
  t.regex(challenged.head, /www-authenticate: basic realm="m"\r\n/);
  t.is((await ask('/500')).body, 'secret of the member', 'another status');
  t.is((await ask('/200')).body, 'secret of the member');
});

test('While there is no member the default backend gets the request, and other codes take no reload', async (t) => {
  const { ask, host, agent, objects } = await served(t);
  const reloads = async () => (await agent.metrics())('headgate_haproxy_reloads_total');
  await host.until('the reload of the first listener is counted', async () => (await reloads()) > 0);
  const before = await reloads();
  await host.write('web.yaml', objects({ codes: '500' }));
  await host.until('another code', async () => (await ask('/500')).status === 418);
  t.is((await ask('/404')).body, 'secret of the member');
  await host.write('web.yaml', objects({ web: [] }));
  await host.until('no member', async () => (await ask('/404/x')).status === 418);
  const { method, url, headers } = JSON.parse(
    (await ask('/404/x', ['-X', 'PUT', '-d', 'a', '-H', 'X-Code: 200', '-H', 'X_Service_Name: other'])).body,
  );
  t.is(`${method} ${url}`, 'PUT /404/x');
  t.like(headers, { 'x-code': '503', 'x-service-name': 'web', 'x-original-uri': '/404/x' });
  t.is(headers.x_service_name, undefined);
  t.is(await reloads(), before);
});

async function served(t: ExecutionContext) {
  const network = await TestNetwork.create(t, ['client', 'a', 'm1', 'm2']);
  await network.run('a', 'ip', 'address', 'add', `${VIP}/32`, 'dev', 'eth0');
  network.start('m1', process.execPath, '-e', MEMBER);
  network.start('m2', process.execPath, '-e', PAGES);
  const host = await TestHost.create(t, { flags: ['--netns', network.netns('a')] });
  const agent = await host.start();
  const curl = async (...words: readonly string[]): Promise<string> =>
    (await network.try('client', 'curl', '-s', '--max-time', '12', ...words)).stdout;
  const ask = async (path: string, words: readonly string[] = []): Promise<Answer> => {
    const name = 'shop.example.org';
    const text = await curl('-i', '--resolve', `${name}:80:${VIP}`, ...words, `http://${name}${path}`);
    const [, head = '', body = ''] =
      /^([\s\S]*?\r\n)\r\n([\s\S]*)$/.exec(text.replace(/^HTTP\/1.1 100.*\r\n\r\n/, '')) ?? [];
    return { status: Number(head.split(' ')[1]), head: head.toLowerCase(), body };
  };
  const mode = (to: string) => curl(`http://${network.v4('m2')}:8081/${encodeURIComponent(to)}`);
  const objects = (given: {
    web?: readonly string[];
    pages?: readonly string[];
    codes?: string;
  }): readonly Json[] => [
    ...backend('web', given.web ?? [network.v4('m1')]),
    ...backend('pages', given.pages ?? [network.v4('m2')]),
    ingressClassJson('edge', {
      'headgate.io/load-balancer-ips': VIP,
      'headgate.io/request-ids': 'true',
      'headgate.io/compression': 'gzip',
    }),
    ingress('shop', { ...SHOP, ...(given.codes && { 'custom-http-errors': given.codes }) }),
  ];
  await host.write('web.yaml', objects({}));
  await host.until('it answers', async () => (await ask('/404')).status === 418);
  return { network, host, agent, ask, mode, objects };
}

function ingress(name: string, annotations: Readonly<Record<string, string>>): Json {
  const to = { service: { name: 'web', port: { number: 80 } } };
  const rules = [
    { host: `${name}.example.org`, http: { paths: [{ path: '/', pathType: 'Prefix', backend: to }] } },
  ];
  const named = Object.entries(annotations).map(([key, value]) => [PREFIX + key, value]);
  return ingressJson(name, { rules }, { ...Object.fromEntries(named), 'headgate.io/hsts': '60' });
}

function backend(name: string, addresses: readonly string[]): readonly Json[] {
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: PORT }] },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      endpoints: addresses.map((address) => ({ addresses: [address] })),
      ports: [{ name: 'http', port: PORT, protocol: 'TCP' }],
    },
  ];
}
