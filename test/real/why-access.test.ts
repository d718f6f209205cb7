// Whom `why` says a request is let in, and what a client gets: the same as of the real HAProxy, for any guarded routes and clients.

import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import ava, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { checkUserLines } from '../../agent/certificates/users.ts';
import type { Listener, LoadBalancer, Tls } from '../../agent/model/load-balancer.ts';
import type { RouteEntry, RouteRule } from '../../agent/model/routes.ts';
import type { Access } from '../../agent/report/answers/access/access.ts';
import { isExpressionMet } from '../../agent/report/answers/access/find-rule.ts';
import type { DotSegments } from '../../agent/report/answers/access/path-rules.ts';
import { NO_PROOFS } from '../../agent/report/answers/access/proofs.ts';
import { explainRequest } from '../../agent/report/answers/explain-request.ts';
import type { StatusSources } from '../../agent/report/answers/status.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { type RenderedHaproxy, startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { Authority, type IssuedCertificate } from '../support/traffic/tls.ts';
import { CertificateTexts } from '../support/values/certificate-texts.ts';
import { gatewayOf, matchOf, patternOf, poolOf, ruleOf, sectionOf } from '../support/values/routes.ts';
import { basic, HASHES } from '../support/values/users.ts';

const test = requires(ava, { haproxy: true, programs: ['openssl'] });

const HOST = 'shop.example.org';
const GUARDED = 'guarded.example.org';
const HOSTS = [HOST, GUARDED, 'x.example.org', 'a.b.example.org', 'other.example', '127.0.0.1'];
/** Addresses of clients; the last one may be that of a trusted proxy. */
const ADDRESSES = ['127.0.0.1', '127.7.1.1', '127.7.2.1', '127.7.2.2', '127.7.3.1'];
const RANGES = ['0.0.0.0/0', '127.0.0.0/8', '127.7.0.0/16', '127.7.2.0/24', '127.7.2.1/32', '2001:db8::/32'];
const USERS = 'secret default/users';

const ranges = fc.uniqueArray(fc.constantFrom(...RANGES), { maxLength: 2 }).map((all) => all.sort());
const often = <T>(usual: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(usual) }, { weight: 2, arbitrary: other });

const actions = fc.oneof(
  { weight: 6, arbitrary: fc.constant<RouteRule['action'] | string>('web') },
  { weight: 1, arbitrary: fc.constantFrom('empty', '-') },
  {
    weight: 1,
    arbitrary: fc.constantFrom(403, 404, 503).map((status) => ({ kind: 'answer', status }) as const),
  },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(301, 308)
      .map(
        (status) =>
          ({ kind: 'redirect', status, scheme: 'https', hostname: '', port: 0, path: undefined }) as const,
      ),
  },
);
const rules: fc.Arbitrary<RouteRule> = fc
  .record({
    action: actions,
    limits: often(
      undefined,
      fc.record({
        allowedCidrs: ranges,
        deniedCidrs: often<readonly string[]>([], ranges),
        requestRate: fc.constantFrom(0, 100_000),
        bodyBytes: fc.constantFrom(0, 1_000),
      }),
    ),
    auth: often(
      undefined,
      fc.record({
        secret: fc.constantFrom('default/users', 'default/users', 'default/none', ''),
        realm: fc.constant('Shop'),
        removesHeader: fc.boolean(),
      }),
    ),
  })
  .map(({ action, limits, auth }) => ruleOf(action, { limits, ...(auth && { auth }) }));
