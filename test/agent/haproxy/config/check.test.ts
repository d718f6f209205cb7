import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { isolate } from '../../../../agent/base/isolate.ts';
import {
  type CheckResult,
  checkConfig,
  readAlerts,
  splitBindFailures,
} from '../../../../agent/haproxy/config/check.ts';
import { runCommand } from '../../../../agent/host/run-command.ts';
import { isHarmlessPattern } from '../../../../agent/translate/annotations/body-pattern.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { haproxyExecutable } from '../../../support/haproxy/haproxy.ts';

const test = requires(ava, { haproxy: true });

const GOOD = `global
    maxconn 100

defaults
    mode tcp
    timeout connect 1s
    timeout client 1s
    timeout server 1s

listen default:web:tcp:80:v4
    bind 127.0.0.1:20080
    server 10.0.0.1:80 10.0.0.1:80 id 5

listen default:api:tcp:81:v6
    bind [::1]:20081 v6only
    server 10.0.0.1:80 10.0.0.1:80 id 5
`;

/** The result of HAProxy's own check. */
async function checked(t: ExecutionContext, text: string): Promise<CheckResult> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-check-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'haproxy.cfg');
  await writeFile(path, text);
  return checkConfig(haproxyExecutable, path, text);
}

test('checkConfig() accepts a file that HAProxy accepts', async (t) => {
  t.deepEqual(await checked(t, GOOD), { ok: true, alerts: [], listeners: new Set() });
});

test('HAProxy accepts every class that a body pattern may have', async (t) => {
  const characters = [...'^-.:=ab'];
  let inner = [''];
  const patterns: string[] = [];
  for (let length = 1; length <= 4; length++) {
    inner = inner.flatMap((text) => characters.map((character) => text + character));
    patterns.push(...inner.map((text) => `[${text}]`).filter(isHarmlessPattern));
  }
  t.true(patterns.length > 1_000);
  const checks = patterns.map((pattern) => `    http-check expect rstring '${pattern}'\n`).join('');
  const { alerts } = await checked(t, `${GOOD}\nbackend patterns\n    option httpchk\n${checks}`);
  t.deepEqual(alerts, []);
});

test('An unknown line is attributed to its listener', async (t) => {
  const { ok, alerts, listeners } = await checked(
    t,
    GOOD.replace('    bind [::1]', '    nonsense yes\n    bind [::1]'),
  );
  t.false(ok);
  t.deepEqual([...listeners], ['default:api:tcp:81:v6']);
  t.regex(alerts[0] ?? '', /unknown keyword 'nonsense' in 'listen' section/);
  t.notRegex(alerts.join('\n'), /^\[ALERT\]/m);
});

test('A refused value is attributed to its listener', async (t) => {
  const { listeners } = await checked(t, GOOD.replace('10.0.0.1:80 id 5', '10.0.0.1:80 id 5 weight 257'));
  t.deepEqual([...listeners], ['default:web:tcp:80:v4']);
});

test('An alert without a line is attributed by the name in it', async (t) => {
  const { ok, listeners } = await checked(
    t,
    GOOD.replace('127.0.0.1:20080', '127.0.0.1:20080\n    use_backend nowhere'),
  );
  t.false(ok);
  t.deepEqual([...listeners], ['default:web:tcp:80:v4']);
});

test('checkConfig() finds two listeners at fault', async (t) => {
  const { listeners } = await checked(t, GOOD.replaceAll(' id 5', ' id 0'));
  t.deepEqual([...listeners].sort(), ['default:api:tcp:81:v6', 'default:web:tcp:80:v4']);
});

test('A fault in the global section is attributed to no listener', async (t) => {
  const { ok, alerts, listeners } = await checked(t, GOOD.replace('maxconn 100', 'nonsense yes'));
  t.false(ok);
  t.deepEqual([...listeners], []);
  t.true(alerts.length > 0);
});

test('A fault in the table of a rate limit is attributed to its listener', async (t) => {
  const text = `${GOOD}\nbackend default:web:tcp:80:v4:rate\n    stick-table type nonsense\n`;
  t.deepEqual([...(await checked(t, text)).listeners], ['default:web:tcp:80:v4']);
});

test('Warnings and notices are no alerts', (t) => {
  const output = `[NOTICE]   (1) : haproxy version is 2.6.12
[WARNING]  (1) : config : parsing [haproxy.cfg:12] : default:web:tcp:80:v4 is deprecated
[ALERT]    (1) : config : Fatal errors found in configuration.
`;
  t.deepEqual(readAlerts(output, GOOD), {
    ok: false,
    alerts: ['config : Fatal errors found in configuration.'],
    listeners: new Set(),
  });
});

