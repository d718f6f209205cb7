// No hostile object stops the agent, adds a line to the configuration that the model does not have, or makes HAProxy
// refuse the configuration.

import { ok, strictEqual } from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava from 'ava';
import fc from 'fast-check';
import { AclIds } from '../agent/haproxy/config/acl-ids.ts';
import { CertificateFiles } from '../agent/haproxy/config/certificate-files.ts';
import { configText, inFileOrder } from '../agent/haproxy/config/config-text.ts';
import { hasFallback, isForHaproxy, isOnlyChecked } from '../agent/haproxy/config/listener-config.ts';
import { renderGlobal } from '../agent/haproxy/config/render.ts';
import { type RenderContext, renderContext } from '../agent/haproxy/config/render-context.ts';
import { planLoadBalancer } from '../agent/haproxy/plan.ts';
import { Running } from '../agent/haproxy/running.ts';
import { commandText } from '../agent/haproxy/socket/command-text.ts';
import { capabilitiesOf, parseVersion } from '../agent/haproxy/socket/version.ts';
import { bootId } from '../agent/host/boot-id.ts';
import { runCommand } from '../agent/host/run-command.ts';
import { parseObject } from '../agent/kubernetes/parse-object.ts';
import { needsCertificates } from '../agent/model/client-guards.ts';
import type { DesiredState } from '../agent/model/desired-state.ts';
import type { Listener, LoadBalancer, Problem } from '../agent/model/load-balancer.ts';
import { requires } from './support/basics/requirements.ts';
import { haproxyExecutable } from './support/haproxy/haproxy.ts';
import { clusterOf } from './support/values/build.ts';
import { AUTHORITY, CRL, configMap, secret, WEB } from './support/values/certificates.ts';
import { hostileObjects } from './support/values/hostile.ts';
import { RENDER_SETTINGS } from './support/values/render-settings.ts';
import { translateCluster } from './support/values/translated.ts';

const test = requires(ava, { haproxy: true });

const CONTEXT = renderContext(
  RENDER_SETTINGS,
  {
    fileMode: 0o600,
    socketMode: '600',
    config: '',
    certificates: '/run/headgate/haproxy/certificates',
    certificatesMode: 0o700,
    routes: '/var/lib/headgate/haproxy/routes',
    pages: '/var/lib/headgate/haproxy/pages',
    keys: '/var/lib/headgate/haproxy/keys',
    adminSocket: '/run/headgate/admin.sock',
    masterSocket: '',
    logSocket: '/log.sock',
    peersSocket: '/run/headgate/peers.sock',
    mirrorSocket: '/run/headgate/mirrors.sock',
    authSocket: '/run/headgate/auth.sock',
    counters: '/var/lib/headgate/haproxy/counters',
    serverState: '/run/headgate/servers.state',
    pidFile: '',
    log: '',
  },
  500,
  new AclIds().idOf,
);
const SETTINGS = [
  {},
  { externalIPs: true, clusterIPs: true, zone: 'a' },
  { members: 'nodes', handleUnclassed: true },
] as const;

const NAME = String.raw`[a-z0-9-]{1,63}:[a-z0-9-]{1,63}:(?:tcp|udp|sctp):\d{1,5}:v[46]`;
const V4 = String.raw`\d{1,3}(?:\.\d{1,3}){3}`;
const V6 = '[0-9a-f:]{2,39}';
const NUMBER = String.raw`\d{1,10}`;
const HOST = '[A-Za-z0-9.-]{1,253}';
const CHECK = ` check inter ${NUMBER}ms rise ${NUMBER} fall ${NUMBER}(?: port ${NUMBER})?(?: check-send-proxy)?(?: check-ssl(?: verify none)?(?: check-alpn h2)?(?: check-sni ${HOST})?)?`;

const TLS =
  ' ssl crt-list [A-Za-z0-9/_-]{1,250}\\.list ssl-min-ver TLSv1\\.[23](?: ciphers [A-Z0-9:-]+)?(?: ciphersuites [A-Z0-9_:]+)?(?: ca-file [A-Za-z0-9/_-]{1,250}\\.crt(?: crl-file [A-Za-z0-9/_-]{1,250}\\.crl)? verify (?:optional|required))?(?: alpn [A-Za-z0-9/._,-]+)?(?: no-tls-tickets)?';

const MEMBER_TLS = ` ssl verify (?:none|required ca-file [A-Za-z0-9/_-]{1,250}\\.crt verifyhost ${HOST})(?: sni str\\(${HOST}\\))?`;

