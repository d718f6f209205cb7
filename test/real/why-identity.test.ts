// What `why` says of a client with certificates, passwords, tokens, cookies and other headers: the same as the real HAProxy does.

import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import ava, { type ExecutionContext } from 'ava';
import type { Certificates } from '../../agent/certificates/certificates.ts';
import { checkJwks } from '../../agent/certificates/token-keys/token-keys.ts';
import { checkUserLines } from '../../agent/certificates/users.ts';
import { memberOfCookie } from '../../agent/haproxy/member-cookie.ts';
import type { Listener, LoadBalancer, Tls } from '../../agent/model/load-balancer.ts';
import type { ExternalAuth, RouteEntry, Routing } from '../../agent/model/routes.ts';
import { type Client, clientOf } from '../../agent/report/answers/access/client.ts';
import { explainRequest, type RequestAnswer } from '../../agent/report/answers/explain-request.ts';
import type { StatusSources } from '../../agent/report/answers/status.ts';
import { proofsOf } from '../../agent/wiring/proofs.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { externalAuth, startAuthorizer } from '../support/traffic/authorizer.ts';
import { answerOf, startEcho } from '../support/traffic/echo.ts';
import { Authority, type IssuedCertificate } from '../support/traffic/tls.ts';
import { CertificateTexts } from '../support/values/certificate-texts.ts';
import { entryOf, gatewayOf, matchOf, POOL, patternOf, poolOf, sectionOf } from '../support/values/routes.ts';
import { JWT, RSA } from '../support/values/token-cases.ts';
import { goodClaims, jwksOf, tokenOf } from '../support/values/tokens.ts';
import { basic, HASHES } from '../support/values/users.ts';

const test = requires(ava, { haproxy: true, programs: ['openssl'] });

const HOST = 'shop.example.org';
const OTHER_HOST = 'other.example.net';
const USERS = 'secret default/users';

interface Asking {
  readonly path: string;
  readonly headers?: readonly (readonly [name: string, value: string])[];
  readonly method?: string;
  readonly certificate?: IssuedCertificate | undefined;
  /** In the handshake and the URL. */
  readonly host?: string;
}

interface Served {
  readonly listener: Listener;
  readonly port: number;
}

/** `status 200 from web`, or how the connection ends. */
async function ask({ port, listener }: Served, asking: Asking): Promise<string> {
  const { path, headers = [], method = 'GET', certificate, host = HOST } = asking;
  const raw = connectTcp({ host: '127.0.0.1', port });
  raw.on('error', () => undefined);
  let socket: Socket = raw;
  try {
    await once(raw, 'connect');
    if (listener.tls !== undefined) {
      const own = certificate && { cert: certificate.cert, key: certificate.key };
      socket = connectTls({ socket: raw, rejectUnauthorized: false, servername: host, ...own });
      await once(socket, 'secureConnect');
    }
    const given = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    const hasHost = headers.some(([name]) => name.toLowerCase() === 'host');
    const ofHost = hasHost ? '' : `Host: ${host}:${port}\r\n`;
    socket.write(`${method} ${path} HTTP/1.1\r\n${ofHost}${given}Connection: close\r\n\r\n`);
    let text = '';
    for await (const chunk of socket) text += chunk;
    if (text === '') return 'the handshake is refused';
    const { status, echo } = answerOf(text);
    return `status ${status}${echo === undefined ? '' : ` from ${echo.member}`}`;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    return code.startsWith('ERR_SSL') ? 'the handshake is refused' : `the connection is closed ${code}`;
  } finally {
    socket.destroy();
    raw.destroy();
  }
}

function fieldsOf({ headers = [], method, certificate }: Asking): URLSearchParams {
  const pems = certificate?.cert.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----\n/g) ?? [];
  return new URLSearchParams({
    ...(headers.length > 0 && { header: headers.map((each) => each.join(': ')).join('\n') }),
    ...(method && { method }),
    ...(pems.length > 0 && {
      cert: pems.map((pem) => new X509Certificate(pem).raw.toString('base64url')).join('.'),
    }),
    ...(certificate === undefined && { certificate: 'false' }),
  });
}

