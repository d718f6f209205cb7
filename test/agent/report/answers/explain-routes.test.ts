// What `why` says about routes and about requests.

import test from 'ava';
import type { MemberFact } from '../../../../agent/dataplane/forwarder.ts';
import type { KubernetesObject } from '../../../../agent/kubernetes/objects.ts';
import { ANY_CLIENT } from '../../../../agent/report/answers/access/client.ts';
import { NO_PROOFS } from '../../../../agent/report/answers/access/proofs.ts';
import { explainService } from '../../../../agent/report/answers/explain.ts';
import { explainLocation, placeOf } from '../../../../agent/report/answers/explain-location.ts';
import { explainObject } from '../../../../agent/report/answers/explain-object.ts';
import { explainRequest } from '../../../../agent/report/answers/explain-request.ts';
import type { StatusSources } from '../../../../agent/report/answers/status.ts';
import { StatusBook } from '../../../../agent/report/operating/status-book.ts';
import { Announcers } from '../../../../agent/vips/announcers.ts';
import { clusterOf, endpoint, service, slice } from '../../../support/values/build.ts';
import {
  gateway,
  gatewayClass,
  ingress,
  ingressClass,
  parsed,
  routeJson,
} from '../../../support/values/gateways.ts';
import { translateCluster } from '../../../support/values/translated.ts';

const GATEWAY = gateway('edge', {
  addresses: [{ type: 'IPAddress', value: '192.0.2.1' }],
  listeners: [
    { name: 'http', port: 80, protocol: 'HTTP' },
    { name: 'shop', port: 80, protocol: 'HTTP', hostname: '*.shop.example.org' },
  ],
});
const BACKEND = [service({ type: 'ClusterIP', ports: [{ port: 80 }] }), slice({ endpoints: ['10.0.0.1'] })];
const rule = (matches: readonly object[], more: object = {}) => ({
  matches,
  backendRefs: [{ name: 'web', port: 80 }],
  ...more,
});
const PATH = { path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } };
const path = (value: string, type = 'PathPrefix') => ({ path: { type, value } });
const route = (name: string, spec: object) =>
  parsed(routeJson(name, [{ name: 'edge', sectionName: 'http' }], spec as never));

const MAPPED = { pod: '10.0.0.1', vip: '192.0.2.7', owner: 'default/shop', target: 'Pod/web-1' };

function sources(objects: readonly KubernetesObject[]): StatusSources {
  const cluster = clusterOf([gatewayClass(), GATEWAY, ...BACKEND, ...objects]);
  const dataplane = {
    serves: () => true,
    members: (): ReadonlyMap<string, MemberFact> =>
      new Map([['10.0.0.1:8080', { state: 'ready', weight: 1, isDown: undefined, cause: '' }]]),
    failures: () => undefined,
    problemsOf: () => [],
    status: () => ({ fault: '' }),
  };
  const desired = translateCluster(cluster);
  const operating = new StatusBook();
  for (const [key, each] of desired.loadBalancers) operating.update(key, each, dataplane);
  return {
    desired,
    cluster,
    dataplane,
    reach: undefined,
    announcers: new Announcers({ vrrp: undefined }),
    operating,
    api: () => undefined,
    sourceProblems: () => [],
    pathsOf: () => [],
    zone: () => '',
    dotSegments: () => 'reject',
    ambiguousPaths: () => 'reject-where-guarded',
    proofs: NO_PROOFS,
    egress: {
      mappingOf: (pod: string) => (pod === MAPPED.pod ? MAPPED : undefined),
      mappingsOf: (_: string, target: string) => (target === MAPPED.target ? [MAPPED] : []),
    },
  } as unknown as StatusSources;
}

const API = route('api', {
  hostnames: ['example.org'],
  rules: [
    rule([{ ...path('/v2'), headers: [{ name: 'version', value: 'two' }] }]),
    rule([path('/v2')]),
    rule([path('/old', 'Exact')], {
      backendRefs: [],
      filters: [{ type: 'RequestRedirect', requestRedirect: { scheme: 'https', statusCode: 301 } }],
    }),
  ],
});

