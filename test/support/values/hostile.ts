// Arbitrary Kubernetes objects of an attacker who tries to inject a line into a configuration file: valid objects in which
// any field, name or value is replaced by an arbitrary text or type.

import fc from 'fast-check';
import { protection } from '../../../agent/protection/judge-names.ts';
import { ANNOTATIONS, FIELDS, PREFIX } from '../../../agent/translate/annotations/table.ts';

const MEGABYTE = 1 << 20;

const EVIL = [
  '',
  ' ',
  '\n',
  '\r\n',
  '\0',
  'web\n    stats enable',
  'web\r    stats enable',
  'web\u2028    stats enable',
  '10.0.0.1\n',
  '10.0.0.1 check',
  '10.0.0.1:80',
  '10.0.0.1;shutdown sessions server a/b',
  '10.0.0.1 # ',
  '010.0.0.1',
  '0x7f.1',
  '::1%eth0',
  '::ffff:10.0.0.1',
  '[::1]',
  '10.0.0.0/8 -f /etc/passwd',
  '-f',
  '--',
  '"',
  "'",
  '\\',
  '`id`',
  '$(id)',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: HAProxy would expand it.
  '${HOME}',
  '%[env(HOME)]',
  '{{name}}',
  '{{{name}}}',
  '{{#servers}}',
  '<<',
  '__proto__',
  'constructor',
  'toString',
  'global',
  '../../etc/passwd',
  '٣',
  '８０',
  'ünïcode',
  '\ud800',
  '\u202e',
  '-1',
  '1e3',
  '0x50',
  '99999999999999999999',
  'NaN',
  'true',
  '2026-01-01T00:00:00Z\n',
];

const texts = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...EVIL) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.constantFrom('web', '10.0.0.1', '80'), fc.constantFrom(...EVIL))
      .map((parts) => parts.join('')),
  },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 20 }) },
  { weight: 1, arbitrary: fc.stringMatching(/^[a-z0-9.:/;#\s-]{0,80}$/) },
);

const values: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 10, arbitrary: texts },
  { weight: 2, arbitrary: fc.oneof(fc.integer(), fc.double(), fc.boolean(), fc.constant(null)) },
  {
    weight: 1,
    arbitrary: fc.oneof(
      fc.constant([]),
      fc.constant({}),
      texts.map((text) => [text]),
    ),
  },
);

/** Only one in a thousand fields, because it is slow to build. */
const long = fc
  .constantFrom('x', '1', '\n', 'é', '10.0.0.1,')
  .map((text) => text.repeat(MEGABYTE / text.length));

const names = fc.constantFrom('web', 'api', 'a', '0', 'w-e-b', 'x'.repeat(63));
const namespaces = fc.constantFrom('default', 'kube-system', 'n'.repeat(63));
const v4 = fc.ipV4();
const v6 = fc.ipV6();
const cidr4 = fc.tuple(v4, fc.integer({ min: 0, max: 32 })).map((parts) => parts.join('/'));
const cidr6 = fc.tuple(v6, fc.integer({ min: 0, max: 128 })).map((parts) => parts.join('/'));

/** The examples of the table, and variants of them: of annotations whose wrong values close the Service less often. */
const valuesThat = (closes: string | undefined): Readonly<Record<string, fc.Arbitrary<string>>> =>
  Object.fromEntries(
    FIELDS.filter((field) => closesOf(field) === closes).map((field) => {
      const { name, example } = ANNOTATIONS[field];
      const endings = closes === undefined ? ['', ' ', '\n', '\n    stats enable'] : ['', ' ', '\n'];
      const near = fc.constantFrom(...endings).map((ending) => example + ending);
      const weight = closes === undefined ? 8 : 60;
      return [`${PREFIX}${name}`, fc.oneof({ weight, arbitrary: near }, { weight: 1, arbitrary: texts })];
    }),
  );

function closesOf(field: (typeof FIELDS)[number]): string | undefined {
  const closes = protection(ANNOTATIONS[field].name)?.closes;
  return closes === 'trust' ? undefined : closes;
}