/** What `why` says in the same words; a client that is asked for what it does not have is refused. */
function saidOf({ access, pools }: RequestAnswer): string {
  if (access.answer !== '') return access.answer;
  const [pool] = pools;
  return `status 200 from ${/default\/(\w+)/.exec(pool?.name ?? '')?.[1]}`;
}

class Scene {
  readonly t: ExecutionContext;
  readonly texts = new CertificateTexts();
  readonly #pools: LoadBalancer[] = [];
  #loadBalancers: readonly LoadBalancer[] = [];

  constructor(t: ExecutionContext) {
    this.t = t;
  }

  async pool(name: string, changes: Partial<Listener> = {}, members = [name]): Promise<LoadBalancer> {
    const places = await Promise.all(members.map((each) => startEcho(this.t, each)));
    const pool = poolOf(name, places, changes);
    this.#pools.push(pool);
    return pool;
  }

  add(pool: LoadBalancer): void {
    this.#pools.push(pool);
  }

  async serve(...listeners: readonly LoadBalancer[]): Promise<readonly Served[]> {
    this.#loadBalancers = [...listeners, ...this.#pools];
    const { certificate, authority, crl } = this.texts;
    const pems = { certificate, authority, crl, users: () => users().pem.reveal() };
    await startRendered(this.t, this.#loadBalancers, { pems });
    return listeners.flatMap(({ listeners: all }) =>
      all.map((listener) => ({ listener, port: listener.port })),
    );
  }

  why({ listener, port }: Served, asking: Asking): RequestAnswer {
    const scheme = listener.tls === undefined ? 'http' : 'https';
    const url = `${scheme}://${asking.host ?? HOST}:${port}${asking.path}`;
    const client: Client = clientOf(fieldsOf(asking));
    const answer = explainRequest(url, this.sources(), client).answers.find(
      (each) => each.addresses.length > 0,
    );
    if (answer === undefined) throw new Error(`No answer to ${url}`);
    return answer;
  }

  /** Asks HAProxy and `why`. */
  async compare(served: Served, what: string, asking: Asking): Promise<string> {
    const got = await ask(served, asking);
    const answer = this.why(served, asking);
    this.t.is(saidOf(answer), got, `${what}: ${JSON.stringify(answer.access.checks)}`);
    for (const [name, value] of asking.headers ?? [])
      if (/^(authorization|cookie)$/i.test(name))
        this.t.false(JSON.stringify(answer).includes(value), `${what}: it shows ${name}`);
    return got;
  }

  sources(): StatusSources {
    const up = { state: 'ready', weight: 1, isDown: undefined, cause: '' };
    const members = new Map(
      this.#loadBalancers.flatMap(({ listeners: all }) =>
        all.map(({ name, pool }) => [name, new Map(pool.members.map((each) => [each.name, up]))] as const),
      ),
    );
    const { authority, crl } = this.texts;
    const pems = { authority, crl, users: () => users().pem.reveal() };
    return {
      desired: { loadBalancers: new Map(this.#loadBalancers.map((each) => [each.key, each])) },
      dataplane: {
        serves: () => true,
        members: (name: string) => members.get(name) ?? new Map(),
        failures: () => undefined,
      },
      dotSegments: () => 'reject',
      ambiguousPaths: () => 'reject-where-guarded',
      proofs: proofsOf({ pems } as unknown as Pick<Certificates, 'pems'>),
      stickyMember: memberOfCookie,
    } as unknown as StatusSources;
  }
}

function users() {
  const found = checkUserLines(
    `ann:${HASHES.sha512}\nbob:${HASHES.bcrypt}\ncat:${HASHES.sha256}\ndot.x:${HASHES.sha512}`,
  );
  if (typeof found === 'string') throw new Error(found);
  return found;
}

async function gateway(
  name: string,
  routing: Routing | readonly RouteEntry[],
  changes: Partial<Listener> = {},
) {
  const place = { address: '127.0.0.1', port: await freePort() };
  const routes: Routing =
    'kind' in routing
      ? routing
      : { kind: 'http', detectMisdirected: true, sections: [sectionOf('any', '*', { '*': routing })] };
  return gatewayOf(place, routes, { name, ...changes });
}

const AUTH = { secret: 'default/users', realm: 'Shop', removesHeader: true };
const CORS = {
  origins: ['https://shop.example.org', 'https://*.example.net'],
  ...{ methods: ['GET'], allowHeaders: [], exposeHeaders: [], maxAge: 5, credentials: false },
} as const;

test('Passwords, tokens, origins and other headers', async (t) => {
  const scene = new Scene(t);
  for (const name of ['web', 'canary', 'cookie', 'proto']) await scene.pool(name);
  const { fingerprint } = users();
  const keys = checkJwks(jwksOf(RSA));
  if (typeof keys === 'string') throw new Error(keys);
  const header = (name: string, value: string, kind: 'exact' | 'regex' = 'exact') => ({ name, kind, value });
  const routes = [
    entryOf('/user', 'web', { auth: AUTH }),
    entryOf('/token', 'web', { jwt: JWT }),
    entryOf('/cookie-token', 'web', { jwt: { ...JWT, from: { kind: 'cookie', name: 'id' } } }),
    entryOf('/cors', 'web', { cors: CORS }),
    entryOf('/one-label', 'web', { cors: { ...CORS, oneLabel: true } }),
    entryOf('/guarded-cors', 'web', { cors: CORS, auth: AUTH }),
    entryOf('/body', 'web', {
      limits: { allowedCidrs: [], deniedCidrs: [], requestRate: 0, bodyBytes: 10 },
    }),
    entryOf(matchOf('/', { headers: [header('x-canary', 'always')] }), 'canary'),
    entryOf(matchOf('/', { headers: [header('cookie', '(.*; *)?canary=always(;.*)?', 'regex')] }), 'cookie'),
    entryOf(matchOf('/', { headers: [header('x-forwarded-proto', 'https')] }), 'proto'),
    entryOf(matchOf('/', { headers: [header('x-real-ip', '10.0.0.1')] }), 'proto'),
    entryOf('/', 'web'),
  ];
  const named = routes.map(({ match, rule }, at) => ({
    match,
    rule: { ...rule, name: `HTTPRoute default/route#${at}` },
  }));
  const changes = {
    userLists: [{ name: USERS, fingerprint }],
    tokenKeys: [{ name: JWT.keys, fingerprint: keys.fingerprint, keys: keys.keys }],
  };
  const [served] = await scene.serve(await gateway('edge', named, changes));
  if (served === undefined) throw new Error('Nothing is served');
  const now = Date.now();
  const authorization = (user: string, password: string) =>
    ['Authorization', basic(user, password).authorization] as const;
  const bearer = (claims: object) => ['Authorization', `Bearer ${tokenOf(RSA, claims)}`] as const;
  const origin = (text: string) => ['Origin', text] as const;
  const preflight = ['Access-Control-Request-Method', 'GET'] as const;
  const cases: readonly (readonly [what: string, asking: Asking])[] = [
    ['no password', { path: '/user' }],
    ...['ann', 'bob', 'cat', 'dot.x'].flatMap(
      (user) =>
        [
          [`the password of ${user}`, { path: '/user', headers: [authorization(user, 'open')] }],
          [`no password of ${user}`, { path: '/user', headers: [authorization(user, 'closed')] }],
        ] as const,
    ),
    ['a user that is not there', { path: '/user', headers: [authorization('dotxx', 'open')] }],
    ['a password behind a NUL', { path: '/user', headers: [authorization('ann', 'open\0x')] }],
    [
      'two passwords',
      { path: '/user', headers: [authorization('ann', 'open'), authorization('ann', 'open')] },
    ],
    ['no Basic', { path: '/user', headers: [['Authorization', 'Bearer abcdefghijklmnopq']] }],
    ['no base64', { path: '/user', headers: [['Authorization', 'Basic ****************']] }],
    [
      'a scheme in lower case',
      {
        path: '/user',
        headers: [['authorization', authorization('ann', 'open')[1].replace('Basic', 'basic')]],
      },
    ],
    ['no token', { path: '/token' }],
    ['a token', { path: '/token', headers: [bearer(goodClaims(now))] }],
    ['an ended token', { path: '/token', headers: [bearer({ ...goodClaims(now), exp: 5 })] }],
    ['two tokens', { path: '/token', headers: [bearer(goodClaims(now)), bearer(goodClaims(now))] }],
    [
      'a token in a cookie',
      { path: '/cookie-token', headers: [['Cookie', `a=b; id=${tokenOf(RSA, goodClaims(now))}`]] },
    ],
    [
      'two cookies',
      { path: '/cookie-token', headers: [['Cookie', `id=x; id=${tokenOf(RSA, goodClaims(now))}`]] },
    ],
    [
      'another cookie',
      { path: '/cookie-token', headers: [['Cookie', `xid=${tokenOf(RSA, goodClaims(now))}`]] },
    ],
    ...(['/cors', '/one-label', '/guarded-cors'] as const).flatMap((path) =>
      [
        'https://shop.example.org',
        'https://a.example.net',
        'https://a.b.example.net',
        'http://evil.example',
      ].flatMap(
        (text) =>
          [
            [`a preflight from ${text}`, { path, method: 'OPTIONS', headers: [origin(text), preflight] }],
            [`an OPTIONS from ${text}`, { path, method: 'OPTIONS', headers: [origin(text)] }],
            [`a GET from ${text}`, { path, headers: [origin(text)] }],
          ] as const,
      ),
    ),
    ['a long body', { path: '/body', method: 'POST', headers: [['Content-Length', '100000']] }],
    ['no body', { path: '/body', method: 'POST', headers: [['Content-Length', '0']] }],
    ['a canary', { path: '/x', headers: [['X-Canary', 'always']] }],
    [
      'two values, of which one is a canary',
      {
        path: '/x',
        headers: [
          ['X-Canary', 'never'],
          ['X-Canary', 'always'],
        ],
      },
    ],
    ['a list of values', { path: '/x', headers: [['X-Canary', 'never, always']] }],
    ['a canary by cookie', { path: '/x', headers: [['Cookie', 'a=b; canary=always']] }],
    ['another cookie than the canary', { path: '/x', headers: [['Cookie', 'xcanary=always']] }],
    ['a forwarded header of a client', { path: '/x', headers: [['X-Forwarded-Proto', 'https']] }],
    ['a real address of a client', { path: '/x', headers: [['X-Real-IP', '10.0.0.1']] }],
    [
      'two hosts',
      {
        path: '/x',
        headers: [
          ['Host', 'a'],
          ['Host', 'b'],
        ],
      },
    ],
    ['a host with a user', { path: '/x', headers: [['Host', 'a@b']] }],
    ['a host with a port', { path: '/x', headers: [['Host', 'shop.example.org:81']] }],
  ];
  const seen = new Set<string>();
  for (const [what, asking] of cases) {
    // Wrong passwords are counted, by the second.
    if (asking.path.includes('user')) await new Promise((resolve) => setTimeout(resolve, 150));
    seen.add(await scene.compare(served, what, asking));
  }
  for (const answer of ['200 from web', '200 from canary', '200 from cookie', '401', '204', '413', '400'])
    t.true(seen.has(`status ${answer}`), answer);
});

test('Certificates of clients', async (t) => {
  const scene = new Scene(t);
  const { texts } = scene;
  await scene.pool('web');
  const authority = await Authority.create(t);
  const stranger = await Authority.create(t, 'Another authority');
  const tls: Tls = {
    certificates: [texts.pair('default/tls', await authority.issue({ names: [HOST] }))],
    minVersion: '1.2',
    ciphers: [],
    alpn: ['http/1.1'],
    clients: undefined,
  };
  const issue = (subject: string, more = {}) => authority.issue({ names: ['client'], subject, ...more });
  const certificates: Readonly<Record<string, IssuedCertificate | undefined>> = {
    none: undefined,
    good: await issue('/CN=client'),
    named: await issue('/C=DE/O=Shop, Inc/CN=shop'),
    'name inside another': await issue('/O=a,CN=shop/CN=x'),
    'several names': await issue('/CN=shop/OU=x/CN=other'),
    'a name in Unicode': await issue('/CN=shöp'),
    'a name with a blank': await issue('/CN=shop 7'),
    expired: await issue('/CN=shop', { days: -1 }),
    revoked: await issue('/CN=shop'),
    'of a server only': await issue('/CN=shop', { extensions: 'extendedKeyUsage=serverAuth\n' }),
    'of a client': await issue('/CN=shop', { extensions: 'extendedKeyUsage=clientAuth\n' }),
    foreign: await stranger.issue({ names: ['client'], subject: '/CN=shop' }),
  };
  const clients = texts.clients('configmap default/clients', authority.cert);
  const crl = texts.revocations(
    'configmap default/lists',
    await authority.revoke([certificates.revoked as IssuedCertificate]),
  );
  const old = texts.revocations('configmap default/old', await authority.revoke([], '20210101000000Z'));
  const foreignList = texts.revocations('configmap default/foreign', await stranger.revoke([]));
  const routes = [
    entryOf('/named', 'web', { certificateName: 'CN=shop' }),
    entryOf('/whole', 'web', { certificateName: 'CN=shop(,.*)?$' }),
    entryOf('/', 'web'),
  ];
  const kinds = {
    plain: undefined,
    required: clients,
    optional: { ...clients, verify: 'optional' },
    ignored: { ...clients, verify: 'ignored' },
    'with a list': { ...clients, crl },
    'with an old list': { ...clients, crl: old },
    'with a foreign list': { ...clients, crl: foreignList },
  } as const;
  const gateways = await Promise.all(
    Object.entries(kinds).map(([name, each]) =>
      gateway(name.replaceAll(' ', '-'), routes, { tls: { ...tls, clients: each } }),
    ),
  );
  const all = await scene.serve(...gateways);
  const seen = new Set<string>();
  for (const [at, served] of all.entries())
    for (const [name, certificate] of Object.entries(certificates))
      for (const path of ['/', '/named', '/whole'])
        seen.add(
          await scene.compare(served, `${Object.keys(kinds)[at]}, ${name}, ${path}`, { path, certificate }),
        );
  t.deepEqual([...seen].sort(), ['status 200 from web', 'status 403', 'the handshake is refused']);
  const [, , optional] = all;
  if (optional === undefined) throw new Error('Nothing is served');
  const shown = scene.why(optional, { path: '/', certificate: certificates.good });
  t.deepEqual(shown.toMember, [
    `members get the certificate's names in X-SSL-Client-* and ssl-client-*: "CN=client"`,
  ]);
});

test('Certificates of an authority between', async (t) => {
  const scene = new Scene(t);
  const { texts } = scene;
  await scene.pool('web');
  const root = await Authority.create(t);
  const between = await root.authority(t, 'between');
  const own = await between.issue({ names: ['client'] });
  const notAnAuthority = await root.issue({
    names: ['no-authority'],
    extensions: 'basicConstraints=CA:FALSE\n',
  });
  const tls: Tls = {
    certificates: [texts.pair('default/tls', await root.issue({ names: [HOST] }))],
    ...{ minVersion: '1.2', ciphers: [], alpn: ['http/1.1'], clients: undefined },
  };
  const listOfRoot = await root.revoke([]);
  const listOfBetween = await between.revoke([]);
  const lists = (text: string, at: number) => texts.revocations(`configmap default/lists-${at}`, text);
  const both = texts.clients('configmap default/both', `${root.cert}${between.cert}`);
  const kinds = {
    root: texts.clients('configmap default/root', root.cert),
    between: texts.clients('configmap default/between', between.cert),
    both,
    'no authority': texts.clients('configmap default/none', notAnAuthority.cert),
    'lists of both': { ...both, crl: lists(`${listOfRoot}${listOfBetween}`, 0) },
    'the list of one': { ...both, crl: lists(listOfBetween, 1) },
  } as const;
  const gateways = await Promise.all(
    Object.entries(kinds).map(([name, clients]) =>
      gateway(name.replaceAll(' ', '-'), [entryOf('/', 'web')], { tls: { ...tls, clients } }),
    ),
  );
  const shown = {
    alone: own,
    'with its authority': { ...own, cert: `${own.cert}${between.cert}` },
    'with both': { ...own, cert: `${own.cert}${between.cert}${root.cert}` },
    'of what is no authority': notAnAuthority,
  };
  const seen: Record<string, string> = {};
  for (const [at, served] of (await scene.serve(...gateways)).entries())
    for (const [name, certificate] of Object.entries(shown)) {
      const what = `${Object.keys(kinds)[at]}, ${name}`;
      seen[what] = await scene.compare(served, what, { path: '/', certificate });
    }
  t.is(seen['root, with its authority'], 'status 200 from web');
  t.is(seen['root, alone'], 'the handshake is refused');
});

test('A host in a header that is another than that of the handshake', async (t) => {
  const scene = new Scene(t);
  const { texts } = scene;
  for (const name of ['web', 'other']) await scene.pool(name);
  const authority = await Authority.create(t);
  const client = await authority.issue({ names: ['client'] });
  const certificate = texts.pair('default/tls', await authority.issue({ names: [HOST] }));
  const clients = texts.clients('configmap default/clients', authority.cert);
  const hostname = patternOf(OTHER_HOST);
  const tls: Tls = {
    ...{
      certificates: [certificate],
      minVersion: '1.2',
      ciphers: [],
      alpn: ['http/1.1'],
      clients: undefined,
    },
    sections: [{ hostname, certificates: [certificate], clients }],
  };
  const routing = {
    kind: 'http',
    detectMisdirected: true,
    sections: [
      sectionOf('any', '*', { '*': [entryOf('/', 'web')] }),
      sectionOf('other', OTHER_HOST, { [OTHER_HOST]: [entryOf('/', 'other')] }),
    ],
  } as const;
  const [served] = await scene.serve(await gateway('edge', routing, { tls }));
  if (served === undefined) throw new Error('Nothing is served');
  const seen = new Set<string>();
  for (const host of [HOST, OTHER_HOST])
    for (const named of [HOST, OTHER_HOST, 'third.example'])
      for (const shown of [undefined, client])
        seen.add(
          await scene.compare(served, `${named} in a handshake for ${host}`, {
            ...{ path: '/', host, headers: [['Host', named]], certificate: shown },
          }),
        );
  t.deepEqual([...seen].sort(), [
    ...['status 200 from other', 'status 200 from web', 'status 421', 'the handshake is refused'],
  ]);
});

test('The member that a client keeps by its cookie', async (t) => {
  const scene = new Scene(t);
  const sticky = { pool: { ...POOL, cookie: 'HEADGATE', cookieSecret: 'uid' } };
  const pool = await scene.pool('web', sticky, ['a', 'b', 'c', 'd']);
  const [served] = await scene.serve(await gateway('edge', [entryOf('/', 'web')]));
  if (served === undefined) throw new Error('Nothing is served');
  const names = new Map(pool.listeners[0]?.pool.members.map(({ name }, at) => [`${'abcd'[at]}`, name]));
  const raw = async (headers: string): Promise<{ readonly member: string; readonly cookie: string }> => {
    const socket = connectTcp({ host: '127.0.0.1', port: served.port });
    socket.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n${headers}Connection: close\r\n\r\n`);
    let text = '';
    for await (const chunk of socket) text += chunk;
    const { headers: given, echo } = answerOf(text);
    return {
      member: echo?.member ?? '',
      cookie: /HEADGATE=([^;]*)/.exec(given['set-cookie'] ?? '')?.[1] ?? '',
    };
  };
  // Members are sorted by name.
  const byName = new Map<string, string>();
  for (let count = 0; count < 12; count++) {
    const { member, cookie } = await raw('');
    const { toMember } = scene.why(served, { path: '/', headers: [['Cookie', `HEADGATE=${cookie}`]] });
    const [, said = ''] = /the client keeps (\S+)/.exec(toMember.join()) ?? [];
    t.is(byName.get(member) ?? said, said);
    byName.set(member, said);
    t.is((await raw(`Cookie: HEADGATE=${cookie}\r\n`)).member, member);
  }
  t.is(byName.size, 4);
  t.deepEqual([...byName.values()].sort(), [...names.values()].sort());
  const unknown = scene.why(served, { path: '/', headers: [['Cookie', 'HEADGATE=00']] });
  t.deepEqual(unknown.toMember, [
    'pool:default/web port 80: the cookie "HEADGATE" is of none of its members: the client gets a new one',
  ]);
});

/** Headers that HAProxy sets in every request of its own. */
const OF_HAPROXY = [
  ...['host', 'connection', 'accept', 'user-agent', 'x-forwarded-proto', 'x-forwarded-port'],
  'x-headgate-question',
];

test('What an authorization server is asked', async (t) => {
  const scene = new Scene(t);
  await scene.pool('web');
  const auth = await startAuthorizer(t);
  scene.add(poolOf('auth', [auth.place]));
  const kinds: Readonly<Record<string, Partial<ExternalAuth>>> = {
    plain: {},
    'variables in its query': {
      path: '/check?rd=$scheme://$http_host$request_uri&u=$escaped_request_uri&m=$request_method',
    },
    'the path of the request': {
      isPrefix: true,
      host: '',
      requestHeaders: ['cookie', 'x-original-url', 'x-forwarded-uri'],
    },
    'the method of the request': { method: 'of-request', responseHeaders: undefined },
    'another method': { method: 'POST', requestHeaders: [], responseHeaders: [] },
  };
  const entries = Object.values(kinds).map((changes, at) =>
    entryOf(`/${at}`, 'web', { externalAuth: externalAuth(changes) }),
  );
  const [served] = await scene.serve(await gateway('edge', entries, { asksServers: true }));
  if (served === undefined) throw new Error('Nothing is served');
  const headers = [
    ...[
      ['Authorization', 'Bearer secret-of-a-client'],
      ['Cookie', 'session=secret-of-a-client'],
      ['X-Tenant', '7'],
    ],
    ...[
      ['X-Real-IP', '10.0.0.1'],
      ['X-Original-Method', 'DELETE'],
      ['Range', 'bytes=0-1'],
      ['TE', 'trailers'],
    ],
  ] as const;
  for (const [at, what] of Object.keys(kinds).entries())
    for (const method of ['GET', 'HEAD', 'DELETE'])
      for (const path of ['', '/%C3%A9?a=b&c=d%20e']) {
        const asking: Asking = {
          path: `/${at}${path}`,
          method,
          headers: headers as NonNullable<Asking['headers']>,
        };
        await ask(served, asking);
        const asked = auth.questions.at(-1);
        const { access } = scene.why(served, asking);
        const { question = [], result } = access.checks.find(({ name }) => name === 'authorization') ?? {};
        t.is(result, 'asked');
        t.false(JSON.stringify(access).includes('secret-of-a-client'));
        const [first = '', ...others] = question;
        t.is(first, `${asked?.method} ${asked?.url} with Host ${asked?.headers.host}, without a body`, what);
        const own =
          others
            .find((line) => line.startsWith('with x-'))
            ?.slice('with '.length)
            .split(', ') ?? [];
        for (const line of own) {
          const [name = '', value = ''] = line.split(/: (.*)/);
          const expected = value === 'the client’s address' ? '127.0.0.1' : value;
          t.is(asked?.headers[name], expected, `${what}: ${name}`);
        }
        const given =
          others
            .find((line) => line.startsWith("with the request's own "))
            ?.slice(23)
            .split(', ') ?? [];
        const got = Object.keys(asked?.headers ?? {}).filter((name) => !OF_HAPROXY.includes(name));
        t.deepEqual([...own.map((line) => line.split(':')[0]), ...given].sort(), got.sort(), what);
      }
});
