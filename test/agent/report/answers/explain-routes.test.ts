// What `why` says about routes and about requests.

import test from 'ava';
import type { KubernetesObject } from '../../../../agent/kubernetes/objects.ts';
import { explainService } from '../../../../agent/report/answers/explain.ts';
import { explainObject } from '../../../../agent/report/answers/explain-object.ts';
import { explainRequest } from '../../../../agent/report/answers/explain-request.ts';
import type { StatusSources } from '../../../../agent/report/answers/status.ts';
import { clusterOf, service, slice } from '../../../support/values/build.ts';
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
const path = (value: string, type = 'PathPrefix') => ({ path: { type, value } });
const route = (name: string, spec: object) =>
  parsed(routeJson(name, [{ name: 'edge', sectionName: 'http' }], spec as never));

function sources(objects: readonly KubernetesObject[]): StatusSources {
  const cluster = clusterOf([gatewayClass(), GATEWAY, ...BACKEND, ...objects]);
  const dataplane = {
    serves: () => true,
    members: () => new Map([['10.0.0.1:8080', { state: 'ready', weight: 1, isDown: undefined, cause: '' }]]),
    problemsOf: () => [],
  };
  return {
    desired: translateCluster(cluster),
    cluster,
    dataplane,
    announcer: undefined,
    operating: { problemsOf: () => [] },
    api: () => undefined,
    sourceProblems: () => [],
    pathsOf: () => [],
    zone: () => '',
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
  t.deepEqual(answers, [
    {
      loadBalancer: 'Gateway default/edge',
      addresses: ['192.0.2.1'],
      isServed: true,
      section: 'http',
      rule: 'HTTPRoute default/api#1',
      action: 'forwards to one pool (host example.org, path /v2/…)',
      pools: [{ name: 'pool:default/web port 80', weight: 1, ready: 1, members: 1 }],
      others: [{ rule: 'HTTPRoute default/api#0', why: 'only if header "version" is "two"', hasPath: true }],
    },
  ]);
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
