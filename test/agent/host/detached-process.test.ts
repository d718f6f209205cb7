import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { trimLog } from '../../../agent/host/daemon-output.ts';
import { pidIn, startDetached } from '../../../agent/host/detached-process.ts';
import { runCommand } from '../../../agent/host/run-command.ts';
import { eventually } from '../../support/basics/eventually.ts';

async function folder(t: ExecutionContext<unknown>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'detached-'));
  t.teardown(() => rm(directory, { recursive: true }));
  return directory;
}

const shell = (script: string): readonly [string, readonly string[]] => ['sh', ['-c', script]];

test('startDetached() reports how a program ended, and its messages since the start', async (t) => {
  const log = join(await folder(t), 'log');
  await writeFile(log, 'from before\n');
  const given = { log, env: { ...process.env, WORD: 'well' }, missing: 'HAPROXY_MISSING' } as const;
  const failed = await startDetached(shell('echo $WORD; echo ill >&2; exit 3'), given);
  t.is(await eventually(async () => failed.ended() ?? '', Boolean), 'exit status 3');
  t.is(await failed.said(), 'well\nill\n');
  const killed = await startDetached(shell('kill -9 $$'), given);
  t.is(await eventually(async () => killed.ended() ?? '', Boolean), 'signal SIGKILL');
  t.is(await killed.said(), '');
});

test('startDetached() starts a program in its own session', async (t) => {
  const log = join(await folder(t), 'log');
  const given = { log, env: process.env, missing: 'HAPROXY_MISSING' } as const;
  const { child, said, ended } = await startDetached(shell('cut -d " " -f 6 /proc/$$/stat'), given);
  await eventually(async () => ended() ?? '', Boolean);
  t.is(await said(), `${child.pid}\n`);
});

test('startDetached() fails with the given code if the program does not exist', async (t) => {
  const log = join(await folder(t), 'log');
  const given = { log, env: process.env, missing: 'KEEPALIVED_MISSING' } as const;
  await t.throwsAsync(startDetached(['/there/is/none', []], given), {
    code: 'KEEPALIVED_MISSING',
    message: 'Cannot start "/there/is/none"',
  });
});

test('pidIn() accepts a pid file only if the process has the configuration on its command line', async (t) => {
  const directory = await folder(t);
  const pidFile = join(directory, 'pid');
  t.is(await pidIn(pidFile, process.execPath), undefined);
  for (const text of ['', 'x', '-1', '1', '999999999']) {
    await writeFile(pidFile, text);
    t.is(await pidIn(pidFile, process.execPath), undefined, text);
  }
  await writeFile(pidFile, `${process.pid}\n`);
  t.is(await pidIn(pidFile, join(directory, 'other.cfg')), undefined);
  t.is(await pidIn(pidFile, process.argv[1] ?? ''), process.pid);
});

test('trimLog() empties only a log that is too large', async (t) => {
  const log = join(await folder(t), 'log');
  await trimLog(log, 3);
  await writeFile(log, 'abc');
  await trimLog(log, 3);
  t.is((await stat(log)).size, 3);
  await trimLog(log, 2);
  t.is((await stat(log)).size, 0);
});

test('pidIn() fails instead of reporting a process as gone if there are no descriptors left', async (t) => {
  const pidFile = join(await folder(t), 'pid');
  const config = process.argv[1] ?? '';
  await writeFile(pidFile, `${process.pid}\n`);
  t.is(await pidIn(pidFile, config), process.pid);
  const script = `
    import { openSync } from 'node:fs';
    import { pidIn } from '${new URL('../../../agent/host/detached-process.ts', import.meta.url)}';
    try { for (;;) openSync('/dev/null'); } catch {}
    const said = await pidIn(process.argv[1], process.argv[2]).catch((error) => error.code);
    process.stdout.write(String(said));
  `;
  const limited = ['-c', 'ulimit -n 100; exec "$0" "$@"', process.execPath];
  const words = ['--input-type=module', '--eval', script, pidFile, config];
  const { stdout } = await runCommand('sh', [...limited, ...words], { timeout: 60_000 });
  t.is(stdout, 'FILE_READ');
});