test('A request is explained by the rule that takes it, its pool, and the rules before it', (t) => {
  const { answers, reason } = explainRequest('http://example.org/v2/x', sources([API]));
  t.is(reason, '');
  t.is(answers.length, 1);
  t.like(answers[0], {
    loadBalancer: 'Gateway default/edge',
    addresses: ['192.0.2.1'],
    isServed: true,
    section: 'http',
    rule: 'HTTPRoute default/api#1',
    action: 'forwards to one pool (host example.org, path /v2/…)',
    pools: [{ name: 'pool:default/web port 80', weight: 1, ready: 1, members: 1 }],
    others: [
      {
        rule: 'HTTPRoute default/api#0',
        why: 'only if header "version" is "two"',
        hasPath: true,
        isUnclear: false,
      },
    ],
    access: { verdict: 'open', sentence: 'Open to everybody' },
  });
});

for (const [url, action] of [
  ['http://example.org/old', 'redirects with 301 to scheme https (host example.org, path /old exactly)'],
  ['http://example.org/other', 'answers 404: none of the rules matches'],
  ['http://a.shop.example.org/v2', 'answers 404: no route is attached to listener "shop"'],
  ['http://example.net/v2', 'answers 404: no route of listener "http" has the host "example.net"'],
] as const)
  test(`The answer to ${url} is explained`, (t) => {
    t.is(explainRequest(url, sources([API])).answers[0]?.action, action);
  });

test('A request to a port without a listener says so', (t) => {
  const { answers, reason } = explainRequest('https://example.org:8443/', sources([API]));
  t.deepEqual([answers, reason], [[], 'No Gateway or Ingress listens for HTTPS on port 8443']);
});

test('A request to an address is explained for the load balancer that has it', (t) => {
  const all = sources([API]);
  t.is(explainRequest('http://192.0.2.1/v2', all).answers.length, 1);
  t.is(explainRequest('http://192.0.2.9/v2', all).answers.length, 0);
});

test('A route is explained by its parents, its rules and their pools', (t) => {
  const { verdict, reasons, parents, rules } = explainObject('HTTPRoute default/api', sources([API]));
  t.deepEqual([verdict, reasons], ['served', []]);
  t.deepEqual(
    parents.map(({ name, conditions }) => [
      name,
      ...conditions.map(({ type, status }) => `${type} ${status}`),
    ]),
    [['Gateway edge, listener "http"', 'Accepted True', 'ResolvedRefs True']],
  );
  t.like(rules[1], {
    name: 'HTTPRoute default/api#1',
    places: ['Gateway default/edge, HTTP port 80 on 192.0.2.1 (listener "http"), host example.org'],
    matches: ['path /v2/…'],
    action: 'forwards to one pool',
    pools: [{ name: 'pool:default/web port 80', weight: 1, ready: 1, members: 1 }],
  });
});

test('A route with a backend that does not exist is served in part, and says what is wrong', (t) => {
  const broken = route('broken', { rules: [{ backendRefs: [{ name: 'nothing', port: 80 }] }] });
  const { verdict, reasons, rules } = explainObject('HTTPRoute default/broken', sources([broken]));
  t.is(verdict, 'served in part');
  t.regex(reasons[0] ?? '', /^Gateway edge, listener "http": not ResolvedRefs \(BackendNotFound\)/);
  t.deepEqual(rules[0]?.pools[0]?.name, '');
});

test('A route whose last version cannot be read is explained by the one before, and says why', (t) => {
  const message = 'HTTPRoute default/api: spec.rules: 7 is not a list';
  const refused = { object: 'HTTPRoute default/api', reason: 'InvalidObject', message } as const;
  const found = explainObject('HTTPRoute default/api', {
    ...sources([API]),
    sourceProblems: () => [refused, { ...refused, object: 'HTTPRoute default/other', message: 'Another' }],
  });
  t.deepEqual([found.verdict, found.reasons], ['served', [message]]);
  t.true(found.rules.length > 0);
});

test('A route that the listener does not allow is not served', (t) => {
  const other = parsed(routeJson('other', [{ name: 'edge', sectionName: 'none' }]));
  const { verdict, reasons } = explainObject('HTTPRoute default/other', sources([other]));
  t.is(verdict, 'not served');
  t.regex(reasons[0] ?? '', /not Accepted \(NoMatchingParent\)/);
});

test('A route of another Gateway is not ours, and one that is not there is not found', (t) => {
  const theirs = parsed(routeJson('theirs', [{ name: 'another' }]));
  t.is(explainObject('HTTPRoute default/theirs', sources([theirs])).verdict, 'not ours');
  t.is(explainObject('HTTPRoute default/none', sources([])).verdict, 'not found');
});

