// Objects of the Gateway API as the API sends them: defaults, and what each field allows.

import test from 'ava';
import { parseObject } from '../../../../agent/kubernetes/parse-object.ts';
import { gatewayJson, parsed, routeJson } from '../../../support/values/gateways.ts';

type Json = Readonly<Record<string, unknown>>;

const EDGE = [{ name: 'edge' }];
const rule = (spec: Json) => routeJson('api', EDGE, { rules: [spec] });
const filter = (type: string, field: string, content: Json) =>
  rule({ filters: [{ type, [field]: content }] });
const object = (kind: string, spec: Json) => ({
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind,
  metadata: { namespace: 'default', name: 'x' },
  spec,
});

function faultOf(json: Json): string {
  const { objects, problems } = parseObject(json, '');
  return objects.length > 0 ? '' : (problems[0]?.message ?? '');
}

test('A Gateway has the defaults of the API', (t) => {
  t.like(parsed(gatewayJson()), {
    kind: 'Gateway',
    key: 'default/edge',
    gatewayClassName: 'edge',
    generation: 1,
    addresses: [],
    allowedListeners: { from: 'None' },
    listeners: { 0: { name: 'http', hostname: '', tls: undefined, namespaces: { from: 'Same' }, kinds: [] } },
    hasParameters: false,
    deleting: false,
  });
  const tls = { certificateRefs: [{ name: 'web-tls' }] };
  const listeners = [{ name: 'https', port: 443, protocol: 'HTTPS', tls }];
  t.like(parsed(gatewayJson('edge', { listeners })), {
    listeners: {
      0: {
        tls: {
          mode: 'Terminate',
          certificates: [{ group: '', kind: 'Secret', namespace: '', name: 'web-tls' }],
        },
      },
    },
  });
});

test('An HTTPRoute has the defaults of the API', (t) => {
  const any = { path: { type: 'PathPrefix', value: '/' }, headers: [], query: [], method: '' };
  t.like(parsed(routeJson('api', EDGE)), {
    parents: [
      {
        group: 'gateway.networking.k8s.io',
        kind: 'Gateway',
        namespace: '',
        name: 'edge',
        sectionName: '',
        port: 0,
      },
    ],
    hostnames: [],
    rules: {
      0: {
        matches: [any],
        filters: [],
        backends: { 0: { group: '', kind: 'Service', name: 'web', port: 80, weight: 1 } },
        timeouts: { request: undefined, backendRequest: undefined },
      },
    },
  });
  t.like(parsed(routeJson('api', EDGE, { rules: [] })), { rules: { 0: { matches: [any], backends: [] } } });
});

test('A filter that the agent does not know is kept, for the status of its route', (t) => {
  t.like(parsed(filter('LaterFilter', 'externalAuth', { protocol: 'HTTP' })), {
    rules: { 0: { filters: [{ kind: 'unknown', type: 'LaterFilter' }] } },
  });
});

// What the fields of durations allow, in milliseconds (GEP-2257).
const DURATIONS: readonly (readonly [text: string, milliseconds: number | undefined])[] = [
  ['0s', 0],
  ['10s', 10_000],
  ['1h30m', 5_400_000],
  ['1m500ms', 60_500],
  ['10', undefined],
  ['1d', undefined],
  ['-1s', undefined],
  ['1.5s', undefined],
  ['1s1s1s1s1s', undefined],
];

for (const [text, milliseconds] of DURATIONS)
  test(`Duration "${text}" is ${milliseconds === undefined ? 'refused' : `${milliseconds} ms`}`, (t) => {
    const json = rule({ timeouts: { request: text } });
    if (milliseconds === undefined) t.regex(faultOf(json), /timeouts\.request: .* is not a duration/);
    else t.like(parsed(json), { rules: { 0: { timeouts: { request: milliseconds } } } });
  });

