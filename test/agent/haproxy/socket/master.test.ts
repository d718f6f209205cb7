import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { link, mkdtemp, rename, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { askWorker, reload, showProc, signalReload } from '../../../../agent/haproxy/socket/master.ts';
import { Runtime } from '../../../../agent/haproxy/socket/runtime.ts';
import { eventually } from '../../../support/basics/eventually.ts';
import { freePort } from '../../../support/basics/free-port.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { type RunningHaproxy, startHaproxy } from '../../../support/haproxy/haproxy.ts';

const test = requires(ava, { haproxy: true });

const GOOD = `
backend one
  server a 127.0.1.1:80
`;
const BROKEN = `
backend one
  bogus keyword
`;

test('showProc() returns the master and its worker', async (t) => {
  const { masterSocket, masterPid, workerPid } = await started(t);
  const { master, workers, oldWorkers } = await showProc(masterSocket);
  t.like(master, { pid: masterPid, reloads: 0, failed: 0 });
  t.like(workers, [{ pid: workerPid, reloads: 0 }]);
  t.deepEqual(oldWorkers, []);
  await t.throwsAsync(showProc(`${masterSocket}.not`), { code: 'RUNTIME_CONNECT' });
});

test('askWorker() reaches a worker by its process, with or without its own socket', async (t) => {
  const { adminSocket, masterSocket, workerPid } = await started(t);
  t.regex(await askWorker(masterSocket, workerPid), /^CurrConns: /m);
  await rm(adminSocket);
  t.regex(await askWorker(masterSocket, workerPid), /^CurrConns: /m);
  await t.throwsAsync(askWorker(masterSocket, 1, { timeoutMs: 1_000 }));
  await t.throwsAsync(askWorker(`${masterSocket}.not`, workerPid), { code: 'RUNTIME_CONNECT' });
});

test('reload() resolves when a new worker serves the new file', async (t) => {
  const haproxy = await started(t);
  await haproxy.write(GOOD.replace('one', 'two'));
  const outcome = await reload(haproxy.masterSocket);
  t.like(outcome, { ok: true });
  t.is(outcome.log !== '', saysHowItWent(haproxy));
  t.not(outcome.workerPid, haproxy.workerPid);
  const runtime = await connected(t, haproxy);
  t.is(outcome.workerPid, runtime.worker.pid);
  t.regex(await runtime.ask('show servers state two'), /127\.0\.1\.1/);
});

test('A connection stays with the old worker after reload()', async (t) => {
  const haproxy = await started(t);
  const runtime = await connected(t, haproxy);
  await reload(haproxy.masterSocket);
  await eventually(
    () => runtime.ask('show info'),
    (info) => info.includes('Stopping: 1'),
  );
  const { oldWorkers } = await showProc(haproxy.masterSocket);
  t.deepEqual(
    oldWorkers.map(({ pid }) => pid),
    [haproxy.workerPid],
  );
  await t.throwsAsync(runtime.ask('show stat', { lane: 'bulk' }), { code: 'RUNTIME_CLOSED' });
  runtime.close();
  await eventually(
    () => showProc(haproxy.masterSocket),
    (processes) => processes.oldWorkers.length === 0,
  );
});

test('reload() of an invalid file fails and keeps the old worker, and a reload of a valid file succeeds', async (t) => {
  const haproxy = await started(t);
  await haproxy.write(BROKEN);
  for (let failed = 1; failed <= 2; failed++) {
    const { ok, workerPid, log } = await reload(haproxy.masterSocket);
    t.like({ ok, workerPid }, { ok: false, workerPid: undefined });
    if (saysHowItWent(haproxy)) t.regex(log, /bogus/);
    const runtime = await connected(t, haproxy);
    t.like(runtime.worker, { pid: haproxy.workerPid, stopping: false });
    runtime.close();
  }
  await rm(haproxy.adminSocket);
  const runtime = await connected(t, haproxy);
  t.like(runtime.worker, { pid: haproxy.workerPid, via: 'master' });
  runtime.close();
  await haproxy.write(GOOD);
  t.like(await reload(haproxy.masterSocket), { ok: true });
});

test('reload() fails when a port is taken by another process', async (t) => {
  const haproxy = await started(t);
  const port = await freePort();
  const other = createServer().listen({ port, host: '127.0.0.1', exclusive: true });
  await once(other, 'listening');
  t.teardown(() => other.close());
  await haproxy.write(`${GOOD}\nfrontend taken\n  bind 127.0.0.1:${port}\n`);
  t.like(await reload(haproxy.masterSocket), { ok: false, workerPid: undefined });
  const runtime = await connected(t, haproxy);
  t.is(runtime.worker.pid, haproxy.workerPid);
});

test('Concurrent reloads all end', async (t) => {
  const haproxy = await started(t);
  const outcomes = await Promise.allSettled([1, 2, 3].map(() => reload(haproxy.masterSocket)));
  t.true(outcomes.some((outcome) => outcome.status === 'fulfilled' && outcome.value.ok));
  const { workers } = await showProc(haproxy.masterSocket);
  t.is(workers.length, 1);
});

test('signalReload() reloads without the master socket file, and makes the file again', async (t) => {
  const haproxy = await started(t);
  await rm(haproxy.masterSocket);
  await t.throwsAsync(reload(haproxy.masterSocket), { code: 'RUNTIME_CONNECT' });
  const { ok, workerPid } = await signalReload(haproxy.masterPid, haproxy.masterSocket);
  t.true(ok);
  t.not(workerPid, haproxy.workerPid);
  t.deepEqual(
    (await showProc(haproxy.masterSocket)).workers.map(({ pid }) => pid),
    [workerPid],
  );
  await haproxy.write(BROKEN);
  t.like(await signalReload(haproxy.masterPid, haproxy.masterSocket), { ok: false });
  await haproxy.write(GOOD);
  t.like(await signalReload(haproxy.masterPid, haproxy.masterSocket), { ok: true });
});

const table = (master: string, worker: string): string =>
  `#<PID> <type> <reloads> <uptime> <version>\n1 master ${master} 0d00h00m01s 2.6.12\n# workers\n${worker}\n\n`;

test('reload() waits for a master that refuses connections while it executes itself again', async (t) => {
  const { masterSocket, workerPid } = await started(t);
  const away = `${masterSocket}.away`;
  await rename(masterSocket, away);
  // A socket file that nobody listens on.
  const dead = createServer().listen(`${masterSocket}.dead`);
  await once(dead, 'listening');
  await link(`${masterSocket}.dead`, masterSocket);
  dead.close();
  await t.throwsAsync(showProc(masterSocket), { code: 'RUNTIME_CONNECT' });
  const reloading = reload(masterSocket);
  await delay(300);
  await rename(away, masterSocket);
  const outcome = await reloading;
  t.true(outcome.ok);
  t.not(outcome.workerPid, workerPid);
});

test('reload() ignores the answer of a master that has not begun to reload', async (t) => {
  const before = table('1 [failed: 1]', '10 worker 1 0d00h00m09s 2.6.12');
  const after = table('2 [failed: 0]', '11 worker 0 0d00h00m00s 2.6.12');
  const socket = await scripted(t, [before, '', before, '', before, after]);
  t.deepEqual(await reload(socket), { ok: true, workerPid: 11, log: '' });
});

test('reload() asks again while another reload is under way', async (t) => {
  const before = table('1 [failed: 0]', '10 worker 0 0d00h00m09s 3.2.0');
  const after = table('3 [failed: 0]', '12 worker 0 0d00h00m00s 3.2.0');
  const busy = 'Success=0\n--\nAnother reload is still in progress.\n\n';
  const socket = await scripted(t, [before, busy, busy, 'Success=1\n--\nLoading success.\n\n', after]);
  t.deepEqual(await reload(socket), { ok: true, workerPid: 12, log: 'Loading success.' });
});

test('reload() rejects if the reload does not end in time', async (t) => {
  const before = table('1 [failed: 0]', '10 worker 0 0d00h00m09s 2.6.12');
  const socket = await scripted(t, [before, '', before]);
  await t.throwsAsync(reload(socket, { timeoutMs: 100 }), {
    code: 'HAPROXY_RELOAD',
    message: /does not finish a reload/,
  });
});

test('reload() rejects if another master runs', async (t) => {
  const before = table('1 [failed: 0]', '10 worker 0 0d00h00m09s 2.6.12');
  const after = before.replace('1 master 1', '2 master 0');
  const socket = await scripted(t, [before, '', after]);
  await t.throwsAsync(reload(socket, { timeoutMs: 20_000 }), {
    code: 'HAPROXY_RELOAD',
    message: /its master has ended, and another master runs/,
  });
});

test('reload() resolves without the master socket file if the new worker serves', async (t) => {
  const before = table('1 [failed: 0]', '10 worker 0 0d00h00m09s 2.6.12');
  const socket = await scripted(t, [before, '', '']);
  // Called if the master has not answered.
  const isServed = (): boolean => {
    rmSync(socket, { force: true });
    return true;
  };
  t.deepEqual(await reload(socket, { isServed }), { ok: true, workerPid: undefined, log: '' });
});

test('reload() waits for the answer of the new worker', async (t) => {
  const before = table('1 [failed: 0]', '10 worker 0 0d00h00m09s 2.6.12');
  const after = table('2 [failed: 0]', '11 worker 0 0d00h00m00s 2.6.12');
  const socket = await scripted(t, [before, '', '', '', after]);
  t.deepEqual(await reload(socket, { isServed: () => true }), { ok: true, workerPid: 11, log: '' });
});

test('signalReload() rejects if there is no such process', async (t) => {
  const haproxy = await started(t);
  await haproxy.stop();
  await t.throwsAsync(signalReload(haproxy.masterPid, haproxy.masterSocket), { code: 'HAPROXY_RELOAD' });
});

test('Runtime.connect() reaches a new worker through the master if the admin socket was deleted', async (t) => {
  const haproxy = await started(t);
  await rm(haproxy.adminSocket);
  const { workerPid } = await reload(haproxy.masterSocket);
  const runtime = await connected(t, haproxy);
  t.like(runtime.worker, { pid: workerPid, via: 'master' });
});

async function started(t: ExecutionContext): Promise<RunningHaproxy> {
  const haproxy = await startHaproxy(GOOD);
  t.teardown(haproxy.stop);
  return haproxy;
}

/** The master of 2.7 and newer answers `reload` with HAProxy's own text. */
function saysHowItWent({ version: { major, minor } }: RunningHaproxy): boolean {
  return major > 2 || minor >= 7;
}

/** A master that sends one answer per connection, the last one forever; its workers answer with their pid. */
async function scripted(t: ExecutionContext, answers: readonly string[]): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-master-'));
  let at = 0;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (line) => {
      const [, worker] = /^@!(\d+) show info/.exec(String(line)) ?? [];
      if (worker !== undefined) socket.end(`Pid: ${worker}\n`);
      else socket.end(answers[Math.min(at++, answers.length - 1)] ?? '');
    });
  }).listen(join(directory, 'socket'));
  await once(server, 'listening');
  t.teardown(async () => {
    server.close();
    await rm(directory, { recursive: true, force: true });
  });
  return join(directory, 'socket');
}

async function connected(
  t: ExecutionContext,
  { adminSocket, masterSocket }: RunningHaproxy,
): Promise<Runtime> {
  const runtime = await Runtime.connect({ socketPath: adminSocket, masterSocketPath: masterSocket });
  t.teardown(() => runtime.close());
  return runtime;
}