const MATCHES = [
  matchOf('/'),
  matchOf('/admin'),
  matchOf('=/admin'),
  matchOf('=/é'),
  matchOf('~/re/v[0-9]+'),
  matchOf('~/(?:a+)+!'),
  matchOf('~/\\Qre\\E'),
  matchOf('/admin', { method: 'POST' }),
  matchOf('/', { headers: [{ name: 'x-a', kind: 'exact', value: '1' }] }),
  matchOf('/', { headers: [{ name: 'host', kind: 'regex', value: 'shop\\..*' }] }),
  matchOf('/admin', { query: [{ name: 'q', kind: 'exact', value: 'é' }] }),
  matchOf('/admin', { query: [{ name: 'q', kind: 'regex', value: '[a-c]+' }] }),
];
const entries: fc.Arbitrary<readonly RouteEntry[]> = fc.uniqueArray(
  fc.tuple(fc.constantFrom(...MATCHES), rules).map(([match, rule]) => ({ match, rule })),
  { minLength: 1, maxLength: 4, selector: ({ match }) => match },
);
/** The order that the model promises: exact paths, expressions, longer prefixes, then conditions. */
function rank({ match: { path, method, headers, query } }: RouteEntry): number {
  const kind = { exact: 3, regex: 2, prefix: 1 }[path.kind];
  const conditions = (method === '' ? 0 : 4) + headers.length * 2 + query.length;
  return kind * 10_000 + (path.kind === 'prefix' ? path.value.length * 10 : 0) + conditions;
}
const named = entries.map((all) =>
  all
    .toSorted((a, b) => rank(b) - rank(a))
    .map(({ match, rule }, at) => ({ match, rule: { ...rule, name: `HTTPRoute default/route#${at}` } })),
);
/** An Ingress class has one section for hosts without client certificates; a Gateway asks all other names for one. */
const TLS_KINDS = ['none', 'plain', 'optional', 'required', 'ingress', 'gateway'] as const;

interface Guarded {
  readonly hosts: Readonly<Record<string, readonly RouteEntry[]>>;
  readonly guarded: readonly RouteEntry[];
  readonly tls: (typeof TLS_KINDS)[number];
  readonly changes: Partial<Listener>;
}

const listeners: fc.Arbitrary<Guarded> = fc.record({
  hosts: fc.dictionary(fc.constantFrom(HOST, '*.example.org', '*'), named, { minKeys: 1, maxKeys: 2 }),
  guarded: named,
  tls: fc.constantFrom(...TLS_KINDS),
  changes: fc.record({
    allowedCidrs: often<readonly string[]>(
      ['0.0.0.0/0'],
      ranges.map((all) => all.filter((each) => !each.includes(':'))),
    ),
    trustedProxies: often(undefined, fc.constant(['127.7.3.0/24'])),
    acceptProxy: often(false, fc.constant(true)),
    rateLimit: fc.constantFrom(0, 100_000),
    connectionLimit: fc.constantFrom(0, 1_000),
  }),
});

interface Asking {
  readonly host: string;
  readonly path: string;
  readonly from: string;
  readonly user: string;
  readonly hasCertificate: boolean;
  /** What it sends in X-Forwarded-For; '' for nothing. */
  readonly forwarded: string;
}

const FORWARDED = [
  ...[
    '',
    '',
    '127.7.2.1',
    '127.7.2.1, 127.7.3.1',
    '127.7.2.1,127.7.3.2, 127.7.3.1',
    '127.7.3.9',
    'x',
    '127.7.2.1, x',
  ],
  ...['127.7.2.2,127.7.3.4,127.7.3.3,127.7.3.2', '127.7.2.1:80', ',127.7.1.1', '127.7.1.1,', '2001:db8::1'],
];

const clients: fc.Arbitrary<Asking> = fc.record({
  host: fc.constantFrom(HOST, HOST, ...HOSTS),
  path: fc.constantFrom(
    ...['/', '/admin', '/admin/x', '/admin?q=%C3%A9', '/admin?q=abc&q=x', '/admin/../x', '/x/%2e%2E/admin'],
    ...[
      '/%C3%A9',
      '/re/v12/x',
      '/re/x',
      '/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!',
      '//admin',
      '/x/..;/y',
      '/%61dmin/x',
      '/x%2Fadmin',
      '/a%3Bb',
      '/admin%00',
      '/admin%0Ax',
      '/admin%7fx',
      '/%c3%a9',
    ],
  ),
  from: fc.constantFrom(...ADDRESSES),
  user: fc.constantFrom('', 'ann', 'eve'),
  hasCertificate: fc.boolean(),
  forwarded: fc.constantFrom(...FORWARDED),
});

