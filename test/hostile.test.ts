// No hostile object stops the agent, adds a line to the configuration that the model does not have, or makes HAProxy
// refuse the configuration.

import { ok, strictEqual } from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava from 'ava';
import fc from 'fast-check';
import { AclIds } from '../agent/haproxy/config/acl-ids.ts';
import { configText, inFileOrder } from '../agent/haproxy/config/config-text.ts';
import { hasFallback, isForHaproxy } from '../agent/haproxy/config/listener-config.ts';
import { renderGlobal } from '../agent/haproxy/config/render.ts';
import { renderContext } from '../agent/haproxy/config/render-context.ts';
import { planLoadBalancer } from '../agent/haproxy/plan.ts';
import { Running } from '../agent/haproxy/running.ts';
import { commandText } from '../agent/haproxy/socket/command-text.ts';
import { capabilitiesOf, parseVersion } from '../agent/haproxy/socket/version.ts';
import { runCommand } from '../agent/host/run-command.ts';
import { parseObject } from '../agent/kubernetes/parse-object.ts';
import type { DesiredState } from '../agent/model/desired-state.ts';
import type { Listener, LoadBalancer, Problem } from '../agent/model/load-balancer.ts';
import { requires } from './support/basics/requirements.ts';
import { haproxyExecutable } from './support/haproxy/haproxy.ts';
import { clusterOf } from './support/values/build.ts';
import { hostileObjects } from './support/values/hostile.ts';
import { translateCluster } from './support/values/translated.ts';

const test = requires(ava, { haproxy: true });

const CONTEXT = renderContext(
  {
    maxConnectionsPerNamespace: 0,
    threads: 1,
    hardStopAfter: 1_000,
    maxOldWorkers: 4,
    haproxyUser: '',
    haproxyGroup: '',
  },
  {
    fileMode: 0o600,
    socketMode: '600',
    config: '',
    adminSocket: '/run/headgate/admin.sock',
    masterSocket: '',
    peersSocket: '/run/headgate/peers.sock',
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

const NAME = String.raw`[a-z0-9-]{1,63}:[a-z0-9-]{1,63}:tcp:\d{1,5}:v[46]`;
const V4 = String.raw`\d{1,3}(?:\.\d{1,3}){3}`;
const V6 = '[0-9a-f:]{2,39}';
const NUMBER = String.raw`\d{1,10}`;
const HOST = '[A-Za-z0-9.-]{1,253}';
const CHECK = ` check inter ${NUMBER}ms rise ${NUMBER} fall ${NUMBER}(?: port ${NUMBER})?(?: check-send-proxy)?(?: check-ssl verify none(?: check-alpn h2)?(?: check-sni ${HOST})?)?`;

/** Every line that the sections of a load balancer can have. */
const LINES = [
  '',
  String.raw`\.if version_before\(2\.8\)`,
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
  `    bind (?:${V4}:${NUMBER}|\\[${V6}\\]:${NUMBER} v6only)(?: accept-proxy)?`,
  `    acl allowed src -u ${NUMBER}(?: ${V4}/${NUMBER}){1,40}`,
  `    acl allowed src -u ${NUMBER}(?: ${V6}/${NUMBER}){1,40}`,
  String.raw`    tcp-request connection track-sc1 str\([a-z0-9-]{1,63}\) table headgate:namespaces`,
  String.raw`    tcp-request connection reject if \{ sc1_conn_cur,sub\(proc\.namespace_connections\) gt 0 \}`,
  '    tcp-request (?:connection|session) reject unless allowed',
  `    tcp-request (?:connection|session) track-sc0 src table ${NAME}:rate`,
  `    tcp-request (?:connection|session) reject if { src_conn_rate\\(${NAME}:rate\\) ge ${NUMBER} }`,
  '    option (?:forwardfor|httpchk|tcp-check)',
  String.raw`    balance (?:roundrobin|leastconn|source|random\(2\))`,
  '    hash-type consistent',
  '    load-server-state-from-file global',
  String.raw`    stick-table type ip(?:v6)? size 100k expire ${NUMBER}s(?: peers headgate| store conn_rate\((?:500|1000)ms\))`,
  `    stick on src(?: table ${NAME})?`,
  String.raw`    http-check send meth (?:GET|HEAD|OPTIONS) uri /[A-Za-z0-9\-._~/?&=:@+]*(?: ver HTTP/1\.1 hdr Host [A-Za-z0-9.-]{1,253}(?::\d{1,5})?)?`,
  "    http-check expect r?string '[^'\\x00-\\x1f\\x7f-\\uffff]{1,200}'",
  '    tcp-check connect default linger',
  '    tcp-check (?:send-binary|expect binary) [0-9a-f]+',
  '    http-check expect status [0-9,-]+',
  `    server ${V4}:${NUMBER} ${V4}:${NUMBER} id ${NUMBER}(?: weight ${NUMBER})?(?: maxconn ${NUMBER})?(?: send-proxy(?:-v2)?)?(?:${CHECK})?`,
  `    server ${V6}:${NUMBER} \\[${V6}\\]:${NUMBER} id ${NUMBER}(?: weight ${NUMBER})?(?: maxconn ${NUMBER})?(?: send-proxy(?:-v2)?)?(?:${CHECK})?`,
].map((line) => new RegExp(`^${line}$`));

test('Hostile objects give only lines of the model, in a file that HAProxy accepts', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-hostile-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'haproxy.cfg');
  let listeners = 0;
  const batches = fc.tuple(
    fc.array(hostileObjects, { minLength: 50, maxLength: 60 }),
    fc.constantFrom(...SETTINGS),
  );
  const property = fc.asyncProperty(batches, async ([batch, settings]) => {
    const parsed = batch.map((json) => parseObject(json, ''));
    const model = translateCluster(clusterOf(parsed.flatMap(({ objects }) => objects)), settings);
    for (const { problems } of parsed) problems.forEach(isPlain);
    for (const { problems } of model.loadBalancers.values()) problems.forEach(isPlain);
    const text = await rendered(model);
    await writeFile(path, text);
    const { exitCode, stderr } = await runCommand(haproxyExecutable, ['-c', '-f', path], { timeout: 30_000 });
    strictEqual(exitCode, 0, stderr);
    for (const loadBalancer of model.loadBalancers.values()) commandsArePlain(loadBalancer);
    listeners += servedOf(model).length;
  });
  // Without shrinking and printing, because fast-check's report fails for objects with a "constructor" and hides the
  // first error.
  const { failed, seed, counterexamplePath, errorInstance } = await fc.check(property, {
    numRuns: 40,
    endOnFailure: true,
  });
  t.false(failed, `Seed ${seed}, path ${counterexamplePath}: ${errorInstance}`);
  t.true(listeners > 200, 'Enough of them come through to be worth looking at');
});