const NAMESPACES = ['default', 'kube-system', 'n'.repeat(63)];

/** A field of a line of the connection log: a name of the object, a number, or an expression of the agent. */
const FIELD = String.raw`"[a-zA-Z]+":(?:"[a-z0-9-]{1,63}"|\d{1,5}|"?%(?:[a-zA-Z]{1,2}|\[[a-z0-9_.,()?:%A-Z@/-]+\])"?)`;

/** Every line that the sections of a load balancer can have. */
const LINES = [
  '',
  '    # For the agent, which lets a member rest that fails clients.',
  '    log ring@headgate:errors (?:len 12288 )?format raw local0(?: err)?',
  "    log-format 'headgate %b %s %ts %ST'|    log-format 'headgate %b %s %ts -'",
  '    option (?:dontlog-normal|log-separate-errors)',
  '# The kernel forwards to these members; HAProxy only checks them\\.',
  String.raw`\.if version_(?:before|atleast)\((?:2\.8|3\.0)\)`,
  String.raw`\.else`,
  String.raw`\.endif`,
  `(?:listen|frontend) ${NAME}`,
  `backend ${NAME}(?::rate|:all-down)?`,
  `    default_backend ${NAME}`,
  `    use_backend ${NAME}:all-down if { nbsrv\\(${NAME}\\) eq 0 }`,
  '    mode (?:tcp|http)',
  `    timeout (?:client|connect|server|queue|tunnel|check) ${NUMBER}ms`,
  '    timeout http-(?:request|keep-alive) 10s',
  `    maxconn ${NUMBER}`,
  '# After a reboot the certificates are there again when the agent has written them.',
  String.raw`\.if !defined\(HEADGATE_BOOT\) \|\| streq\("\$HEADGATE_BOOT",[0-9a-f]{32}\)`,
  ...forwardedLines(),
  '    # HAProxy resumes no session here; one that has no certificate is refused all the same\\.',
  String.raw`    tcp-request session reject if !\{ ssl_c_used \}`,
  String.raw`    tcp-request session set-var\(sess\.user\) ssl_c_s_dn\(CN\) if \{ ssl_c_used \} \{ ssl_c_verify 0 \}`,
  '    # After an upgrade to another HTTP, or to TLS, a member would get requests that no rule has seen\\.',
  String.raw`    http-request del-header (?:connection|upgrade) if \{ req\.hdr\(upgrade\) -m beg -i h2 http/ tls/ \}`,
  '    http-request del-header http2-settings',
  '    # Members believe these names; - and _ are one character for many of them\\.',
  String.raw`    http-request del-header (?:x[_-])?ssl[_-]client -m beg(?: unless \{ var\(txn\.proxied\) -m found \})?`,
  '    # The names of ingress-nginx\\.',
  String.raw`    http-request set-header ssl-client-verify (?:SUCCESS|FAILED:%\[ssl_c_verify\]) if \{ ssl_c_used \} !?\{ ssl_c_verify 0 \}`,
  String.raw`    http-request set-header ssl-client-(?:subject|issuer)-dn %\[ssl_c_[si]_dn\(,0,rfc2253\)\] if \{ ssl_c_used \}`,
  String.raw`    http-request set-header X-SSL-Client-(?:Verify|DN|CN|SHA1) %(?:\{\+Q\})?\[ssl_c_[a-z0-9_]+(?:\(CN\))?(?:,hex)?\] if \{ ssl_c_used \}`,
  String.raw`\.if feature\(SLZ\) \|\| feature\(ZLIB\)`,
  '    # HAProxy compares the beginning of a type\\. Streams of events are not among them\\.',
  '    compression (?:algo gzip|type(?: (?:text|application|image)/[a-z+]+){15})',
  '    # So that it is loaded for servers that are added at runtime.',
  '    default-server ca-file [A-Za-z0-9/_-]{1,250}\\.crt',
  `    bind (?:${V4}:${NUMBER}|\\[${V6}\\]:${NUMBER} v6only)(?: accept-proxy)?(?:${TLS})?`,
  `    acl allowed src -u ${NUMBER}(?: ${V4}/${NUMBER}){1,40}`,
  `    acl allowed src -u ${NUMBER}(?: ${V6}/${NUMBER}){1,40}`,
  String.raw`    tcp-request connection track-sc1 str\([a-z0-9-]{1,63}\) table headgate:namespaces`,
  String.raw`    tcp-request connection reject if \{ sc1_conn_cur,sub\(proc\.namespace_connections\) gt 0 \}`,
  '    tcp-request (?:connection|session) reject if !allowed',
  '    # Counts, and never rejects: a counter that a connection tracks, no request could track for its route.',
  `    tcp-request (?:connection|session) reject if { src_inc_gpc0\\(${NAME}:rate\\) lt 0 }`,
  `    tcp-request (?:connection|session) reject if { src_gpc0_rate\\(${NAME}:rate\\) ge ${NUMBER} }`,
  '    option (?:forwardfor|httpchk|tcp-check)',
  '    log /run/systemd/journal/dev-log len 12288 format local local0',
  '    log-tag headgate-connections',
  '    option dontlog(?:-normal|null)',
  `    (?:error-)?log-format '\\{${FIELD}(?:,${FIELD})*\\}'`,
  String.raw`    http-request set-var\(txn\.host\) req\.hdr\(host\)`,
  String.raw`    balance (?:roundrobin|leastconn|source|random\(2\)|hash src,concat\(-,txn\.affinity_period\))`,
  String.raw`    tcp-request content set-var\(txn\.affinity_period\) date,div\(\d{1,10}\)`,
  '    hash-type consistent',
  '    load-server-state-from-file global',
  String.raw`    stick-table type ip(?:v6)? size 100k expire ${NUMBER}s(?: peers headgate| store gpc0,gpc0_rate\((?:500|1000)ms\))`,
  `    stick on src(?: table ${NAME})?`,
  String.raw`    http-check send meth (?:GET|HEAD|OPTIONS) uri /[A-Za-z0-9\-._~/?&=:@+]*(?: ver HTTP/1\.1 hdr Host [A-Za-z0-9.-]{1,253}(?::\d{1,5})?)?`,
  "    http-check expect r?string '[^'\\x00-\\x1f\\x7f-\\uffff]{1,200}'",
  '    tcp-check connect default linger',
  '    tcp-check (?:send-binary|expect binary) [0-9a-f]+',
  '    http-check expect status [0-9,-]+',
  `    server ${V4}:${NUMBER} ${V4}:${NUMBER} id ${NUMBER}(?: weight ${NUMBER})?(?: maxconn ${NUMBER})?(?: send-proxy(?:-v2)?)?(?:${MEMBER_TLS})?(?: (?:proto|alpn) h2)?(?: slowstart ${NUMBER}ms)?(?:${CHECK})?`,
  `    server ${V6}:${NUMBER} \\[${V6}\\]:${NUMBER} id ${NUMBER}(?: weight ${NUMBER})?(?: maxconn ${NUMBER})?(?: send-proxy(?:-v2)?)?(?:${MEMBER_TLS})?(?: (?:proto|alpn) h2)?(?: slowstart ${NUMBER}ms)?(?:${CHECK})?`,
].map((line) => new RegExp(`^${line}$`));

