import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import test from 'ava';
import fc from 'fast-check';
import { parseYamlDocuments } from '../../../../agent/base/yaml.ts';
import {
  ANNOTATION_DEFAULTS,
  type AnnotationValues,
  readAnnotationDefaults,
  readAnnotations,
} from '../../../../agent/translate/annotations/annotations.ts';
import { bodyPattern } from '../../../../agent/translate/annotations/kinds.ts';
import { ANNOTATIONS, FIELDS, type Field } from '../../../../agent/translate/annotations/table.ts';
import { annotationPage } from '../../../../scripts/annotation-page.ts';
import { processorTime } from '../../../support/measure/processor-time.ts';

type Annotations = Readonly<Record<string, string>>;
const OBJECT = 'Service default/web';
const OPENSTACK = 'loadbalancer.openstack.org/';

/** Annotations by their names without the prefix. */
function own(record: Annotations): Annotations {
  return Object.fromEntries(Object.entries(record).map(([name, text]) => [`headgate.io/${name}`, text]));
}

function messages(annotations: Annotations): string[] {
  return readAnnotations(annotations, OBJECT).problems.map(({ message }) => message);
}

/** The values that differ from the defaults. */
function changed(annotations: Annotations, defaults?: AnnotationValues): Partial<AnnotationValues> {
  const { values } = readAnnotations(annotations, OBJECT, defaults);
  const base = defaults ?? ANNOTATION_DEFAULTS;
  return Object.fromEntries(
    Object.entries(values).filter(([field, value]) => value !== base[field as Field]),
  );
}

const reads = test.macro((t, annotations: Annotations, expected: Partial<AnnotationValues>) => {
  t.deepEqual(messages(annotations), []);
  t.deepEqual(changed(annotations), expected);
});

const refuses = test.macro((t, annotations: Annotations, ...expected: string[]) => {
  t.deepEqual(messages(annotations), expected);
  t.deepEqual(changed(annotations), {});
});

test('A Service without annotations gets the defaults', (t) => {
  const { values, problems } = readAnnotations({}, OBJECT);
  t.deepEqual(problems, []);
  t.deepEqual(values, {
    algorithm: 'round-robin',
    mode: 'tcp',
    engine: 'haproxy',
    sourceAddress: 'load-balancer',
    egress: false,
    tlsCertificate: [],
    tlsPorts: [],
    tlsMinVersion: '1.2',
    tlsCiphers: [],
    tlsAlpn: [],
    tlsClientCertificates: 'none',
    tlsClientCa: '',
    tlsClientCrl: '',
    memberTls: 'none',
    memberTlsCa: '',
    memberTlsName: '',
    memberHttpVersion: '1.1',
    healthMonitor: 'none',
    healthMonitorPath: '/',
    healthMonitorMethod: 'GET',
    healthMonitorExpectedCodes: '200-399',
    healthMonitorExpectedBody: '',
    healthMonitorExpectedBodyPattern: '',
    healthMonitorHost: '',
    healthMonitorSni: '',
    healthMonitorGrpcService: '',
    healthMonitorInterval: 5_000,
    healthMonitorTimeout: 3_000,
    healthMonitorRise: 2,
    healthMonitorFall: 3,
    healthMonitorPort: 0,
    ejectAfter: undefined,
    ejectStatuses: '500,502-504',
    ejectShare: 34,
    slowStart: 0,
    proxyProtocol: 'none',
    acceptProxyProtocol: false,
    timeoutConnect: 1_000,
    timeoutClient: 600_000,
    timeoutServer: 600_000,
    timeoutTunnel: 0,
    timeoutQueue: 5_000,
    connectionLimit: 0,
    rateLimit: 0,
    memberConnectionLimit: 0,
    trustedProxies: [],
    requestIds: false,
    compression: 'none',
    errorPages: '',
    log: undefined,
    members: undefined,
    whenEmpty: 'reject',
    whenAllDown: 'serve',
    loadBalancerIps: [],
    publicAddress: [],
    addressPool: undefined,
    addressSharingKey: undefined,
  });
});

test('Every field is named after its annotation, and every default and example is a value that is allowed', (t) => {
  for (const field of FIELDS) {
    const { name, kind, example, default: value } = ANNOTATIONS[field];
    t.is(
      name,
      field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
    );
    t.not(kind.parse(example), undefined, name);
    if (value === undefined || Array.isArray(value) || field === 'healthMonitorPort') continue;
    const text = (kind.format as (value: unknown) => string)(value);
    t.is(kind.parse(text), value, name);
  }
});

test('Annotations with other prefixes are ignored, as are those that other controllers write themselves', (t) => {
  const { values, problems } = readAnnotations(
    {
      'purelb.io/addresses': '192.0.2.1',
      'example.headgate.io/mode': 'nonsense',
      'headgate.io': 'nonsense',
      [`${OPENSTACK}load-balancer-address`]: '192.0.2.1',
      'metallb.universe.tf/ip-allocated-from-pool': 'public',
      'kube-vip.io/vipHost': 'node-1',
      'load-balancer.hetzner.cloud/ipv4': '192.0.2.1',
      'service.beta.kubernetes.io/load-balancer-source-ranges': '192.0.2.0/24',
    },
    OBJECT,
  );
  t.deepEqual(problems, []);
  t.deepEqual(values, ANNOTATION_DEFAULTS);
});

