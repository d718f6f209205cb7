import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { ALLOW_SKIP: _, ...inherited } = process.env;
const requirements = JSON.stringify(join(root, 'test/support/basics/requirements.ts'));

// The tests are serial because each starts AVA, whose timeout must not expire because other tests use the processor.

/** Writes a suite of these files into its own folder, which is removed with the test. */
async function suiteOf(
  t: Pick<ExecutionContext<unknown>, 'teardown'>,
  files: Readonly<Record<string, string>>,
): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'suite-'));
  t.teardown(() => rm(directory, { recursive: true }));
  await mkdir(join(directory, 'test'));
  await symlink(join(root, 'node_modules'), join(directory, 'node_modules'));
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }');
  await writeFile(
    join(directory, 'ava.config.js'),
    "export default { files: ['test/*.test.ts'], extensions: ['ts'], timeout: process.env.SUITE_TIMEOUT ?? '60s', workerThreads: false };",
  );
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, 'test', name), text);
  return directory;
}

/** Runs scripts/test.ts on a suite of these files; returns its exit status, its last line and all that it printed. */
async function runSuite(
  t: Pick<ExecutionContext<unknown>, 'teardown'>,
  files: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
  args: readonly string[] = [],
): Promise<{ code: number; last: string; output: string }> {
  const directory = await suiteOf(t, files);
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      runnerOf(directory, args),
      { env: { ...inherited, ...env } },
      (error, stdout, stderr) => {
        const last = stdout.trimEnd().split('\n').at(-1) ?? '';
        resolve({ code: error === null ? 0 : Number(error.code), last, output: stdout + stderr });
      },
    );
  });
}

function runnerOf(directory: string, args: readonly string[] = []): string[] {
  return [join(root, 'scripts/test.ts'), '--directory', directory, ...args];
}

const good = "import test from 'ava';\ntest('One passes', (t) => t.pass());\n";

const ends = test.macro({
  async exec(
    t,
    files: Record<string, string>,
    env: Record<string, string>,
    expected: { code: number; last: string; prints?: readonly RegExp[] },
    args: readonly string[] = [],
  ) {
    const { code, last, output } = await runSuite(t, files, env, args);
    t.is(last, expected.last, output);
    t.is(code, expected.code);
    for (const line of expected.prints ?? []) t.regex(output, line);
  },
  title: (what) => `The test runner ${what}`,
});

