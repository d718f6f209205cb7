// Ingresses from objects to the model; the titles are sentences of the API reference (networking.k8s.io/v1), or what
// ingress-nginx does with an annotation.

import test from 'ava';
import type {
  ForwardAction,
  HttpRouting,
  RedirectAction,
  RouteRule,
} from '../../../../agent/model/routes.ts';
import { askedRequest } from '../../../../agent/report/answers/access/asked-request.ts';
import { findRule } from '../../../../agent/report/answers/access/find-rule.ts';
import { readPath } from '../../../../agent/report/answers/access/path-rules.ts';
import { service } from '../../../support/values/build.ts';
import { secret } from '../../../support/values/certificates.ts';
import { ADDRESS, GatewayWorld } from '../../../support/values/gateway-world.ts';
import { ingressClassJson, ingressJson } from '../../../support/values/gateways.ts';

type Json = Readonly<Record<string, unknown>>;
const KEY = 'ingress:-/edge';
const WEB = { service: { name: 'web', port: { number: 80 } } };

function world(...ingresses: readonly Parameters<GatewayWorld['apply']>[0][number][]): GatewayWorld {
  return new GatewayWorld([ingressClassJson(), ...ingresses]);
}

function rules(paths: readonly Json[], host = 'example.org'): Json {
  return {
    rules: [{ host, http: { paths: paths.map((path) => ({ backend: WEB, pathType: 'Prefix', ...path })) } }],
  };
}

function annotated(annotations: Json, spec: Json = {}): GatewayWorld {
  const own = Object.entries(annotations).map(([name, value]) => [
    `nginx.ingress.kubernetes.io/${name}`,
    value,
  ]);
  return world(ingressJson('web', spec, Object.fromEntries(own)));
}

function ruleOf(given: GatewayWorld, port = 80): RouteRule {
  const { sections } = given.listener(port, 'tcp', KEY).routing as HttpRouting;
  const rule = sections[0]?.hosts[0]?.entries[0]?.rule;
  if (rule === undefined) throw new Error('There is no rule');
  return rule;
}

const problems = (given: GatewayWorld) =>
  given.loadBalancer(KEY).problems.map(({ object, reason, message }) => `${object} ${reason}: ${message}`);
const routes = (given: GatewayWorld, port = 80) => given.routes(port, undefined, KEY);
const TO_WEB = '→ web:tcp:80:v4*1';

test('The Ingresses of a class are one load balancer, whose paths of one host merge', (t) => {
  const given = world(
    ingressJson('web', rules([{ path: '/' }])),
    ingressJson('api', rules([{ path: '/api' }])),
    ingressJson('other', { ingressClassName: 'other' }),
  );
  t.deepEqual(routes(given), [
    `example.org/api ${TO_WEB} (Ingress default/api#0)`,
    `example.org/ ${TO_WEB} (Ingress default/web#0)`,
  ]);
  t.deepEqual(given.listener(80, 'tcp', KEY).addresses, [ADDRESS]);
  t.deepEqual(given.loadBalancer('pool:default/web').listeners[0]?.name, 'pool:default:web:tcp:80:v4');
  t.deepEqual(given.status('Ingress', 'default/api').ports, [80]);
  t.deepEqual(given.status('Ingress', 'default/api').addresses, [ADDRESS]);
});

test('A class of another controller is not served', (t) => {
  const given = new GatewayWorld([
    { ...ingressClassJson(), spec: { controller: 'example.org/other' } },
    ingressJson(),
  ]);
  t.false(given.state.desired.loadBalancers.has(KEY));
  t.regex(given.state.desired.ignored.get(KEY)?.reason ?? '', /"example.org\/other", not/);
});

test('Exact matches the path itself, Prefix by elements, ImplementationSpecific as Prefix; the longest path comes first', (t) => {
  const given = world(
    ingressJson(
      'web',
      rules([
        { path: '/foo' },
        { path: '/foo/bar/' },
        { path: '/foo', pathType: 'Exact' },
        { path: '/any', pathType: 'ImplementationSpecific' },
      ]),
    ),
  );
  t.deepEqual(
    routes(given).map((text) => text.split(' ')[0]),
    ['example.org=/foo', 'example.org/foo/bar', 'example.org/foo', 'example.org/any'],
  );
});