test('Hostile objects give only lines of the model, in a file that HAProxy accepts', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-hostile-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'haproxy.cfg');
  const context = { ...CONTEXT, certificates: folder, boot: bootId() };
  const secrets = NAMESPACES.flatMap((namespace) =>
    ['shop-tls', 'internal-ca'].map((name) => secret(name, WEB, namespace)),
  );
  const configMaps = NAMESPACES.map((namespace) => configMap('clients', namespace));
  const pems = new Map(
    secrets.map(({ pair: { content } }) => [content?.fingerprint, content?.pem.reveal()] as const),
  );
  const files = new CertificateFiles({
    folder,
    fileMode: 0o600,
    folderMode: 0o700,
    pems: {
      certificate: (_, fingerprint) => pems.get(fingerprint),
      authority: () => AUTHORITY,
      crl: () => CRL,
    },
  });
  let listeners = 0;
  let checked = 0;
  let withTls = 0;
  let withClients = 0;
  const batches = fc.tuple(
    fc.array(hostileObjects, { minLength: 50, maxLength: 60 }),
    fc.constantFrom(...SETTINGS),
  );
  const property = fc.asyncProperty(batches, async ([batch, settings]) => {
    const parsed = batch.map((json) => parseObject(json, ''));
    const objects = [...parsed.flatMap((each) => each.objects), ...secrets, ...configMaps];
    const model = translateCluster(clusterOf(objects), settings);
    for (const { problems } of parsed) problems.forEach(isPlain);
    for (const { problems } of model.loadBalancers.values()) problems.forEach(isPlain);
    const text = await rendered(model, context);
    await files.write(model.loadBalancers.values());
    await writeFile(path, text);
    const { exitCode, stderr } = await runCommand(haproxyExecutable, ['-c', '-f', path], { timeout: 30_000 });
    strictEqual(exitCode, 0, stderr);
    for (const loadBalancer of model.loadBalancers.values()) commandsArePlain(loadBalancer);
    listeners += listenersOf(model, isForHaproxy).length;
    checked += listenersOf(model, isOnlyChecked).length;
    withClients += listenersOf(model, ({ tls }) => tls?.clients !== undefined).length;
    withTls += listenersOf(model, ({ tls }) => tls !== undefined).length;
  });
  // Without shrinking and printing, because fast-check's report fails for objects with a "constructor" and hides the
  // first error.
  const { failed, seed, counterexamplePath, errorInstance } = await fc.check(property, {
    numRuns: 80,
    endOnFailure: true,
  });
  t.false(failed, `Seed ${seed}, path ${counterexamplePath}: ${errorInstance}`);
  t.true(listeners > 100 && checked > 10, `Too few come through: ${listeners} and ${checked}`);
  t.true(withTls > 20);
  t.true(withClients > 2);
});