test.serial(
  'succeeds if all tests pass, and names the slowest files first',
  ends,
  {
    'a.test.ts': good,
    'b.test.ts': `${good}test('Two is slow', (t) => new Promise((r) => setTimeout(r, 1_500)).then(() => t.pass()));`,
  },
  {},
  {
    code: 0,
    last: '3 passed, 0 failed, 0 skipped',
    prints: [/^# {3}[1-9]\d*\.\d s {2}test\/b\.test\.ts\n# {3}\d+\.\d s {2}test\/a\.test\.ts$/m],
  },
);
test.serial(
  'names each kind of failure and continues with the next file',
  ends,
  {
    'a.test.ts': `${good}test('Two fails', (t) => t.fail());`,
    'b.test.ts': `import test from 'ava';
test('Three has an error without a place', () => Promise.reject(Object.assign(new Error('far away'), { stack: 'Error: far away' })));
test('Four passes', (t) => t.pass());
`,
    'c.test.ts': "import test from 'ava';\ntest('Five ends its process', () => process.exit(0));",
    'd.test.ts': "throw new Error('Cannot be loaded');",
    'e.test.ts': `${good}test.after(() => { setImmediate(() => { throw new Error('After the last test'); }); return new Promise((r) => setTimeout(r, 500)); });`,
  },
  {},
  {
    code: 1,
    last: '3 passed, 7 failed, 0 skipped',
    prints: [
      /^FAILED: .*Two fails$/m,
      /^FAILED: .*Three has an error without a place$/m,
      /far away/,
      /^FAILED: .*Five ends its process$/m,
      /^FAILED: .*Error: Cannot be loaded$/m,
      /^FAILED: .*Error: After the last test$/m,
    ],
  },
);
test.serial(
  'names the test that hangs, and ends',
  ends,
  { 'a.test.ts': `${good}test('Two hangs', () => new Promise(() => setTimeout(() => undefined, 1e6)));` },
  { SUITE_TIMEOUT: '10s' },
  { code: 1, last: '1 passed, 1 failed, 0 skipped', prints: [/^FAILED: Two hangs$/m] },
);
const hasty = `import { existsSync, writeFileSync } from 'node:fs';
import test from 'ava';
test('Two fails once', (t) => {
  const hasRun = existsSync('run');
  writeFileSync('run', '');
  t.true(hasRun);
});
test('Three passes', (t) => t.pass());
`;
test.serial(
  'runs a file with a failed test once more, alone, and says so',
  ends,
  { 'a.test.ts': good, 'b.test.ts': hasty },
  {},
  {
    code: 0,
    last: '3 passed, 0 failed, 0 skipped',
    prints: [/^These files run once more, alone: test\/b\.test\.ts$/m, /^PASSED ALONE: b › Two fails once$/m],
  },
  ['--again'],
);
test.serial(
  'fails if a test fails twice',
  ends,
  { 'a.test.ts': `${good}test('Two fails', (t) => t.fail());`, 'b.test.ts': hasty },
  {},
  { code: 1, last: '3 passed, 1 failed, 0 skipped', prints: [/^FAILED: a › Two fails$/m] },
  ['--again'],
);
test.serial(
  'runs nothing once more if many files have failed tests',
  ends,
  Object.fromEntries(
    [...'abcdefghi'].map((name) => [`${name}.test.ts`, hasty.replaceAll("'run'", `'${name}'`)]),
  ),
  {},
  { code: 1, last: '9 passed, 9 failed, 0 skipped' },
  ['--again'],
);
test.serial('fails if no test runs', ends, {}, {}, { code: 1, last: '0 passed, 1 failed, 0 skipped' });

const skipping = `${good}test.skip('Two is skipped', (t) => t.pass());`;
const needy = `
  import ava from 'ava';
  import { requires } from ${requirements};
  const test = requires(ava, { programs: ['no-such-program'] });
  const macro = test.macro({ exec: (t) => t.pass(), title: (given) => \`Three \${given}\` });
  test.before(() => { throw new Error('Hooks must not run'); });
  test('One needs it', (t) => t.pass());
  test.serial('Two needs it', (t) => t.pass());
  test('needs it', macro);
`.replaceAll('\n  ', '\n');
test.serial(
  'fails if a test is skipped',
  ends,
  { 'a.test.ts': skipping },
  {},
  { code: 1, last: '1 passed, 0 failed, 1 skipped' },
);
test.serial(
  'fails each test with a requirement that this machine does not meet, and names the requirement',
  ends,
  { 'a.test.ts': needy },
  {},
  {
    code: 1,
    last: '0 passed, 3 failed, 0 skipped',
    prints: [/This machine lacks what the test needs: the program\s+no-such-program/],
  },
);
test.serial(
  'allows skipped tests and unmet requirements with ALLOW_SKIP=1',
  ends,
  { 'a.test.ts': needy, 'b.test.ts': skipping },
  { ALLOW_SKIP: '1' },
  { code: 0, last: '1 passed, 0 failed, 4 skipped', prints: [/^SKIPPED: .*Two is skipped$/m] },
);

test.serial(
  'runs the named files, each once',
  ends,
  { 'a.test.ts': good, 'b.test.ts': good, 'c.test.ts': good },
  {},
  { code: 0, last: '2 passed, 0 failed, 0 skipped' },
  ['test/c.test.ts', 'test/a.test.ts', 'test/a.test.ts'],
);
test.serial(
  'runs nothing if one of the named files does not exist',
  ends,
  { 'a.test.ts': good },
  {},
  {
    code: 2,
    last: '',
    prints: [/^Cannot test "test\/b\.test\.ts": it is neither a test file nor a folder of them$/m],
  },
  ['test/a.test.ts', 'test/b.test.ts'],
);

const starting = (program: string) => `import { execFileSync } from 'node:child_process';
import test from 'ava';
test('One starts ${program}', (t) => t.notThrows(() => execFileSync('${program}', ['-c', 'exit'])));
`;
test.serial(
  'runs only tests without requirements with --fast, and gives them no program but Node and a shell',
  ends,
  { 'a.test.ts': starting('sh'), 'b.test.ts': needy, 'c.test.ts': starting('bash') },
  {},
  { code: 1, last: '1 passed, 1 failed, 0 skipped', prints: [/spawnSync bash ENOENT/] },
  ['--fast'],
);

test.serial(
  "finds no program of npm's packages, which `npm test` puts first into PATH",
  ends,
  {
    'a.test.ts':
      "import test from 'ava';\ntest('One', (t) => t.false((process.env.PATH ?? '').includes('.bin')));",
  },
  { PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH}` },
  { code: 0, last: '1 passed, 0 failed, 0 skipped' },
);

const DAEMON = `import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
const daemon = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
daemon.unref();
writeFileSync(join(tmpdir(), 'file'), '');
writeFileSync('started', JSON.stringify([process.pid, daemon.pid, tmpdir()]));
`;
test.serial(
  'fails if a test leaves a process behind, and ends that process',
  ends,
  { 'a.test.ts': `${DAEMON}test('One leaves a daemon', (t) => t.pass());` },
  {},
  {
    code: 1,
    last: '1 passed, 1 failed, 0 skipped',
    prints: [/^FAILED: A test left a process behind: sleep 600$/m],
  },
);

for (const [signal, whom] of [
  ['SIGINT', 'its process group'],
  ['SIGTERM', 'itself'],
] as const) {
  test.serial(`The test runner ends AVA, tests and their daemons on ${signal} to ${whom}`, async (t) => {
    const directory = await suiteOf(t, {
      'a.test.ts': `${DAEMON}test('One hangs', () => new Promise(() => setTimeout(() => undefined, 1e6)));`,
    });
    const runner = spawn(process.execPath, runnerOf(directory), {
      env: inherited,
      detached: true,
      stdio: 'ignore',
    });
    const ended = once(runner, 'exit');
    const [worker, daemon, temporary] = await startedIn(directory);
    process.kill(whom === 'itself' ? (runner.pid ?? 0) : -(runner.pid ?? 0), signal);
    t.deepEqual(await ended, [null, signal]);
    t.false(await isAlive(worker));
    t.false(await isAlive(daemon));
    await t.throwsAsync(access(temporary), { code: 'ENOENT' });
  });
}

/** The process of the test file, its daemon, and the folder of temporary files. */
async function startedIn(directory: string): Promise<[number, number, string]> {
  for (;;) {
    const text = await readFile(join(directory, 'started'), 'utf8').catch(() => '');
    if (text.endsWith(']')) return JSON.parse(text) as [number, number, string];
    await delay(20);
  }
}

/** A process that has ended and waits for its parent has no command line. */
async function isAlive(pid: number): Promise<boolean> {
  return (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')) !== '';
}