test('splitBindFailures() separates addresses that cannot be bound from the other output', async (t) => {
  const taken: { readonly host: string; readonly port: number }[] = [];
  for (const host of ['127.0.0.1', '::1']) {
    const server = createServer();
    server.listen(0, host);
    await once(server, 'listening');
    t.teardown(() => server.close());
    taken.push({ host, port: (server.address() as AddressInfo).port });
  }
  const [v4, v6] = taken.map(({ port }) => port);
  const text = GOOD.replace('127.0.0.1:20080', `127.0.0.1:${v4}`).replace('[::1]:20081', `[::1]:${v6}`);
  const folder = await mkdtemp(join(tmpdir(), 'headgate-check-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'haproxy.cfg');
  await writeFile(path, text);
  const { exitCode, stderr } = await runCommand(haproxyExecutable, ['-db', '-f', path], { timeout: 30_000 });
  t.not(exitCode, 0);
  const { failures, rest } = splitBindFailures(stderr);
  t.deepEqual(failures.map(({ address, port }) => `${address} ${port}`).sort(), [
    `127.0.0.1 ${v4}`,
    `::1 ${v6}`,
  ]);
  t.true(failures.every(({ reason }) => reason !== ''));
  t.deepEqual([...readAlerts(rest, text).listeners], []);
  t.deepEqual([...readAlerts(stderr, text).listeners].sort(), [
    'default:api:tcp:81:v6',
    'default:web:tcp:80:v4',
  ]);
});

/** As HAProxy 2.6 writes it on a kernel that refuses such a socket. */
function withoutSocket(words: string): string {
  return `[ALERT]    (7) : Binding [haproxy.cfg:12] for proxy default:api:tcp:81:v6: cannot create receiving socket (${words}) for [::1:20081]
[ALERT]    (7) : [haproxy.main()] Some protocols failed to start their listeners! Exiting.`;
}

test('splitBindFailures() finds the address for which a kernel without IPv6 has no socket', (t) => {
  for (const words of ['Address family not supported by protocol', 'Protocol not supported']) {
    const { failures, rest } = splitBindFailures(withoutSocket(words));
    t.deepEqual(failures, [{ address: '::1', port: 20_081, reason: 'this host has no IPv6' }]);
    t.deepEqual([...readAlerts(rest, GOOD).listeners], []);
  }
});

test('splitBindFailures() blames no address and no listener if there is no descriptor or memory for a socket', (t) => {
  for (const words of ['Too many open files', 'No buffer space available']) {
    const { failures, rest } = splitBindFailures(withoutSocket(words));
    t.deepEqual(failures, []);
    t.deepEqual([...readAlerts(rest, GOOD).listeners], []);
  }
});

test('A line that the text does not have is attributed to no listener', (t) => {
  const output = '[ALERT] (7) : config : parsing [haproxy.cfg:0] : nonsense';
  t.deepEqual([...readAlerts(output, GOOD).listeners], []);
});

test('A program that cannot be started is an error', async (t) => {
  await t.throwsAsync(checkConfig('/nonexistent/haproxy', '/dev/null', ''), { code: 'COMMAND_FAILED' });
});

/** Isolates items that are refused alone, and counts the checks. */
async function isolated(count: number, bad: readonly number[]) {
  let checks = 0;
  const suspects = Array.from({ length: count }, (_, at) => at);
  const refused = await isolate(suspects, async (some) => {
    checks++;
    return !some.some((each) => bad.includes(each));
  });
  return { refused, checks };
}

test('isolate() needs one check if all are accepted', async (t) => {
  t.deepEqual(await isolated(1000, []), { refused: [], checks: 1 });
});

test('isolate() of an empty list checks nothing', async (t) => {
  t.deepEqual(await isolated(0, []), { refused: [], checks: 0 });
});

test('isolate() finds one of a thousand in few checks', async (t) => {
  for (const bad of [0, 1, 499, 500, 998, 999]) {
    const { refused, checks } = await isolated(1000, [bad]);
    t.deepEqual(refused, [bad]);
    t.true(checks <= 22, `${checks} checks`);
  }
});

test('isolate() finds exactly the items at fault', async (t) => {
  const bad = fc.uniqueArray(fc.nat(49), { maxLength: 10 });
  const property = fc.asyncProperty(bad, async (list) => {
    const { refused } = await isolated(50, list);
    return JSON.stringify(refused) === JSON.stringify([...list].sort((a, b) => a - b));
  });
  await t.notThrowsAsync(() => fc.assert(property));
});

test('isolate() keeps one of two items that exclude each other', async (t) => {
  const refused = await isolate(
    ['a', 'b', 'c', 'd'],
    async (some) => !(some.includes('b') && some.includes('d')),
  );
  t.deepEqual(refused, ['d']);
});

test('The items that isolate() keeps are accepted together', async (t) => {
  const pairs = fc.array(fc.tuple(fc.nat(19), fc.nat(19)), { maxLength: 12 });
  const property = fc.asyncProperty(pairs, async (excluding) => {
    const suspects = Array.from({ length: 20 }, (_, at) => at);
    const isAccepted = async (some: readonly number[]) =>
      !excluding.some(([a, b]) => some.includes(a) && some.includes(b));
    const refused = await isolate(suspects, isAccepted);
    return isAccepted(suspects.filter((each) => !refused.includes(each)));
  });
  await t.notThrowsAsync(() => fc.assert(property));
});

test('isolate() rejects if a check rejects', async (t) => {
  await t.throwsAsync(
    isolate([1], async () => {
      throw new Error('HAProxy cannot be started');
    }),
    { message: 'HAProxy cannot be started' },
  );
});