/** The lines about forwarded headers and ids of requests, in which only ranges, a scheme and a port come from objects. */
function forwardedLines(): readonly string[] {
  const template = readFileSync(new URL('../templates/haproxy/http.mustache', import.meta.url), 'utf8');
  const [, part = ''] = /\{\{\^hasProxies\}\}\n(.*?)\{\{\/requestIds\}\}/s.exec(template) ?? [];
  return part
    .split('\n')
    .filter((line) => line.startsWith('    '))
    .map((line) =>
      line
        .replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
        .replace('\\{\\{cidrs\\}\\}', '[0-9a-f.:/]+(?: [0-9a-f.:/]+)*')
        .replace('\\{\\{scheme\\}\\}', 'https?')
        .replace('\\{\\{port\\}\\}', '[0-9]{1,5}'),
    );
}

/** The configuration of a model, after a check of each line. */
async function rendered(model: DesiredState, context: RenderContext): Promise<string> {
  const { chunks, structure } = await configText(inFileOrder(model.loadBalancers), context);
  const text = chunks.join('');
  const global = renderGlobal(context, structure);
  ok(text.startsWith(global));
  const lines = text.slice(global.length).split('\n');
  strictEqual(lines.pop(), '', 'The last line has its end');
  for (const line of lines) {
    ok(
      LINES.some((allowed) => allowed.test(line)),
      `Not a line of ours: ${JSON.stringify(line)}`,
    );
    ok(Buffer.byteLength(line) < 2_048, 'HAProxy takes 2,048 characters in a line');
    ok(line.trim().replaceAll(/'.*'/g, 'quoted').split(' ').length <= 64, 'HAProxy takes 64 words in a line');
  }
  const [served, checked] = [listenersOf(model, isForHaproxy), listenersOf(model, isOnlyChecked)];
  strictEqual(
    lines.length,
    sum([...served, ...checked].map(linesOf)),
    'There are as many lines as the model has',
  );
  const count = (word: string) => lines.filter((line) => line.trimStart().startsWith(`${word} `)).length;
  strictEqual(count('listen'), served.length);
  strictEqual(count('bind'), sum(served.map(({ addresses }) => addresses.length)));
  const serversOf = (each: Listener) => each.pool.members.length * (hasFallback(each) ? 2 : 1);
  const membersOf = ({ pool }: Listener) => pool.members.length;
  strictEqual(count('server'), sum([...served.map(serversOf), ...checked.map(membersOf)]));
  return text;
}

function listenersOf(
  { loadBalancers }: DesiredState,
  isIncluded: (listener: Listener) => boolean,
): readonly Listener[] {
  return [...loadBalancers.values()].flatMap(({ listeners }) => listeners.filter(isIncluded));
}