test('Annotations that ask other load balancers for something are reported once, and have no effect', (t) => {
  const cloud = { 'service.beta.kubernetes.io/aws-load-balancer-type': 'nlb' };
  const { values, problems } = readAnnotations(cloud, OBJECT);
  t.deepEqual(values, ANNOTATION_DEFAULTS);
  t.deepEqual(problems, [
    {
      object: OBJECT,
      reason: 'AnnotationIgnored',
      message:
        'These annotations of other load balancers have no effect here: "service.beta.kubernetes.io/aws-load-balancer-type"',
    },
  ]);
  const names = ['flavor-id', 'network-id', 'subnet-id', 'port-id', 'class', 'keep-floatingip', 'lb-method'];
  t.deepEqual(messages(openstack(Object.fromEntries(names.map((name) => [name, 'SOURCE_IP'])))), [
    'These annotations of other load balancers have no effect here: "loadbalancer.openstack.org/class", "loadbalancer.openstack.org/flavor-id", "loadbalancer.openstack.org/keep-floatingip", "loadbalancer.openstack.org/network-id", "loadbalancer.openstack.org/port-id" (and 1 more)',
  ]);
});

const monitored = own({ 'health-monitor': 'http' });

for (const [what, annotations, expected] of [
  ['an algorithm', own({ algorithm: 'source-hash' }), { algorithm: 'source-hash' }],
  ['a mode', own({ mode: 'http' }), { mode: 'http' }],
  ['a boolean', own({ 'accept-proxy-protocol': 'true' }), { acceptProxyProtocol: true }],
  ['a PROXY protocol', own({ 'proxy-protocol': 'v2' }), { proxyProtocol: 'v2' }],
  ['members', own({ members: 'nodes' }), { members: 'nodes' }],
  ['what to do without members', own({ 'when-empty': 'keep-last' }), { whenEmpty: 'keep-last' }],
  ['blanks around a value', own({ mode: ' http\n' }), { mode: 'http' }],
  ['milliseconds', own({ 'timeout-connect': '250ms' }), { timeoutConnect: 250 }],
  ['seconds', own({ 'timeout-queue': '30s' }), { timeoutQueue: 30_000 }],
  ['minutes', own({ 'timeout-client': '2m' }), { timeoutClient: 120_000 }],
  ['hours', own({ 'timeout-server': '1h' }), { timeoutServer: 3_600_000 }],
  ['days', own({ 'timeout-tunnel': '24d' }), { timeoutTunnel: 2_073_600_000 }],
  ['a number', own({ 'connection-limit': '2000' }), { connectionLimit: 2000 }],
  ['the greatest number', own({ 'rate-limit': '1000000' }), { rateLimit: 1_000_000 }],
  ['a number with zeros before it', own({ 'member-connection-limit': '007' }), { memberConnectionLimit: 7 }],
  ['a pool', own({ 'address-pool': 'internal.v4' }), { addressPool: 'internal.v4' }],
  ['a sharing key', own({ 'address-sharing-key': ' Front_1 ' }), { addressSharingKey: 'Front_1' }],
  ['a public address', own({ 'public-address': '203.0.113.9' }), { publicAddress: ['203.0.113.9'] }],
  ['one address', own({ 'load-balancer-ips': '192.0.2.1' }), { loadBalancerIps: ['192.0.2.1'] }],
  [
    'an address of each family, in the order written and in canonical form',
    own({ 'load-balancer-ips': ' 2001:DB8:0::1 , 192.0.2.1' }),
    { loadBalancerIps: ['2001:db8::1', '192.0.2.1'] },
  ],
  [
    'the address beside one that is none, which is refused alone later',
    own({ 'load-balancer-ips': '192.0.2.1,2001:db8::g' }),
    { loadBalancerIps: ['192.0.2.1', '2001:db8::g'] },
  ],
  [
    'a whole health monitor',
    own({
      'health-monitor': 'https',
      'health-monitor-path': '/healthz?full=1',
      'health-monitor-method': 'HEAD',
      'health-monitor-expected-codes': '200',
      'health-monitor-interval': '10s',
      'health-monitor-timeout': '10s',
      'health-monitor-rise': '1',
      'health-monitor-fall': '50',
      'health-monitor-port': '8081',
    }),
    {
      healthMonitor: 'https',
      healthMonitorPath: '/healthz?full=1',
      healthMonitorMethod: 'HEAD',
      healthMonitorExpectedCodes: '200',
      healthMonitorInterval: 10_000,
      healthMonitorTimeout: 10_000,
      healthMonitorRise: 1,
      healthMonitorFall: 50,
      healthMonitorPort: 8081,
    },
  ],
] as const) {
  test(`readAnnotations() reads ${what}`, reads, annotations, expected);
}

for (const [text, expected] of [
  ['200', '200'],
  ['200,204', '200,204'],
  ['204, 200', '200,204'],
  ['200-204,202-299', '200-299'],
  ['200,201,202', '200-202'],
  ['300-399,200-299', '200-399'],
  ['100-599,404', '100-599'],
  ['200,200', '200'],
] as const) {
  test(`readAnnotations() reads ${text} as the status codes ${expected}`, (t) => {
    const { values, problems } = readAnnotations(
      { ...monitored, ...own({ 'health-monitor-expected-codes': text }) },
      OBJECT,
    );
    t.deepEqual(problems, []);
    t.is(values.healthMonitorExpectedCodes, expected);
  });
}