test('A wildcard host has exactly one label more; a rule without a host is for all', (t) => {
  const given = world(
    ingressJson('web', {
      rules: ['*.example.org', ''].flatMap((host) => rules([{ path: '/' }], host).rules as Json[]),
    }),
  );
  const { sections } = given.listener(80, 'tcp', KEY).routing as HttpRouting;
  t.deepEqual(
    sections[0]?.hosts.map(({ host }) => host),
    [
      { suffix: 'example.org', kind: 'one-label' },
      { suffix: '', kind: 'any' },
    ],
  );
});

test('What no rule matches goes to the default backend, after the rules for all hosts', (t) => {
  const old = ingressJson('old', { rules: [], defaultBackend: WEB });
  const given = world(old, ingressJson('web', rules([{ path: '/', pathType: 'Prefix' }], '')));
  t.deepEqual(routes(given), [
    `*/ ${TO_WEB} (Ingress default/web#0)`,
    `*/ ${TO_WEB} (Ingress default/old#0)`,
  ]);
});

test('The host of a rule without paths goes to the default backend', (t) => {
  const given = world(ingressJson('web', { rules: [{ host: 'example.org' }], defaultBackend: WEB }));
  t.is(routes(given)[0], `example.org/ ${TO_WEB} (Ingress default/web#0)`);
});