/** TLS without one of its parts is closed. */
const annotations = fc
  .tuple(
    fc.record(valuesThat(undefined), { requiredKeys: [] }),
    fc.option(fc.record(valuesThat('requests'), { requiredKeys: [] }), { freq: 1, nil: {} }),
    fc.option(fc.record(valuesThat('tls')), { freq: 4, nil: {} }),
    fc.option(fc.record(valuesThat('members')), { freq: 1, nil: {} }),
  )
  .map((parts): Record<string, string> => Object.assign({}, ...parts));

const services = fc.record({
  apiVersion: fc.constant('v1'),
  kind: fc.constant('Service'),
  metadata: fc.record({
    name: names,
    namespace: namespaces,
    uid: fc.uuid(),
    creationTimestamp: fc.constantFrom('2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'),
    labels: fc.constant({ app: 'web' }),
    annotations,
  }),
  spec: fc.record(
    {
      type: fc.constant('LoadBalancer'),
      loadBalancerClass: fc.constant('headgate.io/agent'),
      loadBalancerIP: fc.oneof(v4, v6),
      loadBalancerSourceRanges: fc.array(fc.oneof(cidr4, cidr6), { maxLength: 90 }),
      externalIPs: fc.array(fc.oneof(v4, v6), { maxLength: 2 }),
      clusterIPs: fc.array(v4, { maxLength: 1 }),
      externalTrafficPolicy: fc.constantFrom('Cluster', 'Local'),
      healthCheckNodePort: fc.nat(65_535),
      sessionAffinity: fc.constantFrom('None', 'ClientIP'),
      sessionAffinityConfig: fc.record({
        clientIP: fc.record({ timeoutSeconds: fc.integer({ min: 1, max: 86_400 }) }),
      }),
      allocateLoadBalancerNodePorts: fc.boolean(),
      publishNotReadyAddresses: fc.boolean(),
      ports: fc.uniqueArray(
        fc.record({
          name: fc.constantFrom('http', 'https', 'dns'),
          protocol: fc.constantFrom('TCP', 'TCP', 'UDP', 'SCTP'),
          port: fc.constantFrom(1, 80, 443, 65_535),
          nodePort: fc.constantFrom(0, 30_080),
          appProtocol: fc.constant('kubernetes.io/h2c'),
        }),
        { minLength: 1, maxLength: 3, selector: ({ name }) => name },
      ),
    },
    { requiredKeys: ['type', 'loadBalancerClass', 'ports'] },
  ),
  status: fc.record({
    loadBalancer: fc.record({ ingress: fc.array(fc.record({ ip: fc.oneof(v4, v6) }), { maxLength: 2 }) }),
  }),
});

function slicesOf(addressType: 'IPv4' | 'IPv6'): fc.Arbitrary<unknown> {
  return fc.record({
    apiVersion: fc.constant('discovery.k8s.io/v1'),
    kind: fc.constant('EndpointSlice'),
    metadata: fc.record({
      name: fc.uuid().map((id) => `web-${id}`),
      namespace: namespaces,
      labels: fc.record({ 'kubernetes.io/service-name': names }),
      annotations: fc.constant({
        'endpoints.kubernetes.io/last-change-trigger-time': '2026-01-01T00:00:00Z',
      }),
    }),
    addressType: fc.constant(addressType),
    ports: fc.array(
      fc.record({
        name: fc.constantFrom('http', 'https', 'dns'),
        protocol: fc.constantFrom('TCP', 'UDP'),
        port: fc.integer({ min: 1, max: 65_535 }),
      }),
      { maxLength: 3 },
    ),
    endpoints: fc.array(
      fc.record({
        addresses: fc.array(addressType === 'IPv4' ? v4 : v6, { minLength: 1, maxLength: 1 }),
        conditions: fc.record(
          { ready: fc.boolean(), serving: fc.boolean(), terminating: fc.boolean() },
          { requiredKeys: [] },
        ),
        nodeName: fc.constantFrom('node-1', 'node-2'),
        zone: fc.constantFrom('a', 'b'),
        targetRef: fc.record({ kind: fc.constant('Pod'), name: names }),
        hints: fc.record({
          forZones: fc.array(fc.record({ name: fc.constantFrom('a', 'b') }), { maxLength: 2 }),
        }),
      }),
      { maxLength: 5 },
    ),
  });
}

