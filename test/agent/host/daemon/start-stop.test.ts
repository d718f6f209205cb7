import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { type DaemonKind, startDaemon } from '../../../../agent/host/daemon/start.ts';
import { sendSignal, stopDaemon } from '../../../../agent/host/daemon/stop.ts';

const KIND: DaemonKind = { name: 'Daemon', missing: 'KEEPALIVED_MISSING', failed: 'KEEPALIVED_START' };

async function folder(t: ExecutionContext<unknown>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'daemon-'));
  t.teardown(() => rm(directory, { recursive: true }));
  return directory;
}

/** A daemon that serves when its log has the word `ready`. */
function shell(log: string, script: string, timeoutMs = 30_000) {
  return startDaemon(KIND, {
    command: ['sh', ['-c', script, 'the.conf']],
    log,
    find: async () => (await readFile(log, 'utf8')).includes('ready') || undefined,
    timeoutMs,
    excerpt: (messages) => messages.trim(),
  });
}

test('startDaemon() reports how a daemon ended, with its messages since the start', async (t) => {
  const log = join(await folder(t), 'log');
  await writeFile(log, 'from before\n');
  await t.throwsAsync(shell(log, 'echo well; echo ill >&2; exit 3'), {
    code: 'KEEPALIVED_START',
    message: 'Daemon ended with exit status 3\nwell\nill',
  });
  await t.throwsAsync(shell(log, 'kill -9 $$'), { message: 'Daemon ended with signal SIGKILL\n' });
});

test('startDaemon() reports a daemon that does not serve in time, and leaves it running', async (t) => {
  const log = join(await folder(t), 'log');
  const error = await t.throwsAsync(shell(log, 'echo $$; exec sleep 60', 100));
  t.like(error, { code: 'KEEPALIVED_START', retry: 'now' });
  const pid = Number(/^Daemon does not serve after 100 ms\n(\d+)$/.exec(error?.message ?? '')?.[1]);
  t.true(sendSignal(KIND, pid, 'SIGKILL'));
});

test('startDaemon() starts a daemon in its own session', async (t) => {
  const log = join(await folder(t), 'log');
  const { child } = await shell(log, 'cut -d " " -f 6 /proc/$$/stat; echo ready; exec sleep 60');
  t.true(sendSignal(KIND, child.pid ?? 0, 'SIGKILL'));
  t.is(await readFile(log, 'utf8'), `${child.pid}\nready\n`);
});

test('startDaemon() fails with the given code if the program does not exist', async (t) => {
  const log = join(await folder(t), 'log');
  const start = { log, find: async () => true, timeoutMs: 0, excerpt: String };
  await t.throwsAsync(startDaemon(KIND, { ...start, command: ['/there/is/none', []] }), {
    code: 'KEEPALIVED_MISSING',
    message: 'Cannot start "/there/is/none"',
  });
});

test('stopDaemon() sends the next signal if the daemon does not end in time', async (t) => {
  const log = join(await folder(t), 'log');
  const { child } = await shell(log, 'trap "" TERM; echo ready; while :; do sleep 0.1; done');
  const exit = once(child, 'exit');
  await stopDaemon(KIND, child.pid ?? 0, 'the.conf', [
    { signal: 'SIGTERM', waitMs: 50 },
    { signal: 'SIGKILL', waitMs: 30_000 },
  ]);
  t.deepEqual(await exit, [null, 'SIGKILL']);
});

test('stopDaemon() does not signal a process with another configuration', async (t) => {
  await stopDaemon(KIND, process.pid, '/there/is/none', [{ signal: 'SIGKILL', waitMs: 0 }]);
  t.pass();
});

test('sendSignal() gives false for a process that is gone', (t) => {
  t.false(sendSignal(KIND, 2 ** 22 + 1, 'SIGHUP'));
});