/** The configuration of a model, after a check of each line. */
async function rendered(model: DesiredState): Promise<string> {
  const { chunks, structure } = await configText(inFileOrder(model.loadBalancers), CONTEXT);
  const text = chunks.join('');
  const global = renderGlobal(CONTEXT, structure);
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
  strictEqual(lines.length, sum(servedOf(model).map(linesOf)), 'There are as many lines as the model has');
  const count = (word: string) => lines.filter((line) => line.trimStart().startsWith(`${word} `)).length;
  strictEqual(count('listen'), servedOf(model).length);
  strictEqual(count('bind'), sum(servedOf(model).map(({ addresses }) => addresses.length)));
  const serversOf = ({ pool }: Listener) => pool.members.length * (hasFallback(pool) ? 2 : 1);
  strictEqual(count('server'), sum(servedOf(model).map(serversOf)));
  return text;
}

function servedOf({ loadBalancers }: DesiredState): readonly Listener[] {
  return [...loadBalancers.values()].flatMap(({ listeners }) => listeners.filter(isForHaproxy));
}

function linesOf({ addresses, allowedCidrs, mode, connectionLimit, rateLimit, pool }: Listener): number {
  const { algorithm, persistence, monitor, timeouts, members } = pool;
  const isHashed = algorithm === 'source-hash' || persistence > 0;
  return sum([
    // Empty, listen, mode, client, track and reject for the namespace, reject, balance, connect, server, queue; the other form of the section, and what
    // chooses between the two.
    20,
    addresses.length + members.length,
    Math.max(1, Math.ceil(allowedCidrs.length / 40)),
    mode === 'http' ? 3 : 0,
    connectionLimit > 0 ? 1 : 0,
    rateLimit > 0 ? 5 : 0,
    isHashed ? 1 : 0,
    persistence > 0 ? 2 : 0,
    monitor === undefined ? 0 : 2,
    monitor?.type === 'http' || monitor?.type === 'https' ? 3 : 0,
    monitor?.expectedBody ? 1 : 0,
    monitor?.expectedBodyPattern ? 1 : 0,
    monitor?.type === 'grpc' || monitor?.type === 'grpcs' ? 4 : 0,
    timeouts.tunnel > 0 ? 1 : 0,
    // Its use, and then empty, backend, mode, balance, connect, server, queue.
    hasFallback(pool) ? 8 + members.length : 0,
    hasFallback(pool) && isHashed ? 1 : 0,
    hasFallback(pool) && timeouts.tunnel > 0 ? 1 : 0,
    hasFallback(pool) && persistence > 0 ? 1 : 0,
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
    for (const command of planLoadBalancer(loadBalancer.key, running, before, after).commands)
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
