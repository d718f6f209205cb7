import test from 'ava';
import fc from 'fast-check';
import { HeadgateError } from '../../../agent/base/errors.ts';
import { settingsHelp } from '../../../agent/settings/help.ts';
import {
  diffSettings,
  readCommandLine,
  readSettings,
  type SettingName,
  type Settings,
} from '../../../agent/settings/settings.ts';
import { allSettings, flagOf, variableOf } from '../../../agent/settings/table.ts';

interface Given {
  readonly argv?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Content of /etc/headgate.yaml, which `--config` then names. */
  readonly file?: string;
  readonly uid?: number;
  readonly files?: Readonly<Record<string, string>>;
}

/** Reads settings as an ordinary user with the working directory /srv. */
function read({ argv = [], env = {}, file, uid = 1000, files = {} }: Given): Settings {
  const all: Record<string, string> = {
    ...files,
    ...(file === undefined ? {} : { '/etc/headgate.yaml': file }),
  };
  return readSettings({
    argv: file === undefined ? argv : ['--config', '/etc/headgate.yaml', ...argv],
    env: { HOME: '/home/me', ...env },
    uid,
    cwd: '/srv',
    readFile(path) {
      const content = all[path];
      if (content === undefined) throw new Error(`ENOENT: no such file, open '${path}'`);
      return content;
    },
  });
}

/** The lines of the error, without the first one. */
function faults(given: Given): string[] {
  try {
    read(given);
  } catch (error) {
    if (error instanceof HeadgateError && error.code === 'SETTINGS_INVALID' && error.retry === 'never') {
      return error.message
        .split('\n')
        .slice(1)
        .map((line) => line.trim());
    }
    throw error;
  }
  return [];
}

test('durationOrOff() accepts 0 with or without a unit for off, and no duration below the minimum', (t) => {
  for (const off of ['0', '0s', '0ms']) t.is(read({ argv: ['--drain-timeout', off] }).drainTimeout, 0);
  t.deepEqual(faults({ argv: ['--drain-timeout', '1ms'] }), [
    '--drain-timeout: "1ms" is not 0 or a duration with its unit (ms, s, m, h or d) from 1s to 1d',
  ]);
});

for (const [name, text, values] of [
  ['namespaces', 'a,b', ['a', 'b']],
  ['memberRanges', '10.0.0.0/8,fd00::/8', ['10.0.0.0/8', 'fd00::/8']],
  ['manifests', '/a:/b', ['/a', '/b']],
  ['jwksUrls', 'https://a.example/x,y,HTTPS://b.example/', ['https://a.example/x,y', 'HTTPS://b.example/']],
] as const)
  test(`The flag of ${name} takes several values as its variable does, and repeated`, (t) => {
    t.deepEqual(read({ argv: [`--${flagOf(name)}`, text] })[name], values);
    t.deepEqual(read({ env: { [variableOf(name)]: text } })[name], values);
    t.deepEqual(read({ argv: values.flatMap((each) => [`--${flagOf(name)}`, each]) })[name], values);
  });

test('The flag of a mapping takes several entries, and an empty value of a list is no list', (t) => {
  const { defaults } = read({ argv: ['--defaults', 'algorithm=random;connection-limit=9'] });
  t.deepEqual(defaults, { algorithm: 'random', 'connection-limit': '9' });
  for (const text of ['', 'a,', ',a'])
    t.deepEqual(faults({ argv: ['--namespaces', text] }), [
      '--namespaces: "" is not the name of a namespace',
    ]);
  t.deepEqual(read({ env: { HEADGATE_JWKS_URLS: 'https://a.example/,' } }).jwksUrls, ['https://a.example/']);
  t.deepEqual(faults({ env: { HEADGATE_JWKS_URLS: 'https://a.example/, https://b.example/' } }), [
    'HEADGATE_JWKS_URLS: " https://b.example/" is not a URL such as https://192.0.2.1:6443',
  ]);
  const hosts = 'https://a.example.org,b.example.org';
  t.deepEqual(faults({ argv: ['--api-servers', hosts] }), [
    `--api-servers: "${hosts}" is not a URL such as https://192.0.2.1:6443`,
  ]);
});