const RATE = 'Cannot use annotation "headgate.io/rate-limit"';
const WHOLE = 'is not a whole number from 0 to 1000000';
const CONNECT = 'Cannot use annotation "headgate.io/timeout-connect"';
const DURATION = 'is not a duration with its unit (ms, s, m, h or d) from 10ms to 5m';
const IPS = 'Cannot use annotation "headgate.io/load-balancer-ips"';
const ADDRESSES = 'is not one IPv4 address, one IPv6 address, or one of each with a comma between them';

for (const [annotations, message] of [
  [own({ 'rate-limit': 'abc' }), `${RATE}: "abc" ${WHOLE}`],
  [own({ 'rate-limit': '' }), `${RATE}: "" ${WHOLE}`],
  [own({ 'rate-limit': '-1' }), `${RATE}: "-1" ${WHOLE}`],
  [own({ 'rate-limit': '+1' }), `${RATE}: "+1" ${WHOLE}`],
  [own({ 'rate-limit': '1e3' }), `${RATE}: "1e3" ${WHOLE}`],
  [own({ 'rate-limit': '1.0' }), `${RATE}: "1.0" ${WHOLE}`],
  [own({ 'rate-limit': '0x10' }), `${RATE}: "0x10" ${WHOLE}`],
  [own({ 'rate-limit': '1_000' }), `${RATE}: "1_000" ${WHOLE}`],
  [own({ 'rate-limit': '٣' }), `${RATE}: "٣" ${WHOLE}`],
  [own({ 'rate-limit': '1000001' }), `${RATE}: "1000001" ${WHOLE}`],
  [own({ 'rate-limit': '99999999999999999999' }), `${RATE}: "99999999999999999999" ${WHOLE}`],
  [own({ 'rate-limit': '1\nfrontend x' }), `${RATE}: "1\\nfrontend x" ${WHOLE}`],
  [own({ 'rate-limit': 'a"b\\\0' }), `${RATE}: "a\\"b\\\\\\u0000" ${WHOLE}`],
  [own({ 'rate-limit': '1\u2028\u202e2\u{e0041}' }), `${RATE}: "1\\u2028\\u202e2\\udb40\\udc41" ${WHOLE}`],
  [own({ 'rate-limit': 'a'.repeat(61) }), `${RATE}: "${'a'.repeat(60)}…" ${WHOLE}`],
  [
    own({ 'rate-limit': '1'.repeat(1_000_000) }),
    `${RATE}: "${'1'.repeat(60)}…" is longer than 512 characters`,
  ],
  [own({ 'timeout-connect': '50' }), `${CONNECT}: "50" ${DURATION}`],
  [own({ 'timeout-connect': '0' }), `${CONNECT}: "0" ${DURATION}`],
  [own({ 'timeout-connect': '9ms' }), `${CONNECT}: "9ms" ${DURATION}`],
  [own({ 'timeout-connect': '301s' }), `${CONNECT}: "301s" ${DURATION}`],
  [own({ 'timeout-connect': '1.5s' }), `${CONNECT}: "1.5s" ${DURATION}`],
  [own({ 'timeout-connect': '1 s' }), `${CONNECT}: "1 s" ${DURATION}`],
  [own({ 'timeout-connect': '1S' }), `${CONNECT}: "1S" ${DURATION}`],
  [own({ 'timeout-connect': '1us' }), `${CONNECT}: "1us" ${DURATION}`],
  [own({ 'timeout-connect': '9999999999d' }), `${CONNECT}: "9999999999d" ${DURATION}`],
  [
    own({ 'timeout-tunnel': '25d' }),
    'Cannot use annotation "headgate.io/timeout-tunnel": "25d" is not 0 or a duration with its unit (ms, s, m, h or d) from 500ms to 24d',
  ],
  [
    own({ algorithm: 'Round-Robin' }),
    'Cannot use annotation "headgate.io/algorithm": "Round-Robin" is not one of round-robin, least-connections, source-hash or random',
  ],
  [
    own({ mode: 'toString' }),
    'Cannot use annotation "headgate.io/mode": "toString" is not one of tcp, http or https',
  ],
  [
    own({ 'accept-proxy-protocol': 'yes' }),
    'Cannot use annotation "headgate.io/accept-proxy-protocol": "yes" is not true or false',
  ],
  [
    own({ 'address-pool': 'Internal' }),
    'Cannot use annotation "headgate.io/address-pool": "Internal" is not a name of at most 253 characters (a-z, 0-9, - and .) that begins and ends with a letter or digit',
  ],
  [
    own({ 'address-sharing-key': 'a b' }),
    'Cannot use annotation "headgate.io/address-sharing-key": "a b" is not a word of at most 63 letters, digits, -, _ and . that begins and ends with a letter or digit',
  ],
  [own({ 'load-balancer-ips': '' }), `${IPS}: "" ${ADDRESSES}`],
  [own({ 'load-balancer-ips': '192.0.2.1.,::g' }), `${IPS}: "192.0.2.1.,::g" ${ADDRESSES}`],
  [own({ 'load-balancer-ips': '192.0.2.1,192.0.2.2' }), `${IPS}: "192.0.2.1,192.0.2.2" ${ADDRESSES}`],
  [own({ 'load-balancer-ips': '192.0.2.1,::1,::2' }), `${IPS}: "192.0.2.1,::1,::2" ${ADDRESSES}`],
  [own({ 'load-balancer-ips': '192.0.2.0/24' }), `${IPS}: "192.0.2.0/24" ${ADDRESSES}`],
  [own({ 'load-balancer-ips': '192.0.2.010' }), `${IPS}: "192.0.2.010" ${ADDRESSES}`],
] as const) {
  test(
    `readAnnotations() refuses ${message.slice(11, 90)} (${message.length})`,
    refuses,
    annotations,
    message,
  );
}