test('A misspelt parent of a route is told with the nearest Gateway, ListenerSet, or listener', (t) => {
  const set = parsed({
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'ListenerSet',
    metadata: { namespace: 'default', name: 'extra', uid: 'extra', generation: 1 },
    spec: { parentRef: { name: 'edge' }, listeners: [{ name: 'more', port: 8080, protocol: 'HTTP' }] },
  });
  const reasonsOf = (parent: object) => {
    const given = parsed(routeJson('other', [parent as never]));
    return explainObject('HTTPRoute default/other', sources([set, given])).reasons;
  };
  const ofSet = (name: string) => reasonsOf({ name, kind: 'ListenerSet' })[1];
  t.is(ofSet('extar'), 'There is no ListenerSet "default/extar", the nearest is "default/extra"');
  t.is(ofSet('edge'), 'There is no ListenerSet "default/edge"');
  const missing = (name: string) => `There is no Gateway "default/${name}"`;
  t.is(reasonsOf({ name: 'egde' })[1], `${missing('egde')}, the nearest is "default/edge"`);
  t.is(reasonsOf({ name: 'something-else' })[1], missing('something-else'));
  t.is(reasonsOf({ name: 'web', kind: 'Service', group: '' }).length, 1);
  t.regex(
    reasonsOf({ name: 'edge', sectionName: 'htpt' })[0] ?? '',
    /The parent has no listener with name "htpt", the nearest is "http"$/,
  );
  t.regex(reasonsOf({ name: 'edge', sectionName: 'none' })[0] ?? '', /with name "none"$/);
});

test('A Gateway is explained by its listeners and how many rules they have; a pool by its members', (t) => {
  const all = sources([API]);
  t.like(explainService('gateway:default/edge', all), {
    verdict: 'served',
    status: 'ONLINE',
    reasons: [],
    addresses: ['192.0.2.1'],
    listeners: [{ port: 80, rules: 3, members: [] }],
  });
  t.like(explainService('pool:default/web', all), {
    verdict: 'served',
    listeners: [{ rules: undefined, members: [{ name: '10.0.0.1:8080', haproxy: 'ready' }] }],
  });
  t.deepEqual(explainService('gateway:default/none', all).reasons, ['There is no Gateway "default/none"']);
});

test('A Gateway is found by its plain name if there is no such Service, and a misspelt name gets the nearest', (t) => {
  const all = sources([API]);
  t.like(explainService('default/edge', all), { key: 'gateway:default/edge', verdict: 'served' });
  t.deepEqual(explainService('default/wbe', all).reasons, [
    'There is no Service "default/wbe", the nearest is "default/web"',
  ]);
  t.deepEqual(explainService('gateway:default/egde', all).reasons, [
    'There is no Gateway "default/egde", the nearest is "gateway:default/edge"',
  ]);
});

test('The class of Ingresses and one of them are explained', (t) => {
  const annotations = { 'headgate.io/load-balancer-ips': '192.0.2.2' };
  const all = sources([ingressClass('edge', annotations), ingress()]);
  t.is(explainService('ingress:-/edge', all).verdict, 'served');
  const { verdict, rules } = explainObject('Ingress default/web', all);
  t.is(verdict, 'served');
  t.deepEqual(rules[0]?.matches, ['path /…']);
  t.is(
    explainRequest('http://example.org/', all).answers.find(({ rule }) => rule !== '')?.loadBalancer,
    'IngressClass edge',
  );
});

test('An Ingress that redirects on one port and forwards on another has a line for each, with its pools', (t) => {
  const annotations = { 'headgate.io/load-balancer-ips': '192.0.2.2' };
  const all = sources([
    ingressClass('edge', annotations),
    ingress('web', {}, { 'nginx.ingress.kubernetes.io/force-ssl-redirect': 'true' }),
    ingress('other', { rules: [{ host: 'b.example.org', http: { paths: [PATH] } }] }),
  ]);
  const of = (name: string) =>
    explainObject(`Ingress default/${name}`, all).rules.map(({ action, pools }) => [action, pools.length]);
  t.deepEqual(of('other'), [['forwards to one pool', 1]]);
  t.deepEqual(of('web'), [['redirects with 308 to scheme https', 0]]);
});