test('The defaults of an ordinary user are below the home directory', (t) => {
  t.like(read({}), {
    manifests: [],
    stateDir: '/home/me/.local/state/headgate',
    runtimeDir: '/tmp/headgate-1000',
    listen: { address: '127.0.0.1', port: 9180 },
    haproxy: 'haproxy',
    haproxySupervisor: 'agent',
    haproxyUser: '',
    haproxyGroup: '',
    logLevel: 'info',
    loadBalancerClass: 'headgate.io/agent',
    handleUnclassed: true,
    members: 'pods',
    refusedMembers: [],
    memberRanges: [],
    membersWithoutTarget: true,
    maxConnectionsPerNamespace: 0,
    maxServersPerNamespace: 100_000,
    maxChecksPerNamespace: 262_144,
    zone: '',
    externalIPs: false,
    clusterIPs: false,
    defaults: {},
    pools: [],
    releaseAfter: 600_000,
    provisioner: '',
    maxConnections: 0,
    threads: 0,
    drainTimeout: 300_000,
    hardStopAfter: 1_800_000,
    reloadInterval: 1000,
    landing: true,
    landingRest: 60_000,
    maxOldWorkers: 4,
    oldWorkerMemory: 1024,
    auditInterval: 30_000,
    metricsDetail: 'member',
    routeMetrics: false,
    healthReadInterval: 2_000,
    stopDataplaneOnExit: false,
  });
});

test("The XDG variables move an ordinary user's directories, unless they are relative", (t) => {
  const env = { XDG_STATE_HOME: '/data/state', XDG_RUNTIME_DIR: '/run/user/1000' };
  t.like(read({ env }), { stateDir: '/data/state/headgate', runtimeDir: '/run/user/1000/headgate' });
  t.is(read({ env: { XDG_RUNTIME_DIR: 'here' } }).runtimeDir, '/tmp/headgate-1000');
});

test("The defaults of root are the system's directories, and the account haproxy if it exists", (t) => {
  const files = {
    '/etc/passwd': 'root:x:0:0::/root:/bin/sh\nhaproxy:x:99:99::/:/bin/false\n',
    '/etc/group': 'root:x:0:\n',
  };
  t.like(read({ uid: 0, files }), {
    stateDir: '/var/lib/headgate',
    runtimeDir: '/run/headgate',
    haproxyUser: 'haproxy',
    haproxyGroup: '',
  });
  t.is(read({ uid: 0 }).haproxyUser, '');
  t.is(read({ uid: 1000, files }).haproxyUser, '');
});

test('A flag has precedence over a variable, a variable over the file, the file over the default', (t) => {
  const file = 'drainTimeout: 1m';
  const env = { HEADGATE_DRAIN_TIMEOUT: '2m' };
  const argv = ['--drain-timeout', '3m'];
  t.is(read({ file, env, argv }).drainTimeout, 180_000);
  t.is(read({ file, env }).drainTimeout, 120_000);
  t.is(read({ file }).drainTimeout, 60_000);
  t.is(read({ env: { HEADGATE_DRAIN_TIMEOUT: '' }, file }).drainTimeout, 60_000);
  t.is(read({ argv: ['--drain-timeout', '1s', '--drain-timeout=2s'] }).drainTimeout, 2000);
});