const CODES = 'is not a list of status codes from 100 to 599 and ranges of them, such as 200,204 or 200-399';
for (const text of [
  '',
  ',',
  '200,',
  '99',
  '600',
  '20',
  '2000',
  '299-200',
  '200-',
  '-299',
  '200-299-300',
  '2xx',
  '!200',
]) {
  test(`readAnnotations() refuses the status codes "${text}"`, (t) => {
    t.deepEqual(messages({ ...monitored, ...own({ 'health-monitor-expected-codes': text }) }), [
      `Cannot use annotation "headgate.io/health-monitor-expected-codes": "${text}" ${CODES}`,
    ]);
  });
}

for (const path of [
  'healthz',
  '',
  '/a b',
  '/a\tb',
  '/a\rb',
  '/a"b',
  "/a'b",
  '/a\\b',
  '/a#b',
  '/$HOME',
  '/%[env(HOME)]',
  '/%20',
  '/a;b',
  '/a,b',
  '/(a)',
  '/{a}',
  '/a|b',
  '/a`b',
  '/ä',
  '/\0',
  '/x\u2028y',
  `/${'a'.repeat(256)}`,
]) {
  test(`readAnnotations() refuses the path ${JSON.stringify(path).slice(0, 30)}`, (t) => {
    const annotations = { ...monitored, ...own({ 'health-monitor-path': path }) };
    const { values, problems } = readAnnotations(annotations, OBJECT);
    t.is(values.healthMonitorPath, '/');
    t.regex(problems[0]?.message ?? '', /is not a path that begins with \//);
  });
}

test('readAnnotations() accepts a path of 256 characters with all allowed characters', (t) => {
  const path = `/AZaz09-._~/?&=:@+${'a'.repeat(238)}`;
  t.is(path.length, 256);
  t.is(
    readAnnotations({ ...monitored, ...own({ 'health-monitor-path': path }) }, OBJECT).values
      .healthMonitorPath,
    path,
  );
});

/** Annotations of the OpenStack cloud provider. */
function openstack(record: Annotations): Annotations {
  return Object.fromEntries(Object.entries(record).map(([name, text]) => [`${OPENSTACK}${name}`, text]));
}

const monitoredByTcp = openstack({ 'enable-health-monitor': 'true' });

for (const [annotations, expected] of [
  [openstack({ 'lb-method': 'ROUND_ROBIN' }), {}],
  [openstack({ 'lb-method': 'LEAST_CONNECTIONS' }), { algorithm: 'least-connections' }],
  [openstack({ 'lb-method': 'SOURCE_IP' }), { algorithm: 'source-hash' }],
  [openstack({ 'x-forwarded-for': 'true' }), { mode: 'http' }],
  [openstack({ 'proxy-protocol': 'true' }), { proxyProtocol: 'v1' }],
  [openstack({ 'proxy-protocol': 'v1' }), { proxyProtocol: 'v1' }],
  [openstack({ 'proxy-protocol': 'v2' }), { proxyProtocol: 'v2' }],
  [openstack({ 'proxy-protocol': 'false' }), {}],
  [openstack({ 'timeout-client-data': '50000' }), { timeoutClient: 50_000 }],
  [openstack({ 'timeout-member-data': '70000' }), { timeoutServer: 70_000 }],
  [openstack({ 'timeout-member-connect': '5000' }), { timeoutConnect: 5_000 }],
  [openstack({ 'connection-limit': '100' }), { connectionLimit: 100 }],
  [openstack({ 'connection-limit': '-1' }), {}],
  [openstack({ 'enable-health-monitor': 'false' }), {}],
  [monitoredByTcp, { healthMonitor: 'tcp' }],
  [
    {
      ...monitoredByTcp,
      ...openstack({
        'health-monitor-delay': '60',
        'health-monitor-timeout': '30',
        'health-monitor-max-retries': '1',
        'health-monitor-max-retries-down': '4',
      }),
    },
    {
      healthMonitor: 'tcp',
      healthMonitorInterval: 60_000,
      healthMonitorTimeout: 30_000,
      healthMonitorRise: 1,
      healthMonitorFall: 4,
    },
  ],
] as const) {
  test(
    `readAnnotations() reads ${JSON.stringify(annotations).replaceAll(OPENSTACK, '')} of OpenStack`,
    reads,
    annotations,
    expected,
  );
}

for (const [name, text, words] of [
  ['lb-method', 'SOURCE_IP_PORT', 'one of ROUND_ROBIN, LEAST_CONNECTIONS or SOURCE_IP'],
  ['lb-method', 'source-hash', 'one of ROUND_ROBIN, LEAST_CONNECTIONS or SOURCE_IP'],
  ['proxy-protocol', 'constructor', 'one of true, v1, v2 or false'],
  ['timeout-client-data', '50s', 'a whole number of milliseconds from 500 to 2073600000'],
  ['timeout-member-data', '0', 'a whole number of milliseconds from 500 to 2073600000'],
  ['timeout-member-connect', '300001', 'a whole number of milliseconds from 10 to 300000'],
  ['health-monitor-delay', '5s', 'a whole number of seconds from 1 to 300'],
  ['health-monitor-max-retries', '0', 'a whole number from 1 to 50'],
  ['connection-limit', '0', '-1 or a whole number from 1 to 1000000'],
  ['connection-limit', '-2', '-1 or a whole number from 1 to 1000000'],
] as const) {
  const message = `Cannot use annotation "${OPENSTACK}${name}": "${text}" is not ${words}`;
  test(
    `readAnnotations() refuses the ${name} "${text}" of OpenStack`,
    refuses,
    openstack({ [name]: text }),
    message,
  );
}

for (const [name, text, expected] of [
  ['metallb.io/loadBalancerIPs', '192.0.2.1, 2001:DB8::1', { loadBalancerIps: ['192.0.2.1', '2001:db8::1'] }],
  ['metallb.universe.tf/loadBalancerIPs', '192.0.2.1', { loadBalancerIps: ['192.0.2.1'] }],
  ['metallb.io/address-pool', 'public', { addressPool: 'public' }],
  ['metallb.universe.tf/address-pool', 'public', { addressPool: 'public' }],
  ['metallb.io/allow-shared-ip', 'dns', { addressSharingKey: 'dns' }],
  ['metallb.universe.tf/allow-shared-ip', 'dns', { addressSharingKey: 'dns' }],
  ['kube-vip.io/loadbalancerIPs', '192.0.2.1', { loadBalancerIps: ['192.0.2.1'] }],
  ['lbipam.cilium.io/ips', '192.0.2.1,2001:db8::1', { loadBalancerIps: ['192.0.2.1', '2001:db8::1'] }],
  ['lbipam.cilium.io/sharing-key', 'dns', { addressSharingKey: 'dns' }],
  ['metallb.io/ip-allocated-from-pool', 'public', {}],
] as const) {
  test(`readAnnotations() reads ${name}: ${text}`, reads, { [name]: text }, expected);
}

test('readAnnotations() refuses two addresses of one family in the annotation of another provider, by its name', (t) => {
  const [message = ''] = messages({ 'metallb.io/loadBalancerIPs': '192.0.2.1,192.0.2.2' });
  t.is(
    message,
    'Cannot use annotation "metallb.io/loadBalancerIPs": "192.0.2.1,192.0.2.2" is not one IPv4 address, one IPv6 address, or one of each with a comma between them',
  );
});

test('readAnnotations() says where Headgate has what an annotation of another provider asks for', (t) => {
  t.deepEqual(messages({ 'lbipam.cilium.io/sharing-cross-namespace': '*' }), [
    'Cannot use annotation "lbipam.cilium.io/sharing-cross-namespace": the pool decides whether Services of several namespaces share its addresses (shareAcrossNamespaces)',
  ]);
});

test('Of several aliases the one that the table has first counts, in any order', (t) => {
  const metallb = { 'metallb.io/loadBalancerIPs': '192.0.2.1' };
  const cilium = { 'lbipam.cilium.io/ips': '192.0.2.2' };
  t.deepEqual(changed({ ...metallb, ...cilium }), { loadBalancerIps: ['192.0.2.1'] });
  t.deepEqual(changed({ ...cilium, ...metallb }), { loadBalancerIps: ['192.0.2.1'] });
});

test('An annotation has precedence over its alias in either order, even if the annotation is refused', (t) => {
  const ours = own({ algorithm: 'random' });
  const theirs = openstack({ 'lb-method': 'SOURCE_IP' });
  t.deepEqual(changed({ ...ours, ...theirs }), { algorithm: 'random' });
  t.deepEqual(changed({ ...theirs, ...ours }), { algorithm: 'random' });
  t.deepEqual(messages({ ...ours, ...openstack({ 'lb-method': 'nonsense' }) }), []);
  const bad = { ...theirs, ...own({ algorithm: 'nonsense' }) };
  t.deepEqual(changed(bad), {});
  t.is(messages(bad).length, 1);
});

for (const [name, hint] of [
  ['ratelimit', ', the nearest is "headgate.io/rate-limit", which protects; it refuses connections'],
  ['loadBalancerIPs', ', the nearest is "headgate.io/load-balancer-ips"'],
  ['health-check-interval', ', the nearest is "headgate.io/health-monitor-interval"'],
  ['algoritm', ', the nearest is "headgate.io/algorithm"'],
  ['certificate', ', the nearest is "headgate.io/tls-certificate", which protects; it refuses connections'],
  ['', ''],
  ['constructor', ''],
] as const) {
  const message = `Cannot use annotation "headgate.io/${name}": the name is unknown${hint}`;
  test(
    `readAnnotations() refuses the unknown annotation "${name}"`,
    refuses,
    own({ [name]: 'true' }),
    message,
  );
}

test('readAnnotations() quotes and shortens an unknown name', (t) => {
  t.deepEqual(messages(own({ 'a"\n': '', [`b${'x'.repeat(1_000_000)}`]: '' })), [
    'Cannot use annotation "headgate.io/a\\"\\n": the name is unknown',
    `Cannot use annotation "headgate.io/b${'x'.repeat(47)}…": the name is unknown`,
  ]);
});

test('readAnnotations() names eight unknown annotations and counts the others', (t) => {
  const annotations = own(Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`unknown-${i}`, ''])));
  const found = messages(annotations);
  t.is(found.length, 9);
  t.is(found[8], 'Cannot use 9992 more annotations: their names are unknown');
});

