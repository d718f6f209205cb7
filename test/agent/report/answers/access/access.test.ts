// The checks that `why` names, against the configuration that HAProxy gets: their order, and that none is missing.

import test from 'ava';
import { AclIds } from '../../../../../agent/haproxy/config/acl-ids.ts';
import { renderLoadBalancer } from '../../../../../agent/haproxy/config/render.ts';
import { renderContext } from '../../../../../agent/haproxy/config/render-context.ts';
import { haproxyPaths } from '../../../../../agent/haproxy/paths.ts';
import { REFUSING_CHECKS, UNREAD } from '../../../../../agent/haproxy/routes/refusals.ts';
import type { Listener, Tls } from '../../../../../agent/model/load-balancer.ts';
import type { RouteRule } from '../../../../../agent/model/routes.ts';
import { accessOf, checksOf } from '../../../../../agent/report/answers/access/access.ts';
import { type Client, clientOf } from '../../../../../agent/report/answers/access/client.ts';
import type { AmbiguousPaths } from '../../../../../agent/report/answers/access/path-rules.ts';
import { NO_PROOFS } from '../../../../../agent/report/answers/access/proofs.ts';
import { rewrittenPath } from '../../../../../agent/report/answers/access/request-checks.ts';
import { externalAuth } from '../../../../support/traffic/authorizer.ts';
import { RENDER_SETTINGS } from '../../../../support/values/render-settings.ts';
import {
  entryOf,
  forwardTo,
  gatewayOf,
  POOL,
  poolOf,
  ruleOf,
  sectionOf,
} from '../../../../support/values/routes.ts';