const endpoints = fc.record({
  apiVersion: fc.constant('v1'),
  kind: fc.constant('Endpoints'),
  metadata: fc.record({ name: names, namespace: namespaces }),
  subsets: fc.array(
    fc.record({
      addresses: fc.array(fc.record({ ip: fc.oneof(v4, v6), nodeName: fc.constant('node-1') }), {
        maxLength: 3,
      }),
      notReadyAddresses: fc.array(fc.record({ ip: v4 }), { maxLength: 1 }),
      ports: fc.array(
        fc.record({ name: fc.constantFrom('http', 'https'), port: fc.integer({ min: 1, max: 65_535 }) }),
        {
          maxLength: 2,
        },
      ),
    }),
    { maxLength: 2 },
  ),
});

const nodes = fc.record({
  apiVersion: fc.constant('v1'),
  kind: fc.constant('Node'),
  metadata: fc.record({
    name: fc.constantFrom('node-1', 'node-2', 'node-3.example.org'),
    labels: fc.constantFrom<unknown>(
      {},
      { 'node.kubernetes.io/exclude-from-external-load-balancers': 'false' },
    ),
  }),
  spec: fc.record({ taints: fc.constant([{ key: 'a', effect: 'NoExecute' }]) }),
  status: fc.record({
    addresses: fc.array(fc.record({ type: fc.constant('InternalIP'), address: fc.oneof(v4, v6) }), {
      maxLength: 2,
    }),
  }),
});

interface Mutation {
  /** Counted over all places of the object. */
  readonly at: number;
  readonly kind: 'value' | 'key' | 'addition';
  readonly text: string;
  readonly value: unknown;
}

const mutations: fc.Arbitrary<Mutation> = fc.record({
  at: fc.nat(),
  kind: fc.constantFrom('value', 'value', 'value', 'key', 'addition'),
  text: texts,
  value: fc.oneof({ weight: 300, arbitrary: values }, { weight: 1, arbitrary: long }),
});

/** Objects as JSON.parse() returns them; three in five have one or two invalid fields. */
export const hostileObjects: fc.Arbitrary<unknown> = fc
  .tuple(
    fc.oneof({ weight: 4, arbitrary: services }, slicesOf('IPv4'), slicesOf('IPv6'), endpoints, nodes),
    fc.oneof(
      { weight: 2, arbitrary: fc.constant([]) },
      { weight: 3, arbitrary: fc.array(mutations, { minLength: 1, maxLength: 2 }) },
    ),
  )
  .map(([object, changes]) => changes.reduce<unknown>(mutated, object));

function mutated(object: unknown, { at, kind, text, value }: Mutation): unknown {
  const copy: unknown = structuredClone(object);
  const places: { readonly holder: Record<string, unknown>; readonly key: string }[] = [];
  const visit = (holder: unknown): void => {
    if (typeof holder !== 'object' || holder === null) return;
    for (const key of Object.keys(holder)) {
      places.push({ holder: holder as Record<string, unknown>, key });
      visit((holder as Record<string, unknown>)[key]);
    }
  };
  visit(copy);
  const place = places[at % Math.max(1, places.length)];
  if (place === undefined) return copy;
  const { holder, key } = place;
  if (kind === 'value') put(holder, key, value);
  // A name in a list, such as `length`, would change the list itself.
  else if (Array.isArray(holder)) holder.push(kind === 'key' ? text : value);
  else {
    put(holder, text, kind === 'key' ? holder[key] : value);
    if (kind === 'key') delete holder[key];
  }
  return copy;
}

/** Like JSON.parse(): `__proto__` is an ordinary key. */
function put(holder: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(holder, key, { value, enumerable: true, configurable: true, writable: true });
}