/** Whatever is drawn, each verdict is met: "/" is open, "/admin" asks, "=/admin" redirects, and "/re" is refused. */
const EACH_VERDICT: Guarded = {
  hosts: {
    [HOST]: [
      {
        match: matchOf('=/admin'),
        rule: ruleOf({
          kind: 'redirect',
          status: 301,
          scheme: 'https',
          hostname: '',
          port: 0,
          path: undefined,
        }),
      },
      {
        match: matchOf('/admin'),
        rule: ruleOf('web', { auth: { secret: 'default/users', realm: 'Shop', removesHeader: true } }),
      },
      {
        match: matchOf('/re'),
        rule: ruleOf('web', {
          limits: { allowedCidrs: ['127.7.3.0/24'], deniedCidrs: [], requestRate: 0, bodyBytes: 0 },
        }),
      },
      { match: matchOf('/'), rule: ruleOf('web') },
    ],
  },
  guarded: [{ match: matchOf('/'), rule: ruleOf('web') }],
  tls: 'none',
  changes: {},
};
const ITS_CLIENTS = ['/', '/admin', '/admin/x', '/re/x'].map(
  (path): Asking => ({ host: HOST, path, from: '127.0.0.1', user: '', hasCertificate: false, forwarded: '' }),
);

interface Served {
  readonly loadBalancer: LoadBalancer;
  readonly port: number;
  readonly listener: Listener;
}

class Host {
  readonly texts = new CertificateTexts();
  client: IssuedCertificate | undefined;
  tls: Tls | undefined;
  clients: NonNullable<Tls['clients']> | undefined;

  async prepare(t: ExecutionContext): Promise<void> {
    const authority = await Authority.create(t);
    this.client = await authority.issue({ names: ['client'] });
    const certificate = this.texts.pair('default/tls', await authority.issue({ names: ['any.example'] }));
    this.clients = this.texts.clients('configmap default/clients', authority.cert);
    this.tls = {
      certificates: [certificate],
      minVersion: '1.2',
      ciphers: [],
      alpn: ['http/1.1'],
      clients: undefined,
    };
  }

  tlsOf(kind: Guarded['tls']): Tls | undefined {
    const { tls, clients: required } = this;
    if (kind === 'none' || tls === undefined || required === undefined) return undefined;
    if (kind === 'plain') return tls;
    if (kind === 'optional' || kind === 'required') return { ...tls, clients: { ...required, verify: kind } };
    const hostname = patternOf(GUARDED);
    const sections = [{ hostname, certificates: tls.certificates, clients: required }];
    return { ...tls, sections, clients: kind === 'gateway' ? required : undefined };
  }

  async serve({ hosts, guarded, tls: kind, changes }: Guarded, name: string): Promise<Served> {
    const tls = this.tlsOf(kind);
    const ownHost = { [GUARDED]: guarded };
    const isSplit = kind === 'ingress' || kind === 'gateway';
    const routing = {
      kind: 'http',
      detectMisdirected: tls !== undefined,
      sections: isSplit
        ? [sectionOf('any', '*', hosts), sectionOf('guarded', GUARDED, ownHost)]
        : [sectionOf('any', '*', { ...hosts, ...ownHost })],
    } as const;
    const place = { address: '127.0.0.1', port: await freePort() };
    const { fingerprint } = users();
    const more = { tls, name, userLists: [{ name: USERS, fingerprint }] };
    const loadBalancer = gatewayOf(place, routing, { ...changes, ...more });
    const [listener] = loadBalancer.listeners;
    if (listener === undefined) throw new Error('It has no listener');
    return { loadBalancer, port: place.port, listener };
  }
}

function users() {
  const found = checkUserLines(`ann:${HASHES.sha512}`);
  if (typeof found === 'string') throw new Error(found);
  return found;
}