test('A port of a Service is named by number or by name; one that is missing answers 503', (t) => {
  const backend = (port: Json, name = 'web') => ({ service: { name, port } });
  const given = world(
    service({ type: 'ClusterIP', ports: [{ name: 'http', protocol: 'TCP', port: 80 }] } as never),
    ingressJson(
      'web',
      rules([
        { path: '/a', backend: backend({ name: 'http' }) },
        { path: '/bb', backend: backend({ number: 81 }) },
        { path: '/ccc', backend: backend({ number: 80 }, 'missing') },
        { path: '/dddd', backend: { resource: { kind: 'Bucket', name: 'files', apiGroup: 'x.org' } } },
      ]),
    ),
  );
  t.deepEqual(
    routes(given).map((text) => text.replace(/ \(.*/, '')),
    [
      'example.org/dddd → 500',
      'example.org/ccc → 503*1',
      'example.org/bb → 503*1',
      `example.org/a ${TO_WEB}`,
    ],
  );
  t.deepEqual(problems(given), [
    'Ingress default/web InvalidRoute: Cannot send to Service "default/web": it has no TCP port 81; its requests get status 503',
    'Ingress default/web InvalidRoute: Cannot send to Service "default/missing": it does not exist; its requests get status 503',
    'Ingress default/web InvalidRoute: The backend "Bucket files" is not a Service: its requests get status 500; name a Service',
  ]);
});

test('Of two Ingresses with one path the older one is served, and the other is told', (t) => {
  const at = (name: string, creationTimestamp: string) => {
    const json = ingressJson(name, rules([{ path: '/' }]));
    return { ...json, metadata: { ...(json.metadata as Json), creationTimestamp } };
  };
  const given = world(at('a', '2026-11-02T00:00:00Z'), at('b', '2026-11-01T00:00:00Z'));
  t.regex(routes(given)[0] ?? '', /default\/b#0/);
  t.deepEqual(problems(given), [
    'Ingress default/a RouteShadowed: Path "/" of host "example.org" gets no request: the older Ingress default/b has the same one',
  ]);
});

const TLS: Json = { ...rules([{ path: '/' }]), tls: [{ hosts: ['example.org'], secretName: 'web-tls' }] };

test('A host with TLS is served on port 443, and clients of port 80 are sent there', (t) => {
  const given = world(secret('web-tls'), ingressJson('web', TLS));
  t.is(routes(given)[0], 'example.org/ → redirect 308 (Ingress default/web#0)');
  t.is(routes(given, 443)[0], `example.org/ ${TO_WEB} (Ingress default/web#0)`);
  const { tls } = given.listener(443, 'tcp', KEY);
  t.is(tls?.certificates[0]?.name, 'default/web-tls');
  t.deepEqual(tls?.sections?.[0]?.hostname, { suffix: 'example.org', kind: 'exact' });
});

test('ssl-redirect off serves the host on port 80 as well; force-ssl-redirect sends all hosts to https', (t) => {
  const off = world(
    secret('web-tls'),
    ingressJson('web', TLS, { 'nginx.ingress.kubernetes.io/ssl-redirect': 'false' }),
  );
  t.is(routes(off)[0], `example.org/ ${TO_WEB} (Ingress default/web#0)`);
  const forced = annotated({ 'force-ssl-redirect': 'true' }, rules([{ path: '/' }]));
  t.is(routes(forced)[0], 'example.org/ → redirect 308 (Ingress default/web#0)');
});

test('ssl-redirect on never serves a host with TLS in clear, also without a certificate; a host without TLS is served', (t) => {
  const on = { 'ssl-redirect': 'true' };
  t.is(routes(annotated(on, TLS))[0], 'example.org/ → redirect 308 (Ingress default/web#0)');
  t.is(routes(annotated(on, rules([{ path: '/' }])))[0], `example.org/ ${TO_WEB} (Ingress default/web#0)`);
  t.is(routes(annotated({}, TLS))[0], `example.org/ ${TO_WEB} (Ingress default/web#0)`);
});

test('Without a usable certificate port 443 is closed, and the author is told', (t) => {
  const given = world(ingressJson('web', TLS));
  t.deepEqual(
    given.loadBalancer(KEY).listeners.map(({ port }) => port),
    [80],
  );
  t.regex(
    problems(given)[0] ?? '',
    /^Ingress default\/web CertificateMissing: Cannot use Secret "default\/web-tls"/,
  );
});

for (const [title, path, target, match, rewrite] of [
  ['a fixed path', '/shop', '/', '/shop', { kind: 'full', value: '/' }],
  ['the rest behind (/|$)(.*)', '/shop(/|$)(.*)', '/$2', '/shop', { kind: 'prefix', value: '' }],
  ['the rest below another path', '/shop(/|$)(.*)', '/base/$2', '/shop', { kind: 'prefix', value: '/base' }],
  ['the rest behind /(.*)', '/shop/(.*)', '/$1', '/shop', { kind: 'prefix', value: '' }],
  [
    'the whole path below another one',
    '/(shop/.*)',
    '/base/$1',
    '/shop',
    { kind: 'prefix', value: '/base/shop' },
  ],
] as const) {
  test(`rewrite-target: ${title}`, (t) => {
    const spec = rules([{ path, pathType: 'ImplementationSpecific' }]);
    const given = annotated({ 'rewrite-target': target }, spec);
    t.regex(routes(given)[0] ?? '', new RegExp(`^example.org${match} `));
    t.deepEqual((ruleOf(given).action as ForwardAction).rewrite, { hostname: '', path: rewrite });
  });
}

for (const [path, target] of [
  ['/shop/?(.*)', '/$1'],
  ['/shop(/|$)(.*)', '/base$1$2'],
  ['/v([0-9]+)/(api|web)/(.*)', '/$2/$1/$3'],
] as const)
  test(`rewrite-target ${target} has what the groups of ${path} take`, (t) => {
    const given = annotated(
      { 'rewrite-target': target },
      rules([{ path, pathType: 'ImplementationSpecific' }]),
    );
    t.deepEqual(problems(given), []);
    const rewrite = { kind: 'groups', value: target, pattern: `(?i)${path}` };
    t.deepEqual((ruleOf(given).action as ForwardAction).rewrite?.path, rewrite);
  });

test('rewrite-target leaves the path as it is if the only group is all of it', (t) => {
  const given = annotated(
    { 'rewrite-target': '/$1' },
    rules([{ path: '/(shop/.*)', pathType: 'ImplementationSpecific' }]),
  );
  t.deepEqual(problems(given), []);
  t.is((ruleOf(given).action as ForwardAction).rewrite, undefined);
});

for (const [target, path, to] of [
  ['https://bar.example.net/$1', '/old', { hostname: 'bar.example.net', path: { kind: 'full', value: '/' } }],
  ['https://bar.example.net', '/old', { hostname: 'bar.example.net', path: { kind: 'full', value: '/' } }],
  [
    'http://bar.example.net:8080/new/$1',
    '/old/(.*)',
    { scheme: 'http', hostname: 'bar.example.net', port: 8080, path: { kind: 'prefix', value: '/new' } },
  ],
  [
    'https://bar.example.net/$1',
    '/old/?(.*)',
    { hostname: 'bar.example.net', path: { kind: 'groups', value: '/$1', pattern: '(?i)/old/?(.*)' } },
  ],
] as const)
  test(`rewrite-target ${target} sends clients of ${path} there`, (t) => {
    const given = annotated(
      { 'rewrite-target': target },
      rules([{ path, pathType: 'ImplementationSpecific' }]),
    );
    t.deepEqual(problems(given), []);
    t.deepEqual(ruleOf(given).action as RedirectAction, {
      kind: 'redirect',
      status: 302,
      scheme: 'https',
      port: 0,
      ...to,
    });
  });

for (const target of [
  'https://bar.example.net$1',
  'https://$1.example.net/',
  'https://bar.example.net/?a=$1',
  'https://user@bar.example.net/',
  'https://bar.example.net:70000/',
  'ftp://bar.example.net/',
])
  test(`rewrite-target ${target} is refused, and its paths answer 500`, (t) => {
    const given = annotated({ 'rewrite-target': target });
    t.regex(problems(given)[0] ?? '', /InvalidAnnotation/);
    t.deepEqual(ruleOf(given).action, { kind: 'answer', status: 500 });
  });

test('Groups of a rewrite-target are empty for a path that is no expression', (t) => {
  const given = annotated({ 'rewrite-target': '/app/$2' });
  t.deepEqual(problems(given), []);
  t.deepEqual((ruleOf(given).action as ForwardAction).rewrite?.path, { kind: 'full', value: '/app/' });
});

test('A rewrite-target with groups that the path does not have is refused by name, and its path answers 500', (t) => {
  const given = annotated(
    { 'rewrite-target': '/$4' },
    rules([{ path: '/a(b)(c)(d)', pathType: 'ImplementationSpecific' }]),
  );
  t.deepEqual(routes(given), ['example.org~(?i)/a(b)(c)(d) → 500 (Ingress default/web#0)']);
  t.regex(
    problems(given)[0] ?? '',
    /"rewrite-target" cannot be carried out: path "\/a\(b\)\(c\)\(d\)" has no group \$4/,
  );
});

test('use-regex makes paths regular expressions', (t) => {
  const given = annotated(
    { 'use-regex': 'true' },
    rules([
      { path: '/v[12]/.*', pathType: 'ImplementationSpecific' },
      { path: '/admin/x(', pathType: 'ImplementationSpecific' },
    ]),
  );
  t.deepEqual(
    routes(given).map((text) => text.replace(/ \(.*/, '')),
    [`example.org~(?i)/v[12]/.* ${TO_WEB}`, 'example.org~(?i)/admin/x → 500'],
  );
  t.regex(problems(given)[0] ?? '', /path "\/admin\/x\(" is not a regular expression/);
});

test('A canary takes its weight of the requests, and all with its header or cookie', (t) => {
  const canary = {
    'nginx.ingress.kubernetes.io/canary': 'true',
    'nginx.ingress.kubernetes.io/canary-weight': '20',
    'nginx.ingress.kubernetes.io/canary-by-header': 'X-Canary',
    'nginx.ingress.kubernetes.io/canary-by-cookie': 'next',
  };
  const next = { service: { name: 'next', port: { number: 80 } } };
  const given = world(
    service({ name: 'next', key: 'default/next', type: 'ClusterIP' }),
    ingressJson('web', rules([{ path: '/' }])),
    ingressJson('next', rules([{ path: '/', backend: next }]), canary),
  );
  t.deepEqual(routes(given), [
    'example.org/ [x-canary=always] → next:tcp:80:v4*1 (Ingress default/next#0)',
    'example.org/ [x-canary=never] → web:tcp:80:v4*1 (Ingress default/web#0)',
    'example.org/ [cookie=(?:.*; *)?next=always(?: *;.*)?] → next:tcp:80:v4*1 (Ingress default/next#0)',
    'example.org/ [cookie=(?:.*; *)?next=never(?: *;.*)?] → web:tcp:80:v4*1 (Ingress default/web#0)',
    'example.org/ → web:tcp:80:v4*80 next:tcp:80:v4*20 (Ingress default/web#0)',
  ]);
});

for (const [annotations, status, location] of [
  [{ 'permanent-redirect': 'https://new.example.org/x' }, 301, 'https://new.example.org/x'],
  [{ 'permanent-redirect': 'https://new.example.org' }, 301, 'https://new.example.org/'],
  [{ 'permanent-redirect': 'https://new.example.org/x?a=1#b' }, 301, 'https://new.example.org/x?a=1#b'],
  [{ 'permanent-redirect': 'https://bücher.example/é' }, 301, 'https://xn--bcher-kva.example/%C3%A9'],
  [
    { 'permanent-redirect': 'https://new.example.org$request_uri' },
    301,
    'https://new.example.org$request_uri',
  ],
  [{ 'permanent-redirect': 'https://www.$host/new$uri' }, 301, 'https://www.$host/new$uri'],
  [{ 'permanent-redirect': '$scheme://$host:8443/' }, 301, '$scheme://$host:8443/'],
  [
    { 'permanent-redirect': 'https://new.example.org$uri$is_args$args' },
    301,
    'https://new.example.org$uri$is_args$args',
  ],
  [
    { 'temporal-redirect': 'http://new.example.org:81/', 'temporal-redirect-code': '307' },
    307,
    'http://new.example.org:81/',
  ],
  // Of both the temporal one counts, with its own status.
  [
    {
      'permanent-redirect': 'https://a.example/',
      'permanent-redirect-code': '308',
      'temporal-redirect': 'https://b.example/',
    },
    302,
    'https://b.example/',
  ],
] as const) {
  test(`All requests are redirected: ${Object.values(annotations).join(' ')}`, (t) => {
    t.like(ruleOf(annotated(annotations)).action, { kind: 'redirect', status, location });
  });
}

for (const text of [
  'https://new.example.org$args',
  'https://new.example.org$request_uri2',
  'https://new.example.org/$1',
  'https://new.example.org/$',
  'https://new.example.org/$\x7bhost}',
  'https://$uri',
  'https://$request_uri',
  'https://me@$host/',
  'https://me@new.example.org/',
  'ftp://$host/',
  '$uri',
  '/x',
  'https://new.example.org/a b',
  'https://new.example.org/"',
  `https://new.example.org/${'x'.repeat(1_024)}`,
]) {
  test(`A redirect is refused: ${text.slice(0, 60)}`, (t) => {
    const [problem = ''] = problems(annotated({ 'permanent-redirect': text }));
    t.regex(problem, /permanent-redirect" .* is not an http or https URL; \$host/);
    t.deepEqual(ruleOf(annotated({ 'permanent-redirect': text })).action, { kind: 'answer', status: 500 });
  });
}

test('A guarded path comes before a regular expression that is shorter', (t) => {
  const prefix = 'nginx.ingress.kubernetes.io/';
  const open = rules([{ path: '/api/.*', pathType: 'ImplementationSpecific' }]);
  const given = world(
    ingressJson('open', open, { [`${prefix}use-regex`]: 'true' }),
    ingressJson('admin', rules([{ path: '/api/admin' }]), {
      [`${prefix}whitelist-source-range`]: '10.0.0.0/8',
    }),
  );
  t.deepEqual(routes(given), [
    `example.org~(?i)/api/admin ${TO_WEB} (Ingress default/admin#0)`,
    `example.org/api/admin ${TO_WEB} (Ingress default/admin#0)`,
    `example.org~(?i)/api/.* ${TO_WEB} (Ingress default/open#0)`,
  ]);
});

test('Beside an expression of the host guarded paths have every spelling, by the length that ingress-nginx gives them', (t) => {
  const prefix = 'nginx.ingress.kubernetes.io/';
  const GUARD = { [`${prefix}whitelist-source-range`]: '10.0.0.0/8' };
  const REST = { [`${prefix}rewrite-target`]: '/$2' };
  const at = (path: string, pathType = 'ImplementationSpecific') => rules([{ path, pathType }]);
  const all = [
    ingressJson('open', at('/', 'Prefix')),
    ingressJson('api', at('/api(/|$)(.*)'), { ...GUARD, ...REST }),
    ingressJson('health', at('/api/health(/|$)(.*)'), REST),
    ingressJson('v1', at('/api/v1', 'Prefix')),
    ingressJson('exact', at('/a.b', 'Exact'), GUARD),
  ];
  t.deepEqual(routes(world(...all)), [
    `example.org=/a.b ${TO_WEB} (Ingress default/exact#0)`,
    `example.org/api/health ${TO_WEB} (Ingress default/health#0)`,
    `example.org~(?i)/api(/|$)(.*) ${TO_WEB} (Ingress default/api#0)`,
    `example.org/api/v1 ${TO_WEB} (Ingress default/v1#0)`,
    `example.org/api ${TO_WEB} (Ingress default/api#0)`,
    `example.org~(?i)/a\\.b ${TO_WEB} (Ingress default/exact#0)`,
    `example.org/ ${TO_WEB} (Ingress default/open#0)`,
  ]);
  // Nothing of the host is open, and all is alike: the rows stay without expressions.
  const alike = ['/api(/|$)(.*)', '/(.*)'].map((path, number) =>
    ingressJson(`all-${number}`, at(path), { ...GUARD, [`${prefix}rewrite-target`]: '/x' }),
  );
  t.deepEqual(
    routes(world(...alike)).map((text) => text.replace(/ .*/, '')),
    ['example.org/api', 'example.org/'],
  );
});

test('A canary has its part of a guarded path in every spelling, and its own rewriting', (t) => {
  const prefix = 'nginx.ingress.kubernetes.io/';
  const GUARD = { [`${prefix}whitelist-source-range`]: '10.0.0.0/8' };
  const next = { service: { name: 'next', port: { number: 80 } } };
  const path = { path: '/api(/|$)(.*)', pathType: 'ImplementationSpecific' };
  const given = world(
    service({ name: 'next', key: 'default/next', type: 'ClusterIP' }),
    ingressJson('open', rules([{ path: '/' }])),
    ingressJson('api', rules([path]), { ...GUARD, [`${prefix}rewrite-target`]: '/$2' }),
    ingressJson('next', rules([{ ...path, backend: next }]), {
      [`${prefix}rewrite-target`]: '/next/$2',
      [`${prefix}canary`]: 'true',
      [`${prefix}canary-by-header`]: 'X-Canary',
    }),
  );
  const { sections } = given.listener(80, 'tcp', KEY).routing as HttpRouting;
  const entries = (sections[0]?.hosts[0]?.entries ?? []).filter(({ match }) => match.path.kind === 'regex');
  t.deepEqual(
    entries.map(({ match: { headers }, rule: { action, limits } }) => [
      headers[0]?.value,
      (action as ForwardAction).rewrite?.path?.value,
      limits?.allowedCidrs[0],
    ]),
    [
      ['always', '/next/$2', '10.0.0.0/8'],
      ['never', '/$2', '10.0.0.0/8'],
      [undefined, '/$2', '10.0.0.0/8'],
    ],
  );
});

test('A guarded path of type ImplementationSpecific has what begins with its letters, as in ingress-nginx', (t) => {
  const prefix = 'nginx.ingress.kubernetes.io/';
  const at = (path: string) => rules([{ path, pathType: 'ImplementationSpecific' }]);
  const given = world(
    ingressJson('open', at('/')),
    ingressJson('docs', rules([{ path: '/admin-docs' }])),
    ingressJson('admin', at('/admin'), { [`${prefix}whitelist-source-range`]: '10.0.0.0/8' }),
    ingressJson('dots', at('/v1.0'), { [`${prefix}enable-modsecurity`]: 'true' }),
    ingressJson('free', at('/free')),
    ingressJson('slash', at('/slash/'), { [`${prefix}limit-rps`]: '5' }),
  );
  t.deepEqual(routes(given), [
    `example.org/admin-docs ${TO_WEB} (Ingress default/docs#0)`,
    `example.org~/admin[^/] ${TO_WEB} (Ingress default/admin#0)`,
    `example.org/admin ${TO_WEB} (Ingress default/admin#0)`,
    `example.org/slash ${TO_WEB} (Ingress default/slash#0)`,
    'example.org~/v1\\.0[^/] → 403 (Ingress default/dots#0)',
    'example.org/v1.0 → 403 (Ingress default/dots#0)',
    `example.org/free ${TO_WEB} (Ingress default/free#0)`,
    `example.org/ ${TO_WEB} (Ingress default/open#0)`,
  ]);
});

test('A Service of type ExternalName behind an Ingress is told', (t) => {
  const given = annotated({});
  given.apply([service({ type: 'ExternalName', ports: [{ port: 80 }] })]);
  t.regex(problems(given).join(), /^Ingress default\/web .*"default\/web": it is of type ExternalName/);
});

test('app-root, from-to-www-redirect and server-alias add paths and hosts', (t) => {
  t.deepEqual(
    routes(annotated({ 'app-root': '/app' })).map((text) => text.replace(/ \(.*/, '')),
    ['example.org=/ → redirect 302', `example.org/ ${TO_WEB}`],
  );
  for (const root of ['/a?x=1', '/a$is_args$args'])
    t.like(ruleOf(annotated({ 'app-root': root })).action, { location: `$scheme://$host${root}` });
  t.deepEqual(
    routes(annotated({ 'from-to-www-redirect': 'true' })).map((text) => text.replace(/ \(.*/, '')),
    [`example.org/ ${TO_WEB}`, 'www.example.org/ → redirect 308'],
  );
  t.deepEqual(
    routes(annotated({ 'server-alias': 'a.example.org' })).map((text) => text.split('/')[0]),
    ['example.org', 'a.example.org'],
  );
});

test('proxy-next-upstream and affinity are of the pool, and which methods are sent again of the rule', (t) => {
  const given = annotated({
    'proxy-next-upstream': 'error http_502',
    'proxy-next-upstream-tries': '2',
    affinity: 'cookie',
  });
  const { backends, retriesIdempotentOnly } = ruleOf(given).action as ForwardAction;
  t.is(backends[0]?.pool, 'pool:default:web.stickyretry1on502:tcp:80:v4');
  t.true(retriesIdempotentOnly);
});

test('upstream-hash-by is of the pool, and by what of the rule', (t) => {
  const given = annotated({ 'upstream-hash-by': '$request_uri$http_x_user', 'proxy-next-upstream': 'error' });
  const { backends, hashBy } = ruleOf(given).action as ForwardAction;
  t.is(backends[0]?.pool, 'pool:default:web.hashedretry2:tcp:80:v4');
  t.is(hashBy, '$request_uri$http_x_user');
  const [pool] = given.loadBalancer('pool:default/web.hashedretry2').listeners;
  t.is(pool?.pool.algorithm, 'key-hash');
  for (const wrong of ['x', '$request', '$arg_', '$host;x', '$host$hostname', ''])
    t.regex(
      problems(annotated({ 'upstream-hash-by': wrong }))[0] ?? '',
      /"nginx.*upstream-hash-by" is ignored/,
    );
});

test('default-backend gets what no member takes, and one that does not exist is told', (t) => {
  const spec = rules([{ path: '/' }]);
  const annotations = { 'nginx.ingress.kubernetes.io/default-backend': 'sorry' };
  const given = world(
    service({ name: 'sorry', key: 'default/sorry', type: 'ClusterIP' }),
    ingressJson('web', spec, annotations),
  );
  t.is((ruleOf(given).action as ForwardAction).fallback, 'pool:default:sorry:tcp:80:v4');
  t.deepEqual(problems(given), []);
  t.true(given.state.desired.loadBalancers.has('pool:default/sorry'));
  const without = world(ingressJson('web', spec, annotations));
  t.is((ruleOf(without).action as ForwardAction).fallback, undefined);
  t.regex(
    problems(without)[0] ?? '',
    /"default-backend" has no effect: Service "default\/sorry" does not exist/,
  );
});

test('Limits, cross-origin requests, timeouts, hosts and protocols of members are those of the annotations', (t) => {
  const given = annotated({
    'proxy-body-size': '8m',
    'whitelist-source-range': '10.0.0.0/8, 192.0.2.7',
    'limit-rps': '50',
    'limit-rpm': '900',
    'limit-connections': '20',
    'enable-cors': 'true',
    'cors-allow-origin': 'https://example.com',
    'proxy-read-timeout': '90',
    'upstream-vhost': 'inner.example.org',
    'x-forwarded-prefix': '/shop',
    'backend-protocol': 'HTTPS',
    'auth-tls-pass-certificate-to-upstream': 'true',
  });
  const { limits, cors, action } = ruleOf(given);
  t.deepEqual(limits, {
    allowedCidrs: ['10.0.0.0/8', '192.0.2.7/32'],
    deniedCidrs: [],
    requestRate: 50,
    minuteRate: 900,
    requestsAtOnce: 20,
    bodyBytes: 8 * 1024 ** 2,
  });
  t.deepEqual(cors?.origins, ['https://example.com']);
  const forward = action as ForwardAction;
  t.is(forward.timeout, 90_000);
  t.true(forward.passesCertificate);
  t.deepEqual(forward.rewrite, { hostname: 'inner.example.org', path: undefined });
  t.deepEqual(forward.requestHeaders?.set, [{ name: 'X-Forwarded-Prefix', value: '/shop' }]);
  t.is(forward.backends[0]?.pool, 'pool:default:web.tls:tcp:80:v4');
  t.deepEqual(given.loadBalancer('pool:default/web.tls').listeners[0]?.pool.tls, {
    authority: undefined,
    serverName: '',
  });
});

test('Annotations without an effect are named once, and values that are not allowed with what is', (t) => {
  const given = annotated({
    'configuration-snippet': 'add_header X-A b;',
    'proxy-buffer-size': '8k',
    'proxy-read-timeout': 'long',
  });
  t.deepEqual(problems(given), [
    'Ingress default/web InvalidAnnotation: Annotation "nginx.ingress.kubernetes.io/proxy-read-timeout" is ignored: "long" is not seconds',
    'Ingress default/web AnnotationIgnored: These annotations have no effect here: "nginx.ingress.kubernetes.io/configuration-snippet", "nginx.ingress.kubernetes.io/proxy-buffer-size"',
  ]);
  t.is(ruleOf(given).action.kind, 'forward');
});

test('Clients of a host with auth-tls-secret need a certificate, also by the name of another host', (t) => {
  const authority = secret('clients');
  const spec = {
    ...TLS,
    rules: [...(TLS.rules as Json[]), ...(rules([{ path: '/' }], 'open.example.org').rules as Json[])],
  };
  const annotations = { 'nginx.ingress.kubernetes.io/auth-tls-secret': 'default/clients' };
  const closed = world(
    secret('web-tls'),
    { ...authority, authority: { content: undefined, fault: 'it has no ca.crt' } },
    ingressJson('web', spec, annotations),
  );
  t.true(routes(closed, 443).every((text) => text.includes('→ 403')));
  t.regex(
    problems(closed)[0] ?? '',
    /Cannot use Secret "default\/clients" for client certificates: it has no ca.crt/,
  );
  const content = { fingerprint: 'abc' } as never;
  const given = world(
    secret('web-tls'),
    { ...authority, authority: { content, fault: '' } },
    ingressJson('web', spec, annotations),
  );
  const { tls, routing } = given.listener(443, 'tcp', KEY);
  t.deepEqual(tls?.sections?.[0]?.clients, {
    verify: 'required',
    authority: { name: 'secret default/clients', fingerprint: 'abc' },
    crl: { name: 'secret default/clients', fingerprint: authority.crl.content?.fingerprint ?? '' },
  });
  const withBadList = world(
    secret('web-tls'),
    { ...authority, crl: { content: undefined, fault: 'ca.crl has no revocation list in PEM' } },
    ingressJson('web', spec, annotations),
  );
  t.true(routes(withBadList, 443).every((text) => text.includes('→ 403')));
  const { sections, detectMisdirected } = routing as HttpRouting;
  t.deepEqual(
    sections.map(({ name }) => name),
    ['all', 'example.org', 'open.example.org'],
    'all hosts of its rules, not only those of its tls',
  );
  t.true(detectMisdirected);
});

test('A host without auth-tls-secret keeps its requests beside a wildcard that asks for certificates', (t) => {
  const content = { fingerprint: 'abc' } as never;
  const tls = (host: string): Json => ({ tls: [{ hosts: [host], secretName: 'web-tls' }] });
  const given = world(
    secret('web-tls'),
    { ...secret('clients'), authority: { content, fault: '' } },
    ingressJson(
      'wide',
      { ...tls('*.example.org'), ...rules([{ path: '/' }], '*.example.org') },
      { 'nginx.ingress.kubernetes.io/auth-tls-secret': 'default/clients' },
    ),
    ingressJson('own', { ...tls('open.example.org'), ...rules([{ path: '/' }], 'open.example.org') }),
  );
  const { tls: asked, routing } = given.listener(443, 'tcp', KEY);
  const { section, found } = findRule(
    routing as HttpRouting,
    askedRequest('https://open.example.org/'),
    readPath('/', { dotSegments: 'reject', ambiguousPaths: 'pass' }),
  );
  t.is(section?.name, 'open.example.org');
  t.is(found?.entry.rule.route, 'Ingress default/own');
  t.deepEqual(
    asked?.sections?.map(({ hostname, clients }) => [hostname.kind, hostname.suffix, clients?.verify]),
    [
      ['exact', 'open.example.org', undefined],
      ['one-label', 'example.org', 'required'],
    ],
  );
});

test('An Ingress that is deleted, or gets another class, takes its routes and status with it', (t) => {
  const given = world(ingressJson());
  given.apply([ingressJson('web', { ingressClassName: 'other' })]);
  t.deepEqual(given.loadBalancer(KEY).listeners, []);
  t.deepEqual(given.state.desired.statuses.partsOf('Ingress default/web'), []);
  t.false(given.state.desired.loadBalancers.has('pool:default/web'));
});

test('The routes of a host keep their identity while another host changes', (t) => {
  const given = world(
    ingressJson('web', rules([{ path: '/' }])),
    ingressJson('b', rules([{ path: '/' }], 'b.org')),
  );
  const hosts = () => (given.listener(80, 'tcp', KEY).routing as HttpRouting).sections[0]?.hosts ?? [];
  const [, first] = hosts();
  given.apply([ingressJson('b', rules([{ path: '/new' }], 'b.org'))]);
  t.is(first?.host.suffix, 'example.org');
  t.is(hosts()[1], first);
  t.is(hosts()[0]?.entries[0]?.match.path.value, '/new');
});