function linesOf(listener: Listener): number {
  const { addresses, allowedCidrs, mode, tls, connectionLimit, rateLimit, pool } = listener;
  const { trustedProxies, requestIds, compression } = listener;
  // Empty, comment, backend, mode, connect.
  if (isOnlyChecked(listener)) return 5 + pool.members.length + checkLinesOf(pool);
  const { algorithm, persistence, timeouts, members } = pool;
  const isHashed = algorithm === 'source-hash' || persistence > 0;
  return sum([
    // Empty, listen, mode, client, track and reject for the namespace, reject, balance, connect, server, queue; the other form of the section, and what
    // chooses between the two.
    20,
    addresses.length + members.length,
    Math.max(1, Math.ceil(allowedCidrs.length / 40)),
    mode === 'http' ? 13 + (trustedProxies === undefined ? 8 : 26) : 0,
    mode === 'http' && requestIds ? (trustedProxies === undefined ? 3 : 4) : 0,
    mode === 'http' && compression === 'gzip' ? 5 : 0,
    tls === undefined ? 0 : 3,
    tls?.clients !== undefined && mode === 'http' ? 9 : 0,
    tls !== undefined && needsCertificates(tls) ? 2 : 0,
    pool.tls?.authority === undefined ? 0 : 2,
    pool.tls?.authority !== undefined && hasFallback(listener) ? 1 : 0,
    connectionLimit > 0 ? 1 : 0,
    rateLimit > 0 ? 6 : 0,
    isHashed ? 1 : 0,
    // The period stands in the backend before HAProxy 2.8, and behind the rules for connections since.
    persistence > 0 ? 6 : 0,
    logLinesOf(listener),
    errorLinesOf(listener),
    checkLinesOf(pool),
    timeouts.tunnel > 0 ? 1 : 0,
    // Its use, and then empty, backend, mode, balance, connect, server, queue.
    hasFallback(listener) ? 8 + members.length : 0,
    hasFallback(listener) && isHashed ? 1 : 0,
    hasFallback(listener) && timeouts.tunnel > 0 ? 1 : 0,
    hasFallback(listener) && persistence > 0 ? 2 : 0,
  ]);
}

/** The target, the tag, two formats in two forms for versions; options of errors; the host. */
/** What lets the agent see failed requests: a comment, the log, and its form if nothing else is logged. */
function errorLinesOf({ log, pool }: Listener): number {
  if (pool.ejection === undefined) return 0;
  return log === 'none' ? 4 : log === 'all' ? 3 : 2;
}

function logLinesOf({ log, mode, tls }: Listener): number {
  if (log === 'none') return 0;
  // The name in the certificate.
  const names = tls?.clients === undefined ? 0 : 1;
  return names + 8 + (log === 'errors' ? (mode === 'http' ? 2 : 1) : 0) + (mode === 'http' ? 1 : 0);
}

function checkLinesOf({ monitor }: Listener['pool']): number {
  return sum([
    monitor === undefined ? 0 : 2,
    monitor?.type === 'http' || monitor?.type === 'https' ? 3 : 0,
    monitor?.expectedBody ? 1 : 0,
    monitor?.expectedBodyPattern ? 1 : 0,
    monitor?.type === 'grpc' || monitor?.type === 'grpcs' ? 4 : 0,
  ]);
}

/** Messages for people, logs and Events are also lines of bounded length. */
function isPlain({ object, message }: Problem): void {
  for (const text of [object, message]) {
    ok(!/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u.test(text), JSON.stringify(text));
    ok(text.length < 2_000, `${text.length} characters`);
  }
}

const OLDEST = capabilitiesOf(parseVersion('2.6.12'));

/** The commands for the socket if all members and clients of a load balancer are added, and if all are removed. */
function commandsArePlain(loadBalancer: LoadBalancer): void {
  const listeners = loadBalancer.listeners.map((listener) => ({
    ...listener,
    allowedCidrs: [],
    pool: { ...listener.pool, members: [] },
  }));
  const empty = { ...loadBalancer, listeners };
  for (const [before, after] of [
    [empty, loadBalancer],
    [loadBalancer, empty],
  ] as const) {
    const running = Running.booted([before], CONTEXT.aclId);
    for (const command of planLoadBalancer({ key: loadBalancer.key, running, before, after }).commands)
      ok(/^[\x20-\x7e]+$/.test(commandText(command, OLDEST)));
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

test('Names of Object.prototype are ordinary names', (t) => {
  const json = `{
    "apiVersion": "v1", "kind": "Service",
    "metadata": {
      "name": "constructor", "namespace": "tostring",
      "labels": {"__proto__": "x", "constructor": "x"},
      "annotations": {"__proto__": "x", "constructor": "x"}
    },
    "spec": {
      "type": "LoadBalancer", "loadBalancerClass": "headgate.io/agent", "loadBalancerIP": "192.0.2.10",
      "ports": [{"name": "constructor", "port": 80}]
    }
  }`;
  const { objects } = parseObject(JSON.parse(json.replaceAll('"__proto__": "x", ', '')), '');
  const model = translateCluster(clusterOf(objects));
  t.deepEqual([...model.loadBalancers.keys()], ['tostring/constructor']);
  t.deepEqual(parseObject(JSON.parse(json), '').objects, []);
  t.is(Object.getPrototypeOf({}), Object.prototype);
  t.is(({} as Record<string, unknown>).x, undefined);
});