const needsHttp = 'it needs annotation "headgate.io/health-monitor" to be http or https';
const needsAny =
  'it needs annotation "headgate.io/health-monitor" to be one of tcp, http, https, tls, grpc, grpcs, udp or kube-proxy';

test('A path, a method or codes without an HTTP monitor are Problems', (t) => {
  const annotations = own({
    'health-monitor-path': '/x',
    'health-monitor-method': 'HEAD',
    'health-monitor': 'tcp',
  });
  t.deepEqual(messages(annotations), [
    `Cannot use annotation "headgate.io/health-monitor-path": ${needsHttp}`,
    `Cannot use annotation "headgate.io/health-monitor-method": ${needsHttp}`,
  ]);
  t.deepEqual(changed(annotations), { healthMonitor: 'tcp' });
});

test('Annotations of a health monitor without a health monitor are Problems', (t) => {
  const annotations = {
    ...own({ 'health-monitor-fall': '5' }),
    ...openstack({ 'health-monitor-delay': '10' }),
  };
  t.deepEqual(messages(annotations), [
    `Cannot use annotation "${OPENSTACK}health-monitor-delay": ${needsAny}`,
    `Cannot use annotation "headgate.io/health-monitor-fall": ${needsAny}`,
  ]);
  t.deepEqual(changed(annotations), {});
});

