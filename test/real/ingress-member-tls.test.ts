// TLS from an Ingress to its members, by the annotations of ingress-nginx: the real HAProxy and members that ask for a certificate.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { TestNetwork } from '../support/host/namespaces.ts';
import { Authority, type IssuedCertificate } from '../support/traffic/tls.ts';
import { ingressClassJson, ingressJson } from '../support/values/gateways.ts';
import type { Json } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true, programs: ['ip', 'curl', 'openssl'], root: true });

const VIP = '10.9.0.100';
const MEMBER_PORT = 8443;
const PREFIX = 'nginx.ingress.kubernetes.io/';

/** Answers with the name in the client's certificate, the version and the name that it was asked for; also as an authorizer. */
const MEMBER = ({ cert, key }: IssuedCertificate, ca: string) => `
  const options = { requestCert: true, rejectUnauthorized: true, ...${JSON.stringify({ cert, key, ca })} };
  require('https').createServer(options, ({ socket, headers }, response) => {
    const peer = socket.getPeerCertificate().subject.CN;
    response.setHeader('x-asked-by', peer);
    const asked = headers['x-asked-by'] === undefined ? [] : ['after', headers['x-asked-by']];
    response.end([peer, socket.getProtocol(), socket.servername, ...asked].join(' '));
  }).listen(${MEMBER_PORT});
  require('http').createServer(({ headers }, response) => response.end('plain after ' + headers['x-asked-by'])).listen(8080);`;

test('Members of an Ingress are verified, and get its certificate and the next one', async (t) => {
  const [network, root, other] = await Promise.all([
    TestNetwork.create(t, ['client', 'a', 'm1']),
    Authority.create(t),
    Authority.create(t, 'Another authority'),
  ]);
  const authority = await root.authority(t, 'First');
  const [issued, first, second] = await Promise.all([
    authority.issue({ names: ['web.example'] }),
    root.issue({ names: ['first'] }),
    root.issue({ names: ['second'] }),
  ]);
  const server = { ...issued, cert: issued.cert + authority.cert };
  await network.run('a', 'ip', 'address', 'add', `${VIP}/32`, 'dev', 'eth0');
  network.start('m1', process.execPath, '-e', MEMBER(server, root.cert));
  const host = await TestHost.create(t, { flags: ['--netns', network.netns('a')] });
  const agent = await host.start();
  const ask = async (name: string): Promise<string> => {
    const words = [
      '-s',
      '--max-time',
      '5',
      '--resolve',
      `${name}.example.org:80:${VIP}`,
      '-w',
      ' %{http_code}',
    ];
    const { stdout } = await network.try('client', 'curl', ...words, `http://${name}.example.org/`);
    return stdout.split('\n').at(-1)?.replace(/^.*> /, '') ?? '';
  };
  const write = (client: IssuedCertificate) =>
    host.write('web.yaml', [
      ...backend(network.v4('m1')),
      ingressClassJson('edge', { 'headgate.io/load-balancer-ips': VIP }),
      secret('members', { 'ca.crt': root.cert, 'tls.crt': client.cert, 'tls.key': client.key }),
      secret('others', { 'ca.crt': other.cert, 'tls.crt': client.cert, 'tls.key': client.key }),
      secret('lists', { 'ca.crt': root.cert }),
      ingress('by-host', { 'auth-url': 'https://good.example.org/', ...ASKED }),
      ingress('by-name', { 'auth-url': 'https://web.default.svc:443/', ...ASKED }),
      ingress(
        'plain',
        { 'auth-url': 'https://web.default.svc:443/', 'backend-protocol': 'HTTP', ...ASKED },
        80,
      ),
      ingress('by-a-bad-one', { 'auth-url': 'https://authority.example.org/', ...ASKED }),
      ingress('one', { 'proxy-ssl-verify-depth': '1' }),
      ingress('none', { 'proxy-ssl-verify-depth': '0' }),
      ingress('good', {}),
      ingress('new', {
        'proxy-ssl-protocols': 'TLSv1.3',
        'proxy-ssl-ciphers': 'TLS_AES_256_GCM_SHA384',
      }),
      ingress('old', {
        'proxy-ssl-protocols': 'TLSv1.2',
        'proxy-ssl-ciphers': 'ECDHE-ECDSA-AES128-GCM-SHA256',
      }),
      ingress('unverified', { 'proxy-ssl-verify': 'off', 'proxy-ssl-name': 'x.example' }),
      ingress('name', { 'proxy-ssl-name': 'api.example' }),
      ingress('authority', { 'proxy-ssl-secret': 'default/others' }),
      ingress('certificate', { 'proxy-ssl-secret': 'default/lists' }),
      ingress('missing', { 'proxy-ssl-secret': 'default/missing' }),
      ingress('foreign', { 'proxy-ssl-secret': 'other/members' }),
    ]);
  await write(first);
  await host.until('it answers', async () => (await ask('good')).endsWith(' 200'));
  for (const [name, expected] of [
    ['good', 'first TLSv1.3 web.example 200'],
    ['new', 'first TLSv1.3 web.example 200'],
    ['old', 'first TLSv1.2 web.example 200'],
    ['unverified', 'first TLSv1.3 x.example 200'],
    ['one', 'first TLSv1.3 web.example 200'],
    ['by-host', 'first TLSv1.3 web.example after first 200'],
    ['by-name', 'first TLSv1.3 web.example after first 200'],
    ['plain', 'plain after first 200'],
    ['by-a-bad-one', / 503$/],
    ['none', / 503$/],
    ['name', / 503$/],
    ['authority', / 503$/],
    ['certificate', / 50[23]$/],
    ['missing', / 503$/],
    ['foreign', / 403$/],
  ] as const) {
    const answer = await ask(name);
    if (typeof expected === 'string') t.is(answer, expected, name);
    else t.regex(answer, expected, name);
  }
  const reloads = async () => (await agent.metrics())('headgate_haproxy_reloads_total');
  const before = await reloads();
  await write(second);
  await host.until('the next certificate', async () => (await ask('good')).startsWith('second '));
  t.is(await ask('unverified'), 'second TLSv1.3 x.example 200');
  t.is(await reloads(), before, 'without a reload');
});

const ASKED = { 'auth-response-headers': 'X-Asked-By' };

function ingress(name: string, annotations: Readonly<Record<string, string>>, port = 443): Json {
  const all = {
    'backend-protocol': 'HTTPS',
    'proxy-ssl-secret': 'default/members',
    'proxy-ssl-verify': 'on',
    'proxy-ssl-name': 'web.example',
    ...annotations,
  };
  const backend = { service: { name: 'web', port: { number: port } } };
  const paths = [{ path: '/', pathType: 'Prefix', backend }];
  const rules = [{ host: `${name}.example.org`, http: { paths } }];
  return ingressJson(
    name,
    { rules },
    Object.fromEntries(Object.entries(all).map(([key, value]) => [PREFIX + key, value])),
  );
}

/** Made by hand, as the documentation of ingress-nginx does, and therefore of no type. */
function secret(name: string, stringData: Readonly<Record<string, string>>): Json {
  return { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata: { name }, stringData };
}

function backend(address: string): readonly Json[] {
  const port = { name: 'https', port: 443, protocol: 'TCP', targetPort: MEMBER_PORT };
  const plain = { name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 };
  return [
    { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec: { ports: [port, plain] } },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [address] }],
      ports: [
        { name: 'https', port: MEMBER_PORT, protocol: 'TCP' },
        { name: 'http', port: 8080, protocol: 'TCP' },
      ],
    },
  ];
}