/** What the client gets: `status 200`, or how its connection ends. */
async function ask(host: Host, { port, listener }: Served, asking: Asking): Promise<string> {
  const raw = connectTcp({ host: '127.0.0.1', port, localAddress: asking.from });
  raw.on('error', () => undefined);
  let socket: Socket = raw;
  try {
    await once(raw, 'connect');
    if (listener.acceptProxy) raw.write(`PROXY TCP4 ${asking.from} 127.0.0.1 1234 ${port}\r\n`);
    if (listener.tls !== undefined) {
      const own = asking.hasCertificate ? host.client : undefined;
      const servername = /^[\d.]+$/.test(asking.host) ? {} : { servername: asking.host };
      socket = connectTls({ socket: raw, rejectUnauthorized: false, ...servername, ...own });
      await once(socket, 'secureConnect');
    }
    const password =
      asking.user === '' ? '' : `Authorization: ${basic(asking.user, 'open').authorization}\r\n`;
    const forwarded = asking.forwarded === '' ? '' : `X-Forwarded-For: ${asking.forwarded}\r\n`;
    socket.write(
      `GET ${asking.path} HTTP/1.1\r\nHost: ${asking.host}:${port}\r\n${password}${forwarded}Connection: close\r\n\r\n`,
    );
    let text = '';
    for await (const chunk of socket) text += chunk;
    const [, status] = /^HTTP\/1\.1 (\d+)/.exec(text) ?? [];
    return status === undefined ? 'the connection is closed' : `status ${status}`;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    return code.startsWith('ERR_SSL') ? 'the handshake is refused' : 'the connection is closed';
  } finally {
    socket.destroy();
    raw.destroy();
  }
}

function sourcesOf(loadBalancers: readonly LoadBalancer[], dotSegments: DotSegments): StatusSources {
  const up = { state: 'ready', weight: 1, isDown: undefined, cause: '' };
  const members = new Map(
    loadBalancers.flatMap(({ listeners: all }) =>
      all.map(({ name, pool }) => [name, new Map(pool.members.map((each) => [each.name, up]))] as const),
    ),
  );
  return {
    desired: { loadBalancers: new Map(loadBalancers.map((each) => [each.key, each])) },
    dataplane: {
      serves: () => true,
      members: (name: string) => members.get(name) ?? new Map(),
      failures: () => undefined,
    },
    dotSegments: () => dotSegments,
    ambiguousPaths: () => 'reject-where-guarded',
    proofs: { ...NO_PROOFS, knowsUser: (_: unknown, user: string) => user === 'ann' },
  } as unknown as StatusSources;
}

for (const dotSegments of ['reject', 'normalize', 'pass'] as const)
  test(`A client of guarded routes gets what "why" says, with dotSegments ${dotSegments}`, async (t) => {
    const host = new Host();
    await host.prepare(t);
    const pools = [poolOf('web', [await startEcho(t, 'web')]), poolOf('empty', [])];
    const { texts } = host;
    const pems = {
      certificate: texts.certificate,
      authority: texts.authority,
      crl: texts.crl,
      users: () => users().pem.reveal(),
    };
    let haproxy: RenderedHaproxy | undefined;
    const seed = Math.floor(Math.random() * 2 ** 31);
    t.log(`seed ${seed}`);
    const seen = new Set<string>();
    const differing: string[] = [];
    for (const [round, all] of fc.sample(fc.array(listeners, FEW), { seed, numRuns: ROUNDS }).entries()) {
      const served = await Promise.all(
        [EACH_VERDICT, ...all].map((each, at) => host.serve(each, `edge-${at}`)),
      );
      const loadBalancers = [...served.map(({ loadBalancer }) => loadBalancer), ...pools];
      if (haproxy === undefined) haproxy = await startRendered(t, loadBalancers, { pems, dotSegments });
      else await haproxy.reload(loadBalancers);
      const sources = sourcesOf(loadBalancers, dotSegments);
      const askers = [...ITS_CLIENTS, ...fc.sample(clients, { seed: seed + round, numRuns: 12 })];
      const asked = served.map(async (each) => {
        for (const asking of askers) {
          const access = accessOf(each, asking, sources);
          if (access === undefined) continue;
          seen.add(access.verdict);
          const expected = access.answer || 'status 200';
          const got = await ask(host, each, asking);
          // Wrong passwords are counted by the address of the client.
          const isGuess = got === 'status 429' && asking.user === 'eve' && expected === 'status 401';
          if (got === expected || isGuess) continue;
          const { tls, allowedCidrs, routing } = each.listener;
          differing.push(
            `${JSON.stringify(asking)} gets ${got}, and "why" says ${expected}`,
            JSON.stringify({ tls: tls?.clients, allowedCidrs, routing, checks: access.checks }, undefined, 1),
          );
        }
      });
      await Promise.all(asked);
    }
    t.deepEqual(differing.slice(0, 2), []);
    for (const verdict of ['open', 'asks', 'refused', 'redirected']) t.true(seen.has(verdict), verdict);
  });