test('A body with the method HEAD is a Problem, except from a default', (t) => {
  const head = { 'health-monitor': 'http', 'health-monitor-method': 'HEAD' };
  t.deepEqual(messages(own({ ...head, 'health-monitor-expected-body': 'OK' })), [
    'Cannot use annotation "headgate.io/health-monitor-expected-body": the answer to HEAD has no body',
  ]);
  const { values: defaults } = readAnnotationDefaults({ 'health-monitor-expected-body': 'OK' });
  t.deepEqual(readAnnotations(own(head), OBJECT, defaults).problems, []);
});

for (const [text, isAllowed] of [
  ['"status" {0,4}: {0,4}"(UP|OK)"', true],
  [String.raw`^\{"ok":true\}$`, true],
  ['[a-z0-9]{1,64}', true],
  ['[^<>]{2}', true],
  ['(a|b)c', true],
  ['a*', false],
  ['a+', false],
  ['(a){2}', false],
  ['(a?){3}', false],
  ['(?i)a', false],
  ['((a))', false],
  ['a{2}{2}', false],
  ['a??', false],
  ['[a-z]{0,65}', false],
  ['.{0,64}.{0,64}', false],
  ['(.|.)'.repeat(9), false],
  ['[z-a]', false],
  ['[^]', false],
  ['[^^]', true],
  ['[a-c-e]', false],
  ['[a-c-]', true],
  ['[.a.]', false],
  ['[..]', false],
  ['[.]', true],
  ['[[:alpha:]]', false],
  [String.raw`\d`, false],
  ['a|', false],
  ['()', false],
  ['(a', false],
  ["it's", false],
] as const) {
  test(`The pattern ${text} is ${isAllowed ? '' : 'not '}allowed for a body`, (t) => {
    t.is(bodyPattern.parse(text), isAllowed ? text : undefined);
  });
}

test('A refused health monitor is the only Problem, without Problems for its details', (t) => {
  t.is(
    messages(own({ 'health-monitor': 'htp', 'health-monitor-path': '/x', 'health-monitor-fall': '5' }))
      .length,
    1,
  );
});

test('A health monitor can be a default of the settings', (t) => {
  const { values: defaults } = readAnnotationDefaults({ 'health-monitor': 'http' });
  const annotations = own({ 'health-monitor-path': '/x' });
  t.deepEqual(readAnnotations(annotations, OBJECT, defaults).problems, []);
  t.deepEqual(changed(annotations, defaults), { healthMonitorPath: '/x' });
});

test('A timeout that exceeds the interval is a Problem, and the interval is used', (t) => {
  const annotations = { ...monitored, ...own({ 'health-monitor-timeout': '6s' }) };
  t.deepEqual(messages(annotations), [
    'Cannot use annotation "headgate.io/health-monitor-timeout": 6s is longer than the interval of 5s',
  ]);
  t.is(readAnnotations(annotations, OBJECT).values.healthMonitorTimeout, 5_000);
});

test('A default timeout is shortened to the interval without a Problem', (t) => {
  const annotations = { ...monitored, ...own({ 'health-monitor-interval': '500ms' }) };
  t.deepEqual(messages(annotations), []);
  t.is(readAnnotations(annotations, OBJECT).values.healthMonitorTimeout, 500);
  const { values: defaults, errors } = readAnnotationDefaults({ 'health-monitor-timeout': '20s' });
  t.deepEqual(errors, []);
  t.is(readAnnotations({}, OBJECT, defaults).values.healthMonitorTimeout, 5_000);
  const slow = { ...monitored, ...own({ 'health-monitor-interval': '30s' }) };
  t.is(readAnnotations(slow, OBJECT, defaults).values.healthMonitorTimeout, 20_000);
});

test('A refused timeout has no second Problem for exceeding the interval', (t) => {
  const annotations = { 'health-monitor-interval': '1s', 'health-monitor-timeout': 'abc' };
  t.is(messages({ ...monitored, ...own(annotations) }).length, 1);
});

test('An invalid value does not affect other annotations, and the default of the settings applies instead', (t) => {
  const { values: defaults } = readAnnotationDefaults({ algorithm: 'random' });
  const annotations = own({ algorithm: 'nonsense', mode: 'http' });
  const { values, problems } = readAnnotations(annotations, OBJECT, defaults);
  t.is(values.algorithm, 'random');
  t.is(values.mode, 'http');
  t.deepEqual(
    problems.map(({ object, reason }) => ({ object, reason })),
    [{ object: OBJECT, reason: 'InvalidAnnotation' }],
  );
});

