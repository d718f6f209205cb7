import test from 'ava';
import { runCommand } from '../../../agent/host/run-command.ts';

test('runCommand() gives a program its input, and the program then sees its end', async (t) => {
  const { stdout } = await runCommand('sh', ['-c', 'while read -r line; do echo "<$line>"; done'], {
    timeout: 10_000,
    input: 'one\ntwo\n',
  });
  t.is(stdout, '<one>\n<two>\n');
});

test('runCommand() reports a program that ends before it has read its input by its status', async (t) => {
  const { exitCode } = await runCommand('sh', ['-c', 'exit 3'], {
    timeout: 10_000,
    input: 'x'.repeat(1024 * 1024),
  });
  t.is(exitCode, 3);
});