// A value of each setting that differs from its default, as in a flag or variable.
const others: Readonly<Record<SettingName, string>> = {
  manifests: '/m',
  kubeconfig: '/etc/kubeconfig',
  inCluster: 'true',
  amphora: '/etc/octavia/amphora-agent.conf',
  apiServers: 'https://192.0.2.1:6443',
  namespaces: 'shop',
  serviceSelector: 'tier=edge',
  clusterLostAfter: '2h',
  secretNamespaces: 'shop',
  certificates: 'default/web-tls=/etc/web.pem',
  jwksUrls: 'https://id.example.org/keys',
  maxRsaBits: '8192',
  leaseNamespace: 'lb',
  pools: '[{"name":"a","blocks":["192.0.2.0-192.0.2.255"]}]',
  releaseAfter: '1h',
  provisioner: '/usr/local/bin/told',
  finalizer: 'false',
  hostsOfOneNamespace: 'true',
  publishUnready: 'true',
  enforceNetworkPolicy: 'ingress',
  dotSegments: 'pass',
  ambiguousPaths: 'reject',
  gatewayApi: 'false',
  ingress: 'false',
  netns: 'lb1',
  vrrp: '{"interface":"eth0","address":"192.0.2.11","peers":["192.0.2.12"],"advertInterval":"200ms","instances":[{"virtualRouterId":51,"priority":200,"anchors":["192.0.2.1"]}]}',
  connectionLog: 'errors',
  connectionLogTarget: '[2001:db8::1]:514',
  connectionLogFormat: 'haproxy',
  nft: '/opt/nft',
  kernelTraffic: 'false',
  keepalived: '/opt/keepalived',
  keepalivedSupervisor: 'external',
  externalAnnouncer: 'true',
  connectionSync: 'true',
  connectionSyncPort: '3781',
  conntrackd: '/opt/conntrackd',
  conntrackdSupervisor: 'external',
  stateDir: '/s',
  runtimeDir: '/r',
  listen: '[::1]:0',
  loadBalancerClass: 'example.org/lb',
  handleUnclassed: 'false',
  members: 'nodes',
  zone: 'north-1',
  maxConnectionsPerNamespace: '700',
  maxServersPerNamespace: '1000',
  maxChecksPerNamespace: '500',
  refusedMembers: 'fd00::/8',
  memberRanges: '10.96.0.0/12',
  membersWithoutTarget: 'false',
  externalIPs: 'true',
  clusterIPs: 'true',
  defaults: 'algorithm=least-connections',
  haproxy: '/opt/haproxy/sbin/haproxy',
  haproxySupervisor: 'external',
  haproxyAccess: 'group',
  haproxyUser: 'lb',
  haproxyGroup: 'lb',
  maxConnections: '20000',
  threads: '2',
  drainTimeout: '90s',
  hardStopAfter: '1h',
  reloadInterval: '250ms',
  landing: 'false',
  landingRest: '2m',
  maxOldWorkers: '9',
  oldWorkerMemory: '512',
  auditInterval: '5s',
  healthReadInterval: '1s',
  pairPeer: '192.0.2.2',
  pairAddress: '192.0.2.1',
  vrrpKey: '/etc/headgate/vrrp-key',
  pairCredentials: '/etc/headgate/pair.pem',
  pairPort: '9281',
  pairTablesPort: '9282',
  pairLowerAfter: '2s',
  pairRaiseAfter: '20s',
  pairDrainTimeout: '2m',
  metricsDetail: 'pool',
  dashboardUrl: 'https://grafana.example.org/d/headgate?var-namespace={namespace}',
  routeMetrics: 'true',
  logLevel: 'trace',
  stopDataplaneOnExit: 'true',
  announce: 'bgp',
  hosts:
    '[{"name":"lb1","address":"192.0.2.11","back":["10.9.9.1","fd09::1"]},{"name":"lb2","address":"192.0.2.12","back":["10.9.9.2","fd09::2"]}]',
  bgp: '{"asn":65001,"routerId":"192.0.2.11","holdTime":"30s","routeLimit":100,"withoutMembers":"withdraw","peers":[{"name":"tor-a","address":"192.0.2.1","source":"192.0.2.11","localPort":179,"asn":65000,"port":1790,"multihop":2,"ttlSecurity":true,"communities":["65001:100"],"largeCommunities":["65001:1:2"],"prepends":1,"passwordFile":"/etc/headgate/password","families":["ipv4"],"bfd":{"interval":"100ms","multiplier":3}}]}',
  bird: '/opt/bird',
  birdSupervisor: 'external',
  hostName: 'lb1',
  hostLabels: 'rack=r1',
};

for (const [name, setting] of allSettings()) {
  test(`Setting ${name} can be given as a key, as a flag and as a variable, and is written as it was read`, (t) => {
    const other = others[name];
    const inFile =
      {
        defaults: '{ algorithm: least-connections }',
        certificates: '{ default/web-tls: /etc/web.pem }',
        pools: other,
        vrrp: other,
        bgp: other,
        hostLabels: '{ rack: r1 }',
        hosts: other,
      }[name as string] ?? `"${other}"`;
    const byFlag = read({ argv: [`--${flagOf(name)}=${other}`] });
    t.notDeepEqual(byFlag, read({}));
    t.deepEqual(read({ env: { [variableOf(name)]: other } }), byFlag);
    t.deepEqual(read({ file: `${name}: ${inFile}` }), byFlag);
    t.is(setting.kind.write(byFlag[name]), other);
  });
}

