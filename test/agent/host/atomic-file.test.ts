import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { copyAtomically, writeAtomically } from '../../../agent/host/atomic-file.ts';

const folder = (t: ExecutionContext): string => {
  const path = mkdtempSync(join(tmpdir(), 'headgate-atomic-'));
  t.teardown(() => rmSync(path, { recursive: true }));
  return path;
};

const writers: readonly (readonly [string, (from: string, to: string) => Promise<unknown>])[] = [
  ['writeAtomically()', (_, to) => writeAtomically(to, ['new'])],
  ['copyAtomically()', (from, to) => copyAtomically(from, to)],
];
for (const [name, write] of writers) {
  test(`${name} does not write through a link at the name of its temporary file`, async (t) => {
    const directory = folder(t);
    const [target, from, victim] = ['target', 'from', 'victim'].map((each) => join(directory, each)) as [
      string,
      string,
      string,
    ];
    writeFileSync(from, 'new');
    writeFileSync(victim, 'precious');
    symlinkSync(victim, `${target}.tmp`);
    await write(from, target);
    t.is(readFileSync(victim, 'utf8'), 'precious');
    t.is(readFileSync(target, 'utf8'), 'new');
  });

  test(`${name} does not wait for a reader of a pipe at the name of its temporary file`, async (t) => {
    const directory = folder(t);
    const [target, from] = [join(directory, 'target'), join(directory, 'from')];
    writeFileSync(from, 'new');
    execFileSync('mkfifo', [`${target}.tmp`]);
    await write(from, target);
    t.is(readFileSync(target, 'utf8'), 'new');
  });
}