const FEW = { minLength: 10, maxLength: 10 };
const ROUNDS = 3;

/** What `why` says; undefined if it says that only HAProxy, or a trusted proxy, can tell. */
function accessOf({ listener, port }: Served, asking: Asking, sources: StatusSources): Access | undefined {
  const scheme = listener.tls === undefined ? 'http' : 'https';
  const url = `${scheme}://${asking.host}:${port}${asking.path}`;
  const from = { address: asking.from, family: 'v4' } as const;
  const { user, hasCertificate, forwarded } = asking;
  const headers = new Map([['x-forwarded-for', [forwarded]]]);
  const client = { from, user, hasCertificate, ...(forwarded !== '' && { headers }) };
  const { answers } = explainRequest(url, sources, client);
  const access = answers.find(({ addresses }) => addresses.length > 0)?.access;
  if (access === undefined) throw new Error(`No answer to ${url}`);
  const isUnclear = access.checks.some(
    ({ name, result, detail }) =>
      result === 'asked' && (name === 'route' || detail.includes('trusted proxy')),
  );
  return isUnclear ? undefined : access;
}

const PATTERNS = [
  ...[
    '/re',
    '/v[0-9]+',
    '/[^/]*/x',
    '/(?:a|b)+/c',
    '/a.c',
    '/a\\.c',
    '/\\d+$',
    '/\\w+-\\w+',
    '/(?=a)a',
    '/(?!a)[a-z]',
  ],
  ...[
    '/x{2,3}$',
    '/x{2}',
    '/a*?b',
    '/[a\\]b]',
    '/[]a]',
    '/[[:alpha:]]',
    '/\\Qa.c\\E',
    '/(?i)A',
    '/(?P<n>a)',
    '/a++b',
  ],
  ...[
    '/\\x41',
    '/\\x{41}',
    '/\\p{L}',
    '/\\h',
    '/a\\z',
    '/\\Aa',
    '/(?:',
    '/[a',
    '/a|/b',
    '/\\bx',
    '/(a)\\1',
    '/[\\w.]+$',
    '$',
  ],
];
const TEXTS = [
  '/re',
  '/v12',
  '/a/x',
  '/ab/c',
  '/a.c',
  '/abc',
  '/12',
  '/x-y',
  '/a',
  '/xx',
  '/xxxx',
  '/b',
  '/]',
  '/A',
  '/aab',
  '/1a',
];

test('A regular expression matches a path in HAProxy exactly if "why" says so', async (t) => {
  const place = { address: '127.0.0.1', port: await freePort() };
  const hosts = PATTERNS.map((pattern, at) => {
    const rest = ruleOf({ kind: 'answer', status: 403 });
    const routes = [
      { match: matchOf(`~${pattern}`), rule: ruleOf('web') },
      { match: matchOf('/'), rule: rest },
    ];
    return [`h${at}.example`, routes] as const;
  });
  const gateway = gatewayOf(place, [sectionOf('any', '*', Object.fromEntries(hosts))]);
  await startRendered(t, [gateway, poolOf('web', [await startEcho(t, 'web')])]);
  const known = new Set<boolean>();
  for (const [at, pattern] of PATTERNS.entries())
    for (const path of TEXTS) {
      const says = isExpressionMet(pattern, 'start', path);
      if (says === undefined) continue;
      known.add(says);
      const { status } = await request(place, path, { headers: { host: `h${at}.example` } });
      t.is(status, says ? 200 : 403, `${pattern} ${path}`);
    }
  t.is(known.size, 2);
  t.is(isExpressionMet('/a++b', 'start', '/ab'), undefined);
});
