// Every program that a test, a walk, a benchmark or a script starts has a row in scripts/programs.txt, and `make test` installs
// those of its own tests.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { onlyNodeTools } from '../scripts/only-node.ts';
import { type ProgramRow, programTable } from './support/basics/program-table.ts';
import { programsOf } from './support/repository/programs-of.ts';
import { shellCommands } from './support/repository/shell-commands.ts';
import { filesOfMakeTest, programFiles } from './support/repository/started-files.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const table = programTable();
/** Programs that do not exist, in tests of what happens without a program. */
const ABSENT = /^no-such-/;
/** `make test` installs these, or the machine has them, or nothing can install them. */
const OF_MAKE_TEST = ['test', 'run', 'base', 'given', 'optional', 'built'];
/** Targets of `make` that a walk runs, which cannot install anything there. */
const OF_WALKS = ['deb'];
/** What the head of the table explains. */
const KINDS = [
  'run',
  'test',
  'bench',
  'octavia',
  'bgp',
  'conformance',
  'deb',
  'release',
  'test-deb',
  'image',
  'container',
  'bare',
].concat(['base', 'given', 'optional', 'built', 'machine']);

/** Lines of a file and a program, for programs that `accepts` refuses. */
function refused(files: readonly string[], accepts: (row: ProgramRow | undefined) => boolean): string[] {
  return files.flatMap((path) =>
    programsOf(path, readFileSync(join(root, path), 'utf8'))
      .filter((name) => !ABSENT.test(name) && !accepts(table.get(name)))
      .map((name) => `${path} starts ${name}`),
  );
}

test('Every program that a test, a walk, a benchmark or a script starts has a row in the table', (t) => {
  const files = programFiles(root);
  t.true(files.length > 500);
  t.deepEqual(
    refused(files, (row) => row !== undefined),
    [],
  );
  t.deepEqual(
    onlyNodeTools.filter((name) => !table.get(name)?.kinds.has('base')),
    [],
    'Fast tests get only what every Debian has',
  );
});

test('`make test` installs every program that one of its tests starts', (t) => {
  const files = filesOfMakeTest(root);
  t.true(files.includes('test/walks/platform-engineer.ts'));
  t.true(files.includes('scripts/build-deb.ts'), 'A file that a test starts, and does not import');
  const isThere = ({ kinds }: ProgramRow) => OF_MAKE_TEST.some((kind) => kinds.has(kind));
  t.deepEqual(
    refused(files, (row) => row === undefined || isThere(row)),
    [],
  );
  const ofWalks = [...table.values()].filter(({ kinds }) => OF_WALKS.some((kind) => kinds.has(kind)));
  t.deepEqual(
    ofWalks.filter((row) => !isThere(row)),
    [],
  );
});

test('The table has only kinds that its head explains, and each kind of install.sh in the Makefile is one', (t) => {
  for (const { command, kinds } of table.values())
    for (const kind of kinds) t.true(KINDS.includes(kind), `${command}: ${kind}`);
  const makefile = readFileSync(join(root, 'Makefile'), 'utf8');
  const called = [...makefile.matchAll(/scripts\/install\.sh ([\w-]+)/g)].map(([, kind = '']) => kind);
  t.true(called.length > 5);
  for (const kind of called) t.true(kind === 'node' || KINDS.includes(kind), kind);
});

test('programTable() refuses a row without a purpose, and a second row', (t) => {
  t.is(
    programTable('# head\n\nip iproute2 run,test manages addresses\n').get('ip')?.purpose,
    'manages addresses',
  );
  t.throws(() => programTable('ip iproute2 run'), { message: /has no purpose: ip iproute2 run$/ });
  t.throws(() => programTable('ip a run x\nip b run y'), { message: /: ip has two rows$/ });
});

const listed = test.macro({
  exec(t, text: string, expected: readonly string[], path?: string) {
    t.deepEqual(programsOf(path ?? 'a.ts', text), expected);
  },
  title: (given) => `programsOf() lists ${given}`,
});

test(
  'the first argument of a call that starts a program',
  listed,
  "spawn('no-such-a', []); run('no-such-b', x);",
  ['no-such-a', 'no-such-b'],
);
test('the program that a host of a test network runs', listed, "network.run('a', 'no-such-a', '-x');", [
  'no-such-a',
]);
test(
  'the needs of a test file',
  listed,
  "const test = requires(ava, { programs: [...more, 'no-such-a'] });",
  ['no-such-a'],
);
test('a launcher in a list', listed, "const words = ['-w', 'nsenter', '--net'];", ['nsenter']);
test(
  'the commands of a text for a shell, here or in a constant',
  listed,
  "const SCRIPT = `while read -r x; do no-such-a \"$x\"; done`;\nspawn('sh', ['-c', SCRIPT]); run('bash', ['-euc', 'no-such-b a']);",
  ['bash', 'no-such-a', 'no-such-b', 'sh'],
);
test('the commands of a reader of a document', listed, 'await reader.run(`curl "$url" | no-such-c .`);', [
  'curl',
  'no-such-c',
]);
test('the commands of a script', listed, '#!/bin/sh\nset -e\nno-such-a x', ['no-such-a'], 'a.sh');
test('nothing of a comment', listed, "// spawn('no-such-a', [])\n", []);

const commands = test.macro({
  exec(t, text: string, expected: readonly string[]) {
    t.deepEqual(shellCommands(text), expected);
  },
  title: (given) => `shellCommands() reads ${given}`,
});

test('lists, pipes and conditions', commands, 'a1 && b1 | c1; if d1; then e1 & fi\nX=1 Y=2 f1 "$x"', [
  'a1',
  'b1',
  'c1',
  'd1',
  'e1',
  'f1',
]);
test('substitutions in quotes', commands, `x=$(a1 "$(b1)") y=\`c1\` echo '$(d1)' $((e1 + 1)) \${f1:-x}`, [
  'a1',
  'b1',
  'c1',
]);
test('functions, builtins and comments', commands, 'f() { a1; }\nf; read -r x # b1\ncd /; exec c1', [
  'a1',
  'c1',
]);
test('`case`', commands, 'case $1 in a1 | b1) c1 ;; *) d1 ;; esac; e1', ['c1', 'd1', 'e1']);
test('here-documents and redirections', commands, 'a1 <<END >b1 2>&1\nc1\nEND\nd1', ['a1', 'd1']);
test('words after sudo, env and exec', commands, 'sudo -n a1; env X=1 b1; exec c1; nice d1', [
  'sudo',
  'a1',
  'env',
  'b1',
  'c1',
  'nice',
  'd1',
]);