test('Numbers and booleans need no quotes in the file, and a key without a value counts as absent', (t) => {
  const file = 'threads: 2\nexternalIPs: true\nzone:\ndefaults: { connection-limit: 100 }';
  t.like(read({ file }), {
    threads: 2,
    externalIPs: true,
    zone: '',
    defaults: { 'connection-limit': '100' },
  });
  t.deepEqual(read({ file: '' }), read({}));
});

test('diffSettings() compares every field of a pool, and every fault of a pool has its place', (t) => {
  const { kind } = allSettings().find(([name]) => name === 'pools')?.[1] ?? {};
  const pool = {
    name: 'a',
    blocks: ['192.0.2.1'],
    priority: 5,
    auto: false,
    draining: true,
    shareAcrossNamespaces: true,
    serviceAllocation: {
      namespaces: ['prod'],
      serviceSelector: {
        matchLabels: { tier: 'front' },
        matchExpressions: [{ key: 'team', operator: 'In', values: ['x'] }],
      },
    },
  };
  t.is(kind?.write(read({ file: `pools: [${JSON.stringify(pool)}]` }).pools), JSON.stringify([pool]));
  t.deepEqual(
    faults({ file: 'pools: [{ name: a, blocks: [192.0.2.1], prio: 1 }]', env: { HEADGATE_POOLS: '[' } }),
    [
      'HEADGATE_POOLS: 1:2: Unexpected end of the stream within a flow collection',
      '/etc/headgate.yaml: pools: pool "a": prio: Unknown key',
    ],
  );
});

test('Settings that name objects of Kubernetes have the forms of its names', (t) => {
  const good = { 'load-balancer-class': 'example.org/lb', 'lease-namespace': 'lb', zone: 'A.1_b' };
  for (const [name, value] of Object.entries(good))
    t.deepEqual(faults({ argv: [`--${name}`, value] }), [], name);
  const bad = { 'load-balancer-class': 'a..b/lb', 'lease-namespace': 'lb.x', zone: '-a', namespaces: 'A' };
  for (const [name, value] of Object.entries(bad))
    t.regex(faults({ argv: [`--${name}`, value] }).join(), /is not /, name);
  t.is(faults({ argv: ['--certificates', 'web/a..b=/x.pem'] }).length, 1);
  t.is(faults({ argv: ['--certificates', 'web/a/b=/x.pem'] }).length, 1);
});

test('A switch can be turned on and off by a flag', (t) => {
  t.true(read({ argv: ['--external-ips'] }).externalIPs);
  t.false(read({ argv: ['--external-ips=false'], file: 'externalIPs: true' }).externalIPs);
  t.false(read({ argv: ['--no-handle-unclassed'] }).handleUnclassed);
});

test('Folders of manifests come from one source, defaults of annotations are merged', (t) => {
  const settings = read({
    file: 'manifests: [a, b]\ndefaults: { algorithm: random, timeout-connect: 1s }',
    env: { HEADGATE_MANIFESTS: '/x:y', HEADGATE_DEFAULTS: 'timeout-connect=2s;connection-limit=5' },
    argv: ['--defaults', 'algorithm=source-hash'],
  });
  t.deepEqual(settings.manifests, ['/x', '/srv/y']);
  t.deepEqual(settings.defaults, {
    algorithm: 'source-hash',
    'timeout-connect': '2s',
    'connection-limit': '5',
  });
  t.deepEqual(read({ argv: ['--manifests', 'a', '--manifests=/b', '--manifests', 'a'] }).manifests, [
    '/srv/a',
    '/b',
  ]);
});

test('Relative paths start from the working directory, those in the file from the directory of the file', (t) => {
  t.is(read({ argv: ['--state-dir', 'state'] }).stateDir, '/srv/state');
  t.like(read({ file: 'manifests: [m, ./n/]\nstateDir: ../srv\nhaproxy: ./haproxy' }), {
    manifests: ['/etc/m', '/etc/n'],
    stateDir: '/srv',
    haproxy: '/etc/haproxy',
  });
  t.is(read({ argv: ['--haproxy', 'haproxy-2.8'] }).haproxy, 'haproxy-2.8');
});

