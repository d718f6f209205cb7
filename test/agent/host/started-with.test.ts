import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import ava, { type ExecutionContext } from 'ava';
import { startedWith } from '../../../agent/host/started-with.ts';
import { eventually } from '../../support/basics/eventually.ts';
import { requires } from '../../support/basics/requirements.ts';

const test = requires(ava, { programs: ['unshare'] });

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
  // Both `unshare` and the process that it starts in a new process namespace have the word.
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
