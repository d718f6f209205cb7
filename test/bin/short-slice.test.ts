import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { shortestSlice, sliceOf } from '../support/measure/slices.ts';

const test = requires(ava, { programs: ['chrt', 'nice', 'perl'] });

const program = fileURLToPath(new URL('../../bin/short-slice', import.meta.url));
const run = promisify(execFile);

test('bin/short-slice becomes the program, with its arguments as they are, and gives back its exit status', async (t) => {
  const { stdout } = await run(program, ['printf', '<%s>', 'a b', '*', '', '$HOME', "'"]);
  t.is(stdout, "<a b><*><><$HOME><'>");
  t.like(await t.throwsAsync(run(program, ['sh', '-c', 'exit 3'])), { code: 3 });
  const child = await started(t, ['sh', '-c', 'echo $$; exec sleep 10']);
  t.is(child.said, `${child.pid}\n`);
});

test('The program has the shortest slice, its own niceness, and so has what it starts', async (t) => {
  for (const niced of [[], ['nice', '-n', '5']]) {
    const child = await started(t, ['sh', '-c', 'sleep 10 & echo $!; wait'], niced);
    for (const pid of [child.pid, Number(child.said)]) {
      t.is(sliceOf(pid), shortestSlice());
      t.is(getPriority(pid), getPriority() + (niced.length > 0 ? 5 : 0));
    }
  }
});

test('A program of another policy keeps it', async (t) => {
  const child = await started(t, ['sh', '-c', 'echo; exec sleep 10'], ['chrt', '--idle', '0']);
  t.regex(await readFile(`/proc/${child.pid}/sched`, 'latin1'), /^policy\s*:\s*5$/m);
});

test('Without Perl the program starts as it would have', async (t) => {
  const tools = await mkdtemp(join(tmpdir(), 'hg-slice-'));
  t.teardown(() => rm(tools, { recursive: true }));
  for (const tool of ['uname', 'sh', 'sleep']) await symlink(`/bin/${tool}`, join(tools, tool));
  const child = await started(t, ['sh', '-c', 'echo; exec sleep 10'], ['env', `PATH=${tools}`]);
  t.is(sliceOf(child.pid), sliceOf('self'));
});

test('A program that is missing is named', async (t) => {
  const error = await t.throwsAsync(run(program, ['/no such program', 'word']));
  t.regex(error.message, /Cannot run \/no such program: No such file or directory\n$/);
});

/** Once it has said something: what it has said, and its id. It ends with the test. */
async function started(
  t: ExecutionContext,
  words: readonly string[],
  within: readonly string[] = [],
): Promise<{ readonly pid: number; readonly said: string }> {
  const [first = program, ...rest] = [...within, program, ...words];
  const child = spawn(first, rest, { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  const { pid = 0 } = child;
  t.teardown(() => process.kill(-pid));
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  return { pid, said: said.toString() };
}
