import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { pidIn, startedWith } from '../../../../agent/host/daemon/find.ts';
import { runCommand } from '../../../../agent/host/run-command.ts';
import { eventually } from '../../../support/basics/eventually.ts';
import { requires } from '../../../support/basics/requirements.ts';

const test = requires(ava, { programs: ['unshare'] });

async function folder(t: ExecutionContext<unknown>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'find-'));
  t.teardown(() => rm(directory, { recursive: true }));
  return directory;
}

/** A process with `word` on its command line until the end of the test; `within`: a command that starts it. */
function sleeper(t: ExecutionContext<unknown>, word: string, within: readonly string[] = []): ChildProcess {
  const [program = '', ...words] = [...within, process.execPath, '-e', 'setTimeout(() => {}, 60_000)', word];
  const child = spawn(program, words, { stdio: 'ignore' });
  t.teardown(() => child.kill('SIGKILL'));
  return child;
}

test('startedWith() finds a process by its words, with its parent', async (t) => {
  const word = randomUUID();
  const { pid } = sleeper(t, word);
  const matches = (words: readonly string[]): boolean => words.includes(word);
  const found = await eventually(
    () => startedWith(matches),
    ({ size }) => size > 0,
  );
  t.deepEqual([...found], [[pid, process.pid]]);
});

test('startedWith() leaves out a process of a container with the same words', async (t) => {
  const word = randomUUID();
  // Its own words, those of `unshare`, name the same: so does what it starts, which is alone in a process namespace.
  const outside = ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--kill-child=KILL'];
  const { pid } = sleeper(t, word, outside);
  const seen: string[] = [];
  const found = await eventually(
    async () => {
      seen.length = 0;
      return startedWith((words) => {
        if (words.includes(word)) seen.push(words[0] ?? '');
        return words.includes(word);
      });
    },
    () => seen.length === 2,
  );
  t.deepEqual(seen.sort(), [process.execPath, 'unshare'].sort());
  t.deepEqual([...found.keys()], [pid]);
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

test('pidIn() fails instead of reporting a process as gone if there are no descriptors left', async (t) => {
  const pidFile = join(await folder(t), 'pid');
  const config = process.argv[1] ?? '';
  await writeFile(pidFile, `${process.pid}\n`);
  t.is(await pidIn(pidFile, config), process.pid);
  const script = `
    import { openSync } from 'node:fs';
    import { pidIn } from '${new URL('../../../../agent/host/daemon/find.ts', import.meta.url)}';
    try { for (;;) openSync('/dev/null'); } catch {}
    const outcome = await pidIn(process.argv[1], process.argv[2]).catch((error) => error.code);
    process.stdout.write(String(outcome));
  `;
  const limited = ['-c', 'ulimit -n 100; exec "$0" "$@"', process.execPath];
  const words = ['--input-type=module', '--eval', script, pidFile, config];
  const { stdout } = await runCommand('sh', [...limited, ...words], { timeout: 60_000 });
  t.is(stdout, 'FILE_READ');
});