test('The settings file can be named by a variable; a flag has precedence', (t) => {
  const files = { '/a.yaml': 'zone: a', '/srv/b.yaml': 'zone: b' };
  t.is(read({ files, env: { HEADGATE_CONFIG: '/a.yaml' } }).zone, 'a');
  t.is(read({ files, env: { HEADGATE_CONFIG: '/a.yaml' }, argv: ['--config', 'b.yaml'] }).zone, 'b');
});

test('readSettings() lists all faults with place, value and what is allowed', (t) => {
  const given = {
    file: 'drainTimeout: soon\nmembers: [pods]\nlistens: 1\nhaproxyUser: Me',
    env: { HEADGATE_THREADS: '-1', HEADGATE_LOGLEVEL: 'info', HEADGATE_DRAIN_TIMEOUT: '1m' },
    argv: ['--listen', 'localhost:80', '--old-workers', '3', '--zone', '--threads=65', 'stray'],
  };
  t.deepEqual(faults(given), [
    '--old-workers: Unknown flag, the nearest is "--max-old-workers"',
    '--zone: A value is missing',
    '"stray": Unexpected argument',
    'HEADGATE_LOGLEVEL: Unknown variable, the nearest is "HEADGATE_LOG_LEVEL"',
    '/etc/headgate.yaml: listens: Unknown key, the nearest is "listen"',
    '--listen: "localhost:80" is not ADDR:PORT with an IP address and a port from 0 to 65535, such as 127.0.0.1:9180 or [::1]:9180',
    '/etc/headgate.yaml: members: ["pods"] is not pods or nodes',
    '/etc/headgate.yaml: haproxyUser: "Me" is not an account\'s name (lower-case letters, digits, _ and -), or nothing',
    '--threads: "65" is not a whole number from 0 to 64',
    'HEADGATE_THREADS: "-1" is not a whole number from 0 to 64',
    '/etc/headgate.yaml: drainTimeout: "soon" is not 0 or a duration with its unit (ms, s, m, h or d) from 1s to 1d',
  ]);
});

test('An unknown name that resembles no known name gets no suggestion', (t) => {
  const given = { file: 'foo: 1', env: { HEADGATE_FOO: '1' }, argv: ['--foo'] };
  t.deepEqual(faults(given), [
    '--foo: Unknown flag',
    'HEADGATE_FOO: Unknown variable',
    '/etc/headgate.yaml: foo: Unknown key',
  ]);
});

const refused = test.macro({
  exec(t, given: Given, fault: string | RegExp) {
    const [first = '', ...others] = faults(given);
    t.deepEqual(others, []);
    if (typeof fault === 'string') t.is(first, fault);
    else t.regex(first, fault);
  },
  title: (what) => `readSettings() refuses ${what}`,
});

test(
  'a runtime directory that is too long for the addresses of sockets',
  refused,
  { argv: ['--runtime-dir', `/${'r'.repeat(70)}`] },
  `--runtime-dir: "/${'r'.repeat(70)}" is 71 bytes long: at most 70 leave room for the names of sockets in it`,
);
test(
  'a runtime directory that is too long by default',
  refused,
  { env: { XDG_RUNTIME_DIR: `/${'r'.repeat(62)}` } },
  /^The default of runtimeDir: ".*" is 72 bytes long/,
);
test(
  'a path that needs quotes in the configuration of HAProxy',
  refused,
  { argv: ['--runtime-dir', '/run/head gate'] },
  /^--runtime-dir: "\/run\/head gate" is not the path of a directory made of letters/,
);
test(
  'an invalid annotation default',
  refused,
  { argv: ['--defaults', 'algorithm=best'], file: 'defaults: { mode: tcp }' },
  /^--defaults and \/etc\/headgate\.yaml: defaults: .*"algorithm": "best" is not /,
);
test(
  'an entry without a value',
  refused,
  { argv: ['--defaults', 'algorithm'] },
  '--defaults: "algorithm" is not NAME=VALUE',
);
test(
  'a file that does not exist',
  refused,
  { argv: ['--config', 'none.yaml'] },
  "none.yaml: Cannot read the settings file: ENOENT: no such file, open '/srv/none.yaml'",
);
test('a file that is not YAML', refused, { file: 'zone: [' }, /^\/etc\/headgate\.yaml:1:\d+: /);
test(
  'a file with a duplicate key',
  refused,
  { file: 'zone: a\nzone: b' },
  /^\/etc\/headgate\.yaml:2:1: Duplicated mapping key$/,
);
test(
  'a file that is a list',
  refused,
  { file: '- zone' },
  '/etc/headgate.yaml: ["zone"] is not a mapping of settings',
);
test(
  'a file of two documents',
  refused,
  { file: 'zone: a\n---\nzone: b' },
  '/etc/headgate.yaml:3: A second document begins here: the settings must be one document',
);
test(
  'a key of Object.prototype',
  refused,
  { file: 'constructor: 1' },
  /^\/etc\/headgate\.yaml: constructor: Unknown key/,
);
test(
  'a value for a switch that is neither true nor false',
  refused,
  { argv: ['--external-ips=yes'] },
  /is not true or false$/,
);