// Each refused for the reason that its message has.
const REFUSED: readonly (readonly [title: string, json: Json, fault: RegExp])[] = [
  [
    'a host in upper case',
    routeJson('api', EDGE, { hostnames: ['A.org'] }),
    /hostnames\[0\]: "A.org" is not a host name/,
  ],
  ['a wildcard within a host', routeJson('api', EDGE, { hostnames: ['a.*.org'] }), /is not a host name/],
  ['a host with a line end', routeJson('api', EDGE, { hostnames: ['a.org\n'] }), /is not a host name/],
  [
    'too many hosts',
    routeJson('api', EDGE, { hostnames: Array(17).fill('a.org') }),
    /has 17 items, at most 16/,
  ],
  ['a path without a slash', rule({ matches: [{ path: { value: 'a' } }] }), /path\.value: "a" is not a path/],
  ['a path with //', rule({ matches: [{ path: { value: '/a//b' } }] }), /is not a path/],
  ['a path with /../', rule({ matches: [{ path: { value: '/a/../b' } }] }), /is not a path/],
  ['a path with %2f', rule({ matches: [{ path: { value: '/a%2fb' } }] }), /is not a path/],
  ['a path with a blank', rule({ matches: [{ path: { value: '/a b' } }] }), /is not a path/],
  ['a method that is none', rule({ matches: [{ method: 'get' }] }), /method: "get" is not one of GET/],
  [
    'the name of a header with a colon',
    rule({ matches: [{ headers: [{ name: 'a:', value: '1' }] }] }),
    /is not the name of a header/,
  ],
  [
    'the value of a header with a line end',
    rule({ matches: [{ headers: [{ name: 'a', value: '1\r\nb: 2' }] }] }),
    /without control characters/,
  ],
  [
    'a weight above a million',
    rule({ backendRefs: [{ name: 'web', port: 80, weight: 1_000_001 }] }),
    /weight: 1000001 is not a whole number/,
  ],
  [
    'a port of 0 on a listener',
    gatewayJson('edge', { listeners: [{ name: 'a', port: 0, protocol: 'HTTP' }] }),
    /port: 0 is not/,
  ],
  [
    'two listeners with one name',
    gatewayJson('edge', { listeners: [1, 2].map((port) => ({ name: 'a', port, protocol: 'HTTP' })) }),
    /"a" occurs twice/,
  ],
  [
    'a header that is set with a line end',
    filter('RequestHeaderModifier', 'requestHeaderModifier', { set: [{ name: 'a', value: 'b\n' }] }),
    /without control characters/,
  ],
  ['a filter without its content', rule({ filters: [{ type: 'CORS' }] }), /filters\[0\]\.cors: missing/],
  [
    'a redirect with another status',
    filter('RequestRedirect', 'requestRedirect', { statusCode: 304 }),
    /is not one of 301, 302/,
  ],
  [
    'a redirect to another scheme',
    filter('RequestRedirect', 'requestRedirect', { scheme: 'ftp' }),
    /scheme: "ftp" is not one of/,
  ],
  [
    'a replaced path with a line end',
    filter('URLRewrite', 'urlRewrite', { path: { type: 'ReplaceFullPath', replaceFullPath: '/a\n' } }),
    /is not a path/,
  ],
  ['an origin that is none', filter('CORS', 'cors', { allowOrigins: ['a.org'] }), /is not an origin/],
  [
    'a grant without a source',
    object('ReferenceGrant', { from: [], to: [{ group: '', kind: 'Secret' }] }),
    /at least one source/,
  ],
  [
    'a policy without a target',
    object('BackendTLSPolicy', { targetRefs: [], validation: { hostname: 'a.org' } }),
    /at least one target/,
  ],
  [
    'a selector without labels',
    gatewayJson('edge', { allowedListeners: { namespaces: { from: 'Selector' } } }),
    /selector: missing/,
  ],
  [
    'the name of a service with a slash',
    routeJson('g', EDGE, { rules: [{ matches: [{ method: { service: 'a/b' } }] }] }, 'GRPCRoute'),
    /is not the name of a service/,
  ],
];

for (const [title, json, fault] of REFUSED)
  test(`An object with ${title} is refused, and the message says what is allowed`, (t) => {
    t.regex(faultOf(json), fault);
  });

test('Objects of the older versions of their kinds are read, and those of others are refused', (t) => {
  const grant = object('ReferenceGrant', {
    from: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: 'shop' }],
    to: [{ group: '', kind: 'Service' }],
  });
  t.like(parsed({ ...grant, apiVersion: 'gateway.networking.k8s.io/v1beta1' }), {
    to: [{ kind: 'Service', name: '' }],
  });
  const routeOf = (kind: string, version: string) => ({
    ...routeJson('a', EDGE),
    kind,
    spec: { parentRefs: EDGE, rules: [{ backendRefs: [{ name: 'web', port: 80 }] }] },
    apiVersion: `gateway.networking.k8s.io/${version}`,
  });
  for (const [kind, version] of [
    ['HTTPRoute', 'v1beta1'],
    ['HTTPRoute', 'v1alpha2'],
    ['GRPCRoute', 'v1alpha2'],
    ['TLSRoute', 'v1alpha3'],
    ['TLSRoute', 'v1alpha2'],
    ['TCPRoute', 'v1alpha2'],
    ['UDPRoute', 'v1alpha2'],
  ] as const)
    t.like(parsed(routeOf(kind, version)), { kind, key: 'default/a' }, `${kind} ${version}`);
  for (const [kind, version] of [
    ['HTTPRoute', 'v1alpha1'],
    ['HTTPRoute', 'v2'],
    ['GRPCRoute', 'v1beta1'],
    ['TCPRoute', 'v1alpha3'],
  ] as const)
    t.regex(faultOf(routeOf(kind, version)), /apiVersion: .* is not "gateway.networking.k8s.io\/v1"/);
});

test('A Namespace has the label with its name, as the API server gives it', (t) => {
  const name = 'kubernetes.io/metadata.name';
  const namespace = (labels?: Json) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'shop', labels },
  });
  t.like(parsed(namespace()), { labels: { [name]: 'shop' } });
  t.like(parsed(namespace({ [name]: 'other', team: 'a' })), { labels: { [name]: 'shop', team: 'a' } });
});