test('A route, a listener or a backend that does not work makes its Gateway or class served in part', (t) => {
  const verdictOf = (key: string, ...objects: readonly KubernetesObject[]) =>
    explainService(key, sources(objects)).verdict;
  const rules = (name: string) => ({ rules: [{ backendRefs: [{ name, port: 80 }] }] });
  t.is(verdictOf('gateway:default/edge', route('api', rules('web'))), 'served');
  const broken = route('api', rules('missing'));
  t.is(verdictOf('gateway:default/edge', broken), 'served in part');
  t.regex(
    explainService('gateway:default/edge', sources([broken])).reasons[0] ?? '',
    /^HTTPRoute default\/api: Cannot serve all of it/,
  );
  const https = gateway('https', {
    addresses: [{ type: 'IPAddress', value: '192.0.2.4' }],
    listeners: [
      { name: 'http', port: 80, protocol: 'HTTP' },
      { name: 'https', port: 443, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'missing' }] } },
    ],
  });
  t.is(verdictOf('gateway:default/https', https), 'served in part');
  const edge = ingressClass('edge', { 'headgate.io/load-balancer-ips': '192.0.2.2' });
  t.is(verdictOf('ingress:-/edge', edge, ingress()), 'served');
  const backend = { service: { name: 'missing', port: { number: 80 } } };
  const missing = ingress('odd', {
    rules: [{ host: 'b.example.org', http: { paths: [{ ...PATH, backend }] } }],
  });
  t.is(verdictOf('ingress:-/edge', edge, ingress(), missing), 'served in part');
});

test('A Gateway names its routes; a Service behind routes is explained by its pool', (t) => {
  const all = sources([
    route('api', { rules: [rule([path('/api')])] }),
    route('shop', { rules: [rule([path('/shop')])] }),
  ]);
  const [listener] = explainService('gateway:default/edge', all).listeners;
  t.deepEqual(listener?.routes, ['HTTPRoute default/api', 'HTTPRoute default/shop']);
  t.is(listener?.moreRoutes, 0);
  const backend = explainService('default/web', all);
  t.deepEqual([backend.key, backend.verdict], ['pool:default/web', 'served']);
});

test('An address, a port of it, a member, a pod and a node are explained by what has them', (t) => {
  const all = sources([
    route('api', { rules: [rule([path('/api')])] }),
    service({ name: 'shop', loadBalancerIP: '192.0.2.7' }),
    slice({
      serviceName: 'shop',
      name: 'shop-1',
      endpoints: [endpoint('10.0.0.1', { target: 'Pod/web-1' })],
    }),
  ]);
  const found = (query: Readonly<Record<string, string>>) => {
    const { loadBalancers, members } = explainLocation(placeOf(new URLSearchParams(query)), all);
    return [loadBalancers.map(({ key }) => key), members.map(({ key, name }) => `${key} ${name}`)];
  };
  t.deepEqual(found({ address: '192.0.2.7' }), [['default/shop'], []]);
  t.deepEqual(found({ address: '192.0.2.7', port: '80' }), [['default/shop'], []]);
  t.deepEqual(found({ address: '192.0.2.7', port: '81' }), [[], []]);
  t.deepEqual(found({ address: '192.0.2.1' }), [['gateway:default/edge'], []]);
  const members = ['default/shop 10.0.0.1:8080', 'pool:default/web 10.0.0.1:8080'];
  t.deepEqual(
    found({ address: '10.0.0.1' }).map((each) => each.toSorted()),
    [[], members],
  );
  t.deepEqual(found({ target: 'Pod/web-1', namespace: 'default' }), [[], ['default/shop 10.0.0.1:8080']]);
  t.deepEqual(found({ target: 'Pod/web-1', namespace: 'other' }), [[], []]);
  t.deepEqual(found({ address: '192.0.2.99' }), [[], []]);
  for (const query of [{ address: '10.0.0.1' }, { target: 'Pod/web-1', namespace: 'default' }])
    t.deepEqual(explainLocation(placeOf(new URLSearchParams(query)), all).egress, [MAPPED]);
  t.deepEqual(explainLocation(placeOf(new URLSearchParams({ address: '10.0.0.2' })), all).egress, []);
});

test('A request to a port that passes TLS on is explained by the name that it asks for', (t) => {
  const tls = gateway('tls', {
    addresses: [{ type: 'IPAddress', value: '192.0.2.3' }],
    listeners: [{ name: 'tls', port: 8443, protocol: 'TLS', tls: { mode: 'Passthrough' } }],
  });
  const passed = parsed(routeJson('db', [{ name: 'tls' }], { hostnames: ['db.example.org'] }, 'TLSRoute'));
  const all = sources([tls, passed]);
  const actionOf = (url: string) => explainRequest(url, all).answers[0]?.action;
  t.is(actionOf('https://db.example.org:8443/'), 'passes TLS on (host db.example.org)');
  t.is(
    actionOf('https://other.example.org:8443/'),
    'closes the connection: no TLSRoute has the host "other.example.org"',
  );
});