/** Lines of the configuration by the check that they carry out; every line that can end a request is one of them. */
const LINES: readonly (readonly [check: string, line: RegExp])[] = [
  ['connection limit', /^maxconn /],
  ['share of namespace', /^tcp-request connection reject if \{ sc1_conn_cur/],
  ['source ranges', /^tcp-request (connection|session) reject if !allowed/],
  ['connection rate', /^tcp-request (connection|session) reject if \{ src_gpc0_rate/],
  ['handshake', /^bind .* ssl .*ssl-min-ver/],
  ['client certificate', /^bind .* ca-file .* verify required/],
  ['client certificate', /^tcp-request session reject if !\{ ssl_c_used \}/],
  ['path', /^http-request return .* if \{ path -m reg/],
  ['path', /^http-request return .* if !\{ path -m found \}/],
  ['host', /^http-request return .* if \{ req\.hdr_cnt\(host\) gt 1 \}/],
  ['host', /^http-request return .* if \{ req\.hdr\(host\) -m sub : \}/],
  ['host', /^http-request return .* if !\{ var\(txn\.table\) -m found \} !?\{ req\.hdr\(host\) -m found \}/],
  ['path', /^http-request return .* if \{ path -m sub /],
  ['host', /^http-request return status 421 /],
  [
    'certificate of host',
    /^http-request (return|redirect) .* \{ var\(txn\.(is_unproved|redirect)\) -m found \}/,
  ],
  ['ambiguous path', /^http-request return .* \{ var\(txn\.is_ambiguous\) /],
  ['route', /^http-request return .* if \{ var\(txn\.target\) -m str none \}/],
  ['source ranges of route', /^http-request return .* \{ lua\.is_refused /],
  ['name in certificate', /^http-request return .* !\{ lua\.has_name /],
  ['request rate', /^http-request return .* \{ sc2_(http_req_rate|gpc0_rate|conn_cur)/],
  ['body', /^http-request return .* \{ req\.hdr_val\(content-length\)/],
  ['rewritten path', /^http-request return .* if \{ var\(txn\.new_path\) -m reg /],
  ['preflight', /^http-request return status 204 /],
  ['user', /^http-request return .* \{ var\(txn\.(user_answer|auth)\) /],
  ['token', /^http-request return .* \{ var\(txn\.(jwt|token_answer)\) /],
  ['authorization', /^http-request return .* \{ var\(txn\.(external_auth|auth_answer)\) /],
  ['redirect', /^http-request redirect .* -m beg /],
  ['answer', /^http-request return status (403|404|503).* if \{ var\(txn\.target\) -m str e/],
  ['answer', /^http-request return status 500/],
  ['clients of members', /^http-request deny deny_status 403 if !allowed/],
  ['members', /^server /],
];
/** In the order in which HAProxy comes to them, whatever their place in the file. */
const PHASES = [/^maxconn /, /^tcp-request connection /, /^bind /, /^tcp-request session /, /^http-request /];
/** `why` explains a GET. */
const OF_CONNECT = 'http-request deny deny_status 405 if METH_CONNECT';
/** It counts, and its condition never holds. */
const COUNTING = /^tcp-request \w+ reject if \{ src_inc_gpc0\(\S+\) lt 0 \}$/;
const ENDING = /^(tcp-request \w+|http-request) (reject|deny|tarpit|return|redirect|silent-drop)\b/;

const CLIENTS = { name: 'configmap default/clients', fingerprint: 'f' };
const TLS: Tls = {
  certificates: [{ name: 'default/tls', fingerprint: 'f', sha1: 's', chainLength: 0, bytes: 1, expires: 0 }],
  minVersion: '1.2',
  ciphers: [],
  clients: { verify: 'required', authority: CLIENTS },
  alpn: [],
};

function listenerOf(changes: Partial<Listener> = {}): Listener {
  const routes = { 'example.org': [entryOf('/', 'web')] };
  const sections = [sectionOf('http', '*', routes)];
  const routing = { kind: 'http', sections, detectMisdirected: true } as const;
  const [listener] = gatewayOf({ address: '192.0.2.1', port: 443 }, routing, {
    tls: TLS,
    connectionLimit: 9,
    rateLimit: 5,
    allowedCidrs: ['198.51.100.0/24'],
    userLists: [{ name: 'secret default/users', fingerprint: 'f' }],
    tokenKeys: [{ name: 'configmap default/keys', fingerprint: 'f', keys: [] }],
    asksServers: true,
    ...changes,
  }).listeners;
  if (listener === undefined) throw new Error('No listener');
  return listener;
}

/** A pool of routes with clients that NetworkPolicies let in. */
function restrictedPool(): Listener {
  const [listener] = poolOf('web', ['10.0.0.1:8080'], {
    pool: { ...POOL, clients: ['192.0.2.0/24'] },
  }).listeners;
  if (listener === undefined) throw new Error('No listener');
  return listener;
}

function linesOf(listener: Listener, ambiguousPaths: AmbiguousPaths): readonly string[] {
  const settings = { ...RENDER_SETTINGS, dotSegments: 'reject', ambiguousPaths } as const;
  const context = renderContext(settings, haproxyPaths('/var/lib', '/run'), 100, new AclIds().idOf, {
    hasTls: true,
    hasRoutes: true,
    asksServers: false,
  });
  const owner = gatewayOf({ address: '192.0.2.1', port: 443 }, []);
  return renderLoadBalancer({ ...owner, listeners: [listener] }, context)
    .toString()
    .split('\n')
    .map((line) => line.trim());
}

for (const [acceptProxy, ambiguousPaths, what] of [
  [false, 'reject-where-guarded', ''],
  [true, 'reject-where-guarded', ' with the PROXY protocol'],
  [false, 'reject', ' with ambiguousPaths reject'],
  [false, 'pass', ' with ambiguousPaths pass'],
] as const)
  test(`The checks have the order of HAProxy's configuration${what}, and none is missing`, (t) => {
    const lines = linesOf(listenerOf({ acceptProxy }), ambiguousPaths);
    const missed = lines.filter(
      (line) =>
        line !== OF_CONNECT &&
        !COUNTING.test(line) &&
        ENDING.test(line) &&
        !LINES.some(([, pattern]) => pattern.test(line)),
    );
    t.deepEqual(missed, [], 'a line that can end a request is no check that `why` names');
    // After the listener's own.
    const ofPool = linesOf(restrictedPool(), ambiguousPaths);
    const inOrder = [...PHASES.flatMap((phase) => lines.filter((line) => phase.test(line))), ...ofPool];
    const found = inOrder.flatMap((line) =>
      LINES.filter(([, pattern]) => pattern.test(line)).map(([check]) => check),
    );
    t.deepEqual(
      [...new Set(found)],
      checksOf({ acceptProxy })
        .map(({ name }) => name)
        .filter((name) => name !== 'ambiguous path' || ambiguousPaths === 'reject-where-guarded'),
    );
  });

test('Each line that refuses counts at the counter of its check, and notes the check for the log', (t) => {
  const listener = listenerOf();
  const counted = new Set<string>();
  for (const line of [...linesOf(listener, 'reject-where-guarded'), ...linesOf(restrictedPool(), 'pass')]) {
    const [check = ''] = LINES.find(([, pattern]) => pattern.test(line)) ?? [];
    if (!ENDING.test(line) || check === '' || ['preflight', 'redirect'].includes(check)) continue;
    const count = ` !{ sc_inc_gpc(${UNREAD + REFUSING_CHECKS.indexOf(check)},1,${listener.name}:refusals) lt 0 }`;
    const note = ` !{ str(refused\\ ${check.replaceAll(' ', '\\ ')}),set-var(txn.decision) -m len 0 }`;
    const ways = line.split(' or ').length;
    // The listener counts what a pool notes.
    if (check !== 'clients of members') t.is(line.split(count).length, ways + 1, line);
    if (line.startsWith('http-request') && check !== 'authorization')
      t.is(line.split(note).length, ways + 1, line);
    counted.add(check);
  }
  t.deepEqual([...counted].sort(), [...REFUSING_CHECKS].sort());
  const names = checksOf({ acceptProxy: false }).map(({ name }) => name);
  const others = REFUSING_CHECKS.filter((check) => !names.includes(check));
  t.deepEqual(others, [], 'the words are those of `why`');
});

test('No line with an ACL follows the lists of clients, which the agent reads back by their lines', (t) => {
  const allowedCidrs = Array.from({ length: 50 }, (_, at) => `198.51.100.${at}/32`);
  const lines = linesOf(listenerOf({ allowedCidrs }), 'pass');
  const last = lines.findLastIndex((line) => line.startsWith('acl allowed '));
  t.true(last > 0);
  t.notRegex(lines[last + 1] ?? '{', /\{|^acl /);
});

/** Its wildcard is one label of names in handshakes, which others have with the listener itself. */
const SECTION = {
  hostname: { kind: 'labels', suffix: 'deep.example.org' },
  certificates: TLS.certificates,
  clients: { verify: 'required', authority: CLIENTS },
} as const;
const OPEN = { tls: undefined, allowedCidrs: ['0.0.0.0/0'], rateLimit: 0, connectionLimit: 0 };
const limits = (allowedCidrs: readonly string[], deniedCidrs: readonly string[] = []) => ({
  limits: { allowedCidrs, deniedCidrs, requestRate: 0, bodyBytes: 0 },
});
const AUTH = { secret: 'default/users', realm: 'Shop', removesHeader: false };

function access(
  changes: Partial<Listener>,
  rule: Partial<RouteRule> = {},
  client: Partial<Client> = {},
  perhaps: readonly string[] = [],
  clients?: readonly string[],
) {
  return accessOf({
    listener: listenerOf({ ...OPEN, ...changes }),
    client: { from: undefined, user: '', hasCertificate: false, ...client },
    serverName: 'a.b.deep.example.org',
    request: {
      refusedPath: '',
      ambiguity: '',
      hostname: changes.tls?.sections?.[0]?.hostname ?? { kind: 'any', suffix: '' },
      route: { words: 'host example.org, path /…', isFound: true, answer: 'status 404' },
      rule: ruleOf('web', rule),
      perhaps,
      pools: [{ name: 'pool:default/web port 80', weight: 1, ready: 1, ...(clients && { clients }) }],
    },
    proofs: { ...NO_PROOFS, knowsUser: (_, user) => user === 'ann' },
    atEachHost: '',
  });
}

for (const [what, expected, clients, changes, client] of [
  ['all', 'Open to everybody', ['0.0.0.0/0', '::/0'], {}, {}],
  [
    'a range',
    'Open only to clients from 192.0.2.0/24, by NetworkPolicies of members',
    ['192.0.2.0/24'],
    {},
    {},
  ],
  ['no client', 'Closed to everybody (clients of members, status 403)', [], {}, {}],
  ['ranges of IPv6', 'Closed to everybody (clients of members, status 403)', ['2001:db8::/32'], {}, {}],
  [
    'another range',
    'Closed to 198.51.100.7 (clients of members, status 403)',
    ['192.0.2.0/24'],
    {},
    { from: { address: '198.51.100.7', family: 'v4' } },
  ],
  [
    'proxies that name their clients',
    'Open only to clients from 192.0.2.0/24 (trusted proxies name their clients), by NetworkPolicies of members',
    ['192.0.2.0/24'],
    { trustedProxies: ['203.0.113.1/32'] },
    {},
  ],
] as const)
  test(`Members whose NetworkPolicies let in ${what}`, (t) => {
    t.is(access(changes, {}, client, [], clients).sentence, expected);
  });

const SOMEBODY = { from: { address: '198.51.100.7', family: 'v4' } } as const;
const HALVES = ['0.0.0.0/1', '128.0.0.0/1'];
for (const [what, expected, changes, rule, client] of [
  ['nothing', 'Open to everybody', {}, {}, {}],
  ['two halves of all addresses', 'Open to everybody', { allowedCidrs: HALVES }, {}, {}],
  ['all addresses of IPv4', 'Open to everybody', {}, limits(['0.0.0.0/0']), {}],
  [
    'a certificate',
    'Open only to clients with a certificate of configmap default/clients',
    { tls: TLS },
    {},
    {},
  ],
  [
    'a certificate that only the section of the host needs',
    'Open only to clients with a certificate of configmap default/clients',
    { tls: { ...TLS, clients: { verify: 'optional', authority: CLIENTS }, sections: [SECTION] } },
    {},
    {},
  ],
  [
    'a certificate that the handshake does not ask for',
    'Closed to everybody (certificate of host, status 403)',
    { tls: { ...TLS, clients: undefined, sections: [SECTION] } },
    {},
    {},
  ],
  [
    'a certificate that clients may show',
    'Open to everybody',
    { tls: { ...TLS, clients: { verify: 'optional', authority: CLIENTS } } },
    {},
    {},
  ],
  [
    'an authorization server',
    'Open only to clients that Service default/auth, port 80, lets in (auth.example.org/check, only by status 2xx)',
    {},
    { externalAuth: externalAuth() },
    {},
  ],
  [
    'an authorization server of a listener that HAProxy asks none for',
    'Closed to everybody (authorization, status 403)',
    { asksServers: undefined },
    { externalAuth: externalAuth() },
    {},
  ],
  [
    'a name in certificates',
    'Open only to clients with a certificate of configmap default/clients; with a certificate whose subject has "CN=shop"',
    { tls: TLS },
    { certificateName: 'CN=shop' },
    {},
  ],
  [
    'a name in certificates of a port without TLS',
    'Closed to everybody (name in certificate, status 403)',
    {},
    { certificateName: 'CN=shop' },
    {},
  ],
  [
    'a rule that answers 403 because something that protects is missing',
    'Closed to everybody (answer, status 403)',
    {},
    { action: { kind: 'answer', status: 403 } },
    {},
  ],
  [
    'a rule that cannot be served',
    'Closed to everybody (answer, status 500)',
    {},
    { action: { kind: 'answer', status: 500 } },
    {},
  ],
  ['ranges', 'Open only to clients from 10.0.0.0/8', { allowedCidrs: ['10.0.0.0/8'] }, {}, {}],
  ['a denied range', 'Open only to clients not from 10.0.0.0/8', {}, limits([], ['10.0.0.0/8']), {}],
  [
    'ranges and a user',
    'Open only to clients from 10.0.0.0/8; with the password of a user of Secret default/users',
    {},
    { ...limits(['10.0.0.0/8']), auth: AUTH },
    {},
  ],
  [
    'ranges that have no address in common',
    'Closed to everybody (no address is in both source ranges)',
    { allowedCidrs: ['10.0.0.0/8'] },
    limits(['192.0.2.0/24']),
    {},
  ],
  [
    'ranges of IPv6 alone',
    'Closed to everybody (source ranges of route, status 403)',
    {},
    limits(['2001:db8::/32']),
    {},
  ],
  [
    'a denied range that has all that is allowed',
    'Closed to everybody (source ranges of route, status 403)',
    {},
    limits(['10.1.0.0/16'], ['10.0.0.0/8']),
    {},
  ],
  [
    'users that do not exist',
    'Closed to everybody (user, status 403)',
    {},
    { auth: { ...AUTH, secret: '' } },
    {},
  ],
  [
    'proxies that name their clients',
    'Open only to clients from 10.0.0.0/8 (trusted proxies name their clients)',
    { trustedProxies: ['192.0.2.0/24'] },
    limits(['10.0.0.0/8']),
    {},
  ],
  ['a client among the ranges', 'Open to 198.51.100.7', { allowedCidrs: ['198.51.100.0/24'] }, {}, SOMEBODY],
  [
    'a client of another range',
    'Closed to 198.51.100.7 (source ranges, the connection is closed)',
    { allowedCidrs: ['10.0.0.0/8'] },
    {},
    SOMEBODY,
  ],
  [
    'a client without a password',
    'Open to 198.51.100.7 only with the password of a user of Secret default/users',
    {},
    { auth: AUTH },
    SOMEBODY,
  ],
  [
    'a client with a password',
    'Open to clients with the password of "ann"',
    {},
    { auth: AUTH },
    { user: 'ann' },
  ],
  [
    'a client whose user does not exist',
    'Closed to 198.51.100.7, with the password of "eve" (user, status 401)',
    {},
    { auth: AUTH },
    { ...SOMEBODY, user: 'eve' },
  ],
] as const)
  test(`With ${what} the sentence is: ${expected}`, (t) => {
    const { sentence, verdict } = access(changes, rule, client);
    t.is(sentence, expected);
    t.is(verdict === 'open', expected.startsWith('Open to ') && !expected.includes(' only '));
  });

test('What is not given is asked, and what stands behind a refusal is not reached', (t) => {
  const { verdict, answer, checks } = access(
    { tls: TLS, allowedCidrs: ['198.51.100.0/24'] },
    { ...limits(['10.0.0.0/8']), auth: AUTH },
    SOMEBODY,
  );
  t.deepEqual([verdict, answer], ['refused', 'the handshake is refused']);
  t.deepEqual(
    checks.map(({ name, result }) => `${name}: ${result}`),
    [
      'share of namespace: limited',
      'source ranges: passed',
      'handshake: limited',
      'client certificate: asked',
      'host: passed',
      'route: passed',
      'source ranges of route: refused',
      'user: not reached',
      'members: not reached',
    ],
  );
});

test('A client is read from its fields, and an address that is none is refused', (t) => {
  const read = (text: string) => clientOf(new URLSearchParams(text));
  t.deepEqual(read('from=[2001:DB8::1]&user=ann&certificate=true'), {
    from: { address: '2001:db8::1', family: 'v6' },
    user: 'ann',
    hasCertificate: true,
  });
  t.deepEqual(read(''), { from: undefined, user: '', hasCertificate: false });
  t.throws(() => read('from=10.0.0.0/8'), {
    message: 'Cannot use --from "10.0.0.0/8": it is not an IP address',
  });
});

test('A rule that only HAProxy can judge makes the answer unknown, never open', (t) => {
  const { verdict, sentence } = access({}, {}, SOMEBODY, ['HTTPRoute default/other#0']);
  t.is(verdict, 'asks');
  t.is(sentence, 'Not known: only HAProxy can tell whether HTTPRoute default/other#0 matches');
});

test('Headers of a client are read, and a message never shows their values', (t) => {
  const read = (header: string) => clientOf(new URLSearchParams({ header }), 7);
  const { headers, now } = read('Authorization: Bearer a.b.c\nX-Tenant:7\nx-tenant: 8');
  t.deepEqual(
    [...(headers ?? [])],
    [
      ['authorization', ['Bearer a.b.c']],
      ['x-tenant', ['7', '8']],
    ],
  );
  t.is(now, 7);
  for (const wrong of ['Bearer a.b.c', ': a.b.c', 'A B: a.b.c', 'A: a.b.c\r'])
    t.throws(() => read(wrong), { message: 'Cannot use --header: it is not "NAME: VALUE"' }, wrong);
});

for (const [path, result, detail] of [
  ['/x/a', 'passed', '/a'],
  ['/x../a', 'refused', '/../a has dot segments'],
  ['/x/../a', 'passed', '/../a'],
] as const)
  test(`A path that groups make of ${path} is ${result}`, (t) => {
    const rewrite = { hostname: '', path: { kind: 'groups', value: '/$1', pattern: '/x/?(.*)' } } as const;
    const way = {
      refusedPath: '',
      path,
      ambiguity: '',
      hostname: undefined,
      route: { words: '', isFound: true, answer: '' },
      rule: ruleOf(forwardTo('web', { rewrite })),
      perhaps: [],
      pools: [],
    };
    const check = rewrittenPath({
      listener: listenerOf(),
      client: { from: undefined, user: '', hasCertificate: false },
      serverName: '',
      request: way,
      proofs: NO_PROOFS,
      atEachHost: '',
    });
    t.deepEqual([check?.result, check?.detail], [result, detail]);
  });