test('Variables that Kubernetes sets for a Service named headgate are ignored', (t) => {
  const env = {
    HEADGATE_SERVICE_HOST: '10.0.0.1',
    HEADGATE_SERVICE_PORT: '80',
    HEADGATE_SERVICE_PORT_HTTP: '80',
    HEADGATE_PORT: 'tcp://10.0.0.1:80',
    HEADGATE_PORT_80_TCP_ADDR: '10.0.0.1',
    HEADGATE_METRICS_SERVICE_HOST: '10.0.0.2',
    // The variable of a Service headgate-pair has the name of the setting pairPort.
    HEADGATE_PAIR_PORT: 'tcp://10.0.0.3:9181',
  };
  t.deepEqual(read({ env }), read({}));
  t.is(faults({ env: { HEADGATE_PORTS: '80' } }).length, 1);
});

test('The address of a dashboard may have placeholders in its query only', (t) => {
  const dashboardUrl = (url: string): Given => ({ file: `dashboardUrl: ${JSON.stringify(url)}` });
  for (const url of [
    '',
    'https://grafana.example.org/d/headgate/headgate?orgId=1&var-namespace={namespace}&var-service={name}',
    'http://[2001:db8::1]:3000/d/x?from=now-1h&q=a?b',
    'https://g.example.org/d/x?var-both={namespace}%2F{name}',
  ])
    t.is(read(dashboardUrl(url)).dashboardUrl, url);
  for (const url of [
    'javascript:alert(1)//?{name}',
    'JAVASCRIPT://x/%0Aalert(1)',
    'data:text/html,x',
    '//grafana.example.org/',
    '/d/headgate',
    'https://',
    'https://me:secret@grafana.example.org/',
    'https://me@grafana.example.org/',
    'https://{name}.example.org/',
    'https://g.example.org/d/{namespace}',
    'https://g.example.org/?a={pod}',
    'https://g.example.org/?a="><script>',
    'https://g.example.org/#{name}',
    'https://g.example.org/ x',
    'https://g.example.org/\n',
    `https://g.example.org/${'x'.repeat(1_000)}`,
  ])
    t.regex(
      faults(dashboardUrl(url)).join(),
      /dashboardUrl: ".* is not a URL that begins with https:\/\/ or http:\/\/, without user and password/,
      url,
    );
});

test('A command has its own flags in addition to the settings', (t) => {
  const ownFlags = { output: 'value', json: 'switch' } as const;
  const line = readCommandLine(['--output', 'o', '--json', '--zone', 'z', 'default/web'], ownFlags);
  t.like(line, {
    config: undefined,
    own: { output: 'o', json: true },
    positionals: ['default/web'],
    errors: [],
  });
  const argv = ['--output', 'o', '--zone', 'z'];
  t.is(readSettings({ argv, ownFlags, env: {}, uid: 1000, readFile: () => '' }).zone, 'z');
  t.regex(faults({ argv }).join(), /^--output: Unknown flag$/);
});