test('A request to the address of a Service is explained by its members, with its ranges', (t) => {
  const web = service({
    name: 'shop',
    loadBalancerIP: '192.0.2.7',
    loadBalancerSourceRanges: ['10.0.0.0/8'],
  });
  const all = sources([web, slice({ serviceName: 'shop', name: 'shop-1', endpoints: ['10.0.0.1'] })]);
  const from = { address: '198.51.100.7', family: 'v4' } as const;
  const { answers } = explainRequest('http://192.0.2.7/', all, { ...ANY_CLIENT, from });
  t.like(answers[0], {
    loadBalancer: 'Service default/shop',
    rule: '',
    action: 'forwards to its members',
    pools: [{ name: 'default/shop port 80', ready: 1 }],
    access: {
      verdict: 'refused',
      sentence: 'Closed to 198.51.100.7 (source ranges, the connection is closed)',
    },
  });
  t.is(explainRequest('http://example.org/', all).answers.length, 1, 'not by a name');
});

test('A request is explained for listeners of the family of its client only', (t) => {
  const from = { address: '2001:db8::1', family: 'v6' } as const;
  const { answers, reason } = explainRequest('http://example.org/', sources([API]), { ...ANY_CLIENT, from });
  t.deepEqual([answers, reason], [[], 'No Gateway or Ingress listens for HTTP on port 80 of IPv6']);
});

test('A request whose path is refused, or matches a regular expression, is explained so', (t) => {
  const regex = route('regex', {
    rules: [
      { ...rule([path('/v[0-9]+/admin', 'RegularExpression')]), backendRefs: [] },
      { ...rule([path('/\\Qa\\E', 'RegularExpression')]), backendRefs: [] },
      rule([path('/')]),
    ],
  });
  const all = sources([regex]);
  const answerTo = (url: string) => explainRequest(url, all).answers[0];
  t.is(answerTo('http://example.org/v12/admin')?.access.answer, 'status 500');
  t.is(answerTo('http://example.org/x/../v12/admin')?.access.answer, 'status 400');
  const unreadable = answerTo('http://example.org/a');
  t.deepEqual([unreadable?.rule, unreadable?.access.answer], ['HTTPRoute default/regex#1', 'status 500']);
  t.deepEqual(
    unreadable?.others.map(({ rule: name }) => name),
    ['HTTPRoute default/regex#0'],
  );
});

const RANGES = { 'headgate.io/whitelist-source-range': '10.0.0.0/8' };

test('A request whose path can be read in several ways is refused where some paths are guarded, and looked up in one spelling', (t) => {
  const annotated = (name: string, annotations: Record<string, string>, value: string) => {
    const spec = { hostnames: ['example.org'], rules: [rule([path(value)])] };
    const json = routeJson(name, [{ name: 'edge', sectionName: 'http' }], spec as never);
    return parsed({ ...json, metadata: { ...(json.metadata as object), annotations } } as never);
  };
  const mixed = sources([annotated('admin', RANGES, '/admin'), annotated('all', {}, '/')]);
  const free = sources([annotated('all', {}, '/')]);
  const answer = (url: string, of = mixed) => {
    const found = explainRequest(url, of).answers[0];
    return [found?.rule, found?.access.answer, found?.access.sentence];
  };
  const admin = ['HTTPRoute default/admin#0', 'status 403', 'Open only to clients from 10.0.0.0/8'];
  for (const url of [
    'http://example.org/%61dmin',
    'http://example.org./admin',
    'http://example.org/a%64min/x',
  ])
    t.deepEqual(answer(url), admin, url);
  for (const odd of ['//admin', '/x/;/admin', '/%2Fadmin', '/x%3bb', '/x%5Cadmin', '/x\\admin']) {
    t.deepEqual(
      answer(`http://example.org${odd}`),
      ['', 'status 400', 'Closed to everybody (ambiguous path, status 400)'],
      odd,
    );
    t.deepEqual(answer(`http://example.org${odd}`, free), [
      'HTTPRoute default/all#0',
      '',
      'Open to everybody',
    ]);
  }
  const everywhere = { ...free, ambiguousPaths: () => 'reject' as const };
  t.deepEqual(answer('http://example.org//x', everywhere).slice(1), [
    'status 400',
    'Closed to everybody (path, status 400)',
  ]);
  const nowhere = { ...mixed, ambiguousPaths: () => 'pass' as const };
  t.is(answer('http://example.org//admin', nowhere)[0], 'HTTPRoute default/all#0');
});