test('Problems are in the order of the table for any order of annotations', (t) => {
  const bad = Object.entries(own({ mode: 'x', algorithm: 'x', members: 'x', 'timeout-queue': 'x' }));
  t.deepEqual(messages(Object.fromEntries(bad)), messages(Object.fromEntries(bad.toReversed())));
});

test('readAnnotationDefaults() reads names without the prefix', (t) => {
  t.deepEqual(readAnnotationDefaults({ 'timeout-client': '1h', 'when-empty': 'keep-last' }), {
    values: { ...ANNOTATION_DEFAULTS, timeoutClient: 3_600_000, whenEmpty: 'keep-last' },
    errors: [],
  });
});

test('readAnnotationDefaults() reports invalid values and reads the others', (t) => {
  const record = {
    'rate-limit': 'abc',
    ratelimit: '1',
    'headgate.io/mode': 'http',
    'load-balancer-ips': '192.0.2.1',
    nonsense: '1',
    algorithm: 'random',
  };
  const { values, errors } = readAnnotationDefaults(record);
  t.deepEqual(errors, [
    'Cannot use annotation default "rate-limit": "abc" is not a whole number from 0 to 1000000',
    'Cannot use annotation default "ratelimit": the name is unknown, the nearest is "rate-limit"',
    'Cannot use annotation default "headgate.io/mode": the name is unknown',
    'Cannot use annotation default "load-balancer-ips": it is for a single Service only',
    'Cannot use annotation default "nonsense": the name is unknown',
  ]);
  t.deepEqual(values, { ...ANNOTATION_DEFAULTS, algorithm: 'random' });
});

/** The allowed values of each field, independent of the table. */
const ALLOWED: Readonly<Record<Field, (value: unknown) => boolean>> = {
  algorithm: among('round-robin', 'least-connections', 'source-hash', 'random'),
  mode: among('tcp', 'http', 'https'),
  engine: among('haproxy', 'kernel'),
  sourceAddress: among('load-balancer', 'client'),
  egress: (value) => typeof value === 'boolean',
  tlsCertificate: listOf(/^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/),
  tlsPorts: listOf(/^[a-z0-9][-a-z0-9]{0,62}$/),
  tlsMinVersion: among('1.2', '1.3'),
  tlsCiphers: listOf(/^[A-Z0-9_-]{1,40}$/),
  tlsAlpn: listOf(/^[\w./-]{1,32}$/),
  tlsClientCertificates: among('none', 'optional', 'required'),
  tlsClientCa: matches(/^(?:(?:secret\/)?[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?)?$/),
  tlsClientCrl: matches(/^(?:(?:secret\/)?[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?)?$/),
  memberTls: among('none', 'verified', 'unverified'),
  memberTlsCa: matches(/^(?:(?:secret\/)?[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?)?$/),
  memberTlsName: matches(/^[A-Za-z0-9.-]{0,253}$/),
  memberHttpVersion: among('1.1', '2'),
  trustedProxies: listOf(/^[0-9a-f.:]+\/\d{1,3}$/),
  requestIds: among(true, false),
  compression: among('none', 'gzip'),
  errorPages: matches(
    /^(?:[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?(?:\/[a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?)?)?$/,
  ),
  log: among(undefined, 'none', 'errors', 'all'),
  healthMonitor: among('none', 'tcp', 'http', 'https', 'tls', 'grpc', 'grpcs', 'kube-proxy'),
  healthMonitorPath: matches(/^\/[\w\-.~/?&=:@+]{0,255}$/),
  healthMonitorMethod: among('GET', 'HEAD', 'OPTIONS'),
  healthMonitorExpectedCodes: matches(/^[1-5]\d\d(-[1-5]\d\d)?(,[1-5]\d\d(-[1-5]\d\d)?)*$/),
  healthMonitorExpectedBody: (value) => matches(/^[ -~]{0,200}$/)(value) && !/['\\]/.test(String(value)),
  healthMonitorExpectedBodyPattern: (value) =>
    matches(/^[ -&(-~]{0,200}$/)(value) && !/[*+]/.test(String(value).replaceAll(/\\.|\[[^\]]+\]/g, '')),
  healthMonitorHost: matches(/^(?:[A-Za-z0-9.-]{1,253}(?::\d{1,5})?)?$/),
  healthMonitorSni: matches(/^[A-Za-z0-9.-]{0,253}$/),
  healthMonitorGrpcService: matches(/^[\w./-]{0,100}$/),
  healthMonitorInterval: whole(500, 300_000),
  healthMonitorTimeout: whole(100, 60_000),
  healthMonitorRise: whole(1, 50),
  healthMonitorFall: whole(1, 50),
  healthMonitorPort: whole(0, 65_535),
  ejectAfter: (value) => value === undefined || whole(0, 1000)(value),
  ejectStatuses: matches(/^[1-5]\d\d(-[1-5]\d\d)?(,[1-5]\d\d(-[1-5]\d\d)?)*$/),
  ejectShare: whole(1, 99),
  slowStart: whole(0, 600_000),
  proxyProtocol: among('none', 'v1', 'v2'),
  acceptProxyProtocol: among(true, false),
  timeoutConnect: whole(10, 300_000),
  timeoutClient: whole(500, 2_073_600_000),
  timeoutServer: whole(500, 2_073_600_000),
  timeoutTunnel: whole(0, 2_073_600_000),
  timeoutQueue: whole(10, 600_000),
  connectionLimit: whole(0, 1_000_000),
  rateLimit: whole(0, 1_000_000),
  memberConnectionLimit: whole(0, 1_000_000),
  members: among('pods', 'nodes', 'direct', undefined),
  whenEmpty: among('reject', 'keep-last'),
  whenAllDown: among('serve', 'reject'),
  loadBalancerIps: (value) => {
    const families = (value as string[]).map((address) => isIP(address));
    const isAny = families.length === 0 || families.some((family) => family > 0);
    return isAny && families.length <= 2 && new Set(families).size === families.length;
  },
  publicAddress: (value) => ALLOWED.loadBalancerIps(value),
  addressPool: (value) => value === undefined || matches(/^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/)(value),
  addressSharingKey: (value) => value === undefined || matches(/^[\w][\w.-]{0,62}$/)(value),
};

function among(...options: readonly unknown[]): (value: unknown) => boolean {
  return (value) => options.includes(value);
}

function matches(pattern: RegExp): (value: unknown) => boolean {
  return (value) => typeof value === 'string' && pattern.test(value);
}

function listOf(pattern: RegExp): (value: unknown) => boolean {
  return (value) => Array.isArray(value) && value.length <= 32 && value.every(matches(pattern));
}

function whole(least: number, most: number): (value: unknown) => boolean {
  return (value) => Number.isInteger(value) && Number(value) >= least && Number(value) <= most;
}

const fullNames = FIELDS.flatMap((field) => [
  `headgate.io/${ANNOTATIONS[field].name}`,
  ...(ANNOTATIONS[field].aliases ?? []).map(({ name }) => name),
]);
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom(...'0159-,. /:#%$\'"\\;\nsmhdv') }),
  fc.constantFrom(
    'http',
    'true',
    'v2',
    '200-399',
    '/x',
    '1s',
    '24d',
    '65535',
    '0',
    '-1',
    '30',
    '192.0.2.1,::1',
  ),
);
const anyName = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...fullNames) },
  fc.string({ unit: 'binary' }).map((name) => `headgate.io/${name}`),
);