test('diffSettings() gives changes as a user writes them, and which need a restart', (t) => {
  const old = read({});
  t.deepEqual(diffSettings(old, read({})), []);
  t.deepEqual(
    diffSettings(
      old,
      read({ argv: ['--drain-timeout=90s', '--listen=127.0.0.1:0', '--defaults', 'mode=http'] }),
    ),
    [
      { name: 'listen', from: '127.0.0.1:9180', to: '127.0.0.1:0', needsRestart: true },
      { name: 'defaults', from: '', to: 'mode=http', needsRestart: false },
      { name: 'drainTimeout', from: '5m', to: '90s', needsRestart: false },
    ],
  );
});

test('diffSettings() needs a restart only to turn VRRP on or off', (t) => {
  const vrrp = (priority: number) =>
    read({
      argv: [
        '--vrrp',
        `{interface: eth0, address: 192.0.2.1, peers: [192.0.2.2], virtualRouterId: 51, anchors: [192.0.2.3], priority: ${priority}}`,
      ],
    });
  const restart = (from: Settings, to: Settings) =>
    diffSettings(from, to).map(({ name, needsRestart }) => `${name}: ${needsRestart}`);
  t.deepEqual(restart(vrrp(200), vrrp(210)), ['vrrp: false']);
  t.deepEqual(restart(read({}), vrrp(210)), ['vrrp: true']);
  t.deepEqual(restart(vrrp(200), read({})), ['vrrp: true']);
});

test('settingsHelp() names every flag once and stays within 100 columns, without Markdown', (t) => {
  const help = settingsHelp();
  for (const [name] of allSettings()) {
    t.is(help.match(new RegExp(`^  --(\\[no-\\])?${flagOf(name)}( |$)`, 'gm'))?.length, 1, name);
  }
  t.deepEqual(
    help.split('\n').filter((line) => line.length > 100),
    [],
  );
  t.notRegex(help, /`|\]\(/);
});

test('readSettings() gives settings or SETTINGS_INVALID for any input', (t) => {
  const names = allSettings().map(([name]) => name);
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('0', 'true', '1s', '/a\nb', 'a=b', '--zone', '[::1]:1', ''),
  );
  const argv = fc.array(
    fc.oneof(
      text,
      fc.tuple(fc.constantFrom(...names), text).map(([name, value]) => `--${flagOf(name)}=${value}`),
    ),
  );
  const env = fc.dictionary(fc.constantFrom(...names.map(variableOf)), text);
  const file = fc.oneof(
    text,
    fc.dictionary(fc.constantFrom(...names), fc.jsonValue()).map((value) => JSON.stringify(value)),
  );
  const seen = new Set<boolean>();
  fc.assert(
    // faults() throws any other error.
    fc.property(argv, env, file, (argv, env, file) => {
      seen.add(faults({ argv, env, file }).length > 0);
    }),
    { numRuns: 300, examples: [[[], {}, '{}']] },
  );
  t.is(seen.size, 2);
});

test('Paths and accounts contain nothing that files of HAProxy or keepalived must quote', (t) => {
  const hostile = fc.constantFrom(' ', '\n', '\r', '\t', '"', "'", '\\', '#', '$', '\0', '\u2028');
  const piece = fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom('/', '..', '.', 'run', 'a', '-', '_', '@', '%', '+', '=', '7') },
    { weight: 1, arbitrary: hostile },
  );
  const value = fc.array(piece, { minLength: 1, maxLength: 8 }).map((pieces) => pieces.join(''));
  const name = fc.constantFrom('runtimeDir', 'stateDir', 'haproxyUser', 'haproxyGroup');
  const seen = { taken: 0, refused: 0 };
  fc.assert(
    fc.property(name, value, (name, value) => {
      const given = { argv: [`--${flagOf(name)}=${value}`] };
      if (faults(given).length > 0) {
        seen.refused++;
        return;
      }
      const { runtimeDir, stateDir, haproxyUser, haproxyGroup } = read(given);
      t.notRegex(`${runtimeDir}${stateDir}${haproxyUser}${haproxyGroup}`, /[\s"'\\#$\0]/);
      seen.taken++;
    }),
    { numRuns: 500 },
  );
  t.true(seen.taken > 50 && seen.refused > 50, JSON.stringify(seen));
});