test('For any annotations, each value is allowed for its field, and each message is one printable line', (t) => {
  fc.assert(
    fc.property(fc.dictionary(anyName, anyText, { maxKeys: 30 }), (annotations) => {
      const { values, problems } = readAnnotations(annotations, OBJECT);
      t.deepEqual(Object.keys(values).sort(), Object.keys(ALLOWED).sort());
      for (const field of FIELDS) t.true(ALLOWED[field](values[field]), `${field}: ${values[field]}`);
      t.true(values.healthMonitorTimeout <= values.healthMonitorInterval);
      for (const { message } of problems) t.regex(message, /^(?:[^\p{C}\p{Z}]| ){1,400}$/u);
    }),
    { numRuns: 500 },
  );
});

const BODIES: readonly Field[] = ['healthMonitorExpectedBody', 'healthMonitorExpectedBodyPattern'];

test('No text value needs a quote or an escape in HAProxy, except those of a body', (t) => {
  const texts = FIELDS.filter((field) => ['string', 'undefined'].includes(typeof ANNOTATION_DEFAULTS[field]));
  fc.assert(
    fc.property(fc.constantFrom(...texts), fc.string({ unit: 'binary-ascii' }), (field, text) => {
      const { kind } = ANNOTATIONS[field];
      for (const candidate of [text, `/${text}`, `200${text}`]) {
        const allowed = BODIES.includes(field) ? /^[ -&(-~]*$/ : /^[A-Za-z0-9\-._~/?&=:@+,]*$/;
        t.regex(String(kind.parse(candidate) ?? ''), allowed);
      }
    }),
    { numRuns: 2000 },
  );
});

test.serial('readAnnotations() refuses values of a megabyte without parsing them', (t) => {
  const fillers = ['0', '1', 'a', ' ', ',', '/', '200,', '1-', '::', '\n', '\u202e'];
  const started = processorTime();
  for (const filler of fillers) {
    const text = filler.repeat(1_000_000 / filler.length);
    const { problems } = readAnnotations(Object.fromEntries(fullNames.map((name) => [name, text])), OBJECT);
    t.is(problems.length, FIELDS.length);
  }
  t.true(processorTime() - started < 2_000);
});

test('docs/annotations.md matches the table', (t) => {
  const file = new URL('../../../../docs/annotations.md', import.meta.url);
  t.is(readFileSync(file, 'utf8'), annotationPage(), 'Run "node scripts/write-annotation-docs.ts"');
});

test('Each example in docs/annotations.md can be copied into YAML', (t) => {
  const lines = [...annotationPage().matchAll(/^- Example: `(.*)`$/gm)].map(([, line]) => line);
  const { documents } = parseYamlDocuments(lines.join('\n'));
  const examples = FIELDS.map((field) => [
    `headgate.io/${ANNOTATIONS[field].name}`,
    ANNOTATIONS[field].example,
  ]);
  t.deepEqual(documents[0]?.value, Object.fromEntries(examples));
});

test('docs/annotations.md has one sentence per line', (t) => {
  const text = annotationPage().replaceAll(/```[^`]*```/g, '');
  t.deepEqual(
    text.split('\n').filter((line) => /[.!?] [A-Z]/.test(line.replaceAll(/`[^`]*`/g, 'x'))),
    [],
  );
});
