import { execFile } from 'node:child_process';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';

const root = fileURLToPath(new URL('../..', import.meta.url));
const requirements = JSON.stringify(join(root, 'test/support/basics/requirements.ts'));

// One after the other: each starts AVA, and a suite's time without progress must not pass while others have the processor.

/** Runs the project's test runner on a suite of these files; gives its exit status and its last line. */
async function runSuite(
  files: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
): Promise<{ code: number; last: string; output: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'suite-'));
  try {
    await symlink(join(root, 'node_modules'), join(directory, 'node_modules'));
    await writeFile(join(directory, 'package.json'), '{ "type": "module" }');
    await writeFile(
      join(directory, 'ava.config.js'),
      "export default { files: ['*.test.ts'], extensions: ['ts'], timeout: '10s', workerThreads: false };",
    );
    for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
    const { ALLOW_SKIP: _, ...inherited } = process.env;
    const args = [join(root, 'scripts/test.ts'), '--directory', directory];
    return await new Promise((resolve) => {
      execFile(process.execPath, args, { env: { ...inherited, ...env } }, (error, stdout, stderr) => {
        const last = stdout.trimEnd().split('\n').at(-1) ?? '';
        resolve({ code: error === null ? 0 : Number(error.code), last, output: stdout + stderr });
      });
    });
  } finally {
    await rm(directory, { recursive: true });
  }
}

const good = "import test from 'ava';\ntest('One passes', (t) => t.pass());\n";

const ends = test.macro({
  async exec(
    t,
    files: Record<string, string>,
    env: Record<string, string>,
    expected: { code: number; last: string; says?: RegExp },
  ) {
    const { code, last, output } = await runSuite(files, env);
    t.is(last, expected.last, output);
    t.is(code, expected.code);
    t.regex(output, expected.says ?? /./);
  },
  title: (what) => `The test runner ${what}`,
});

test.serial(
  'is content with a suite that passes',
  ends,
  { 'a.test.ts': good },
  {},
  { code: 0, last: '1 passed, 0 failed, 0 skipped' },
);
test.serial(
  'names the files that took longest',
  ends,
  {
    'a.test.ts': good,
    'b.test.ts': `${good}test('Two is slow', (t) => new Promise((r) => setTimeout(r, 1_500)).then(() => t.pass()));`,
  },
  {},
  {
    code: 0,
    last: '3 passed, 0 failed, 0 skipped',
    says: /^# {3}[1-9]\d*\.\d s {2}b\.test\.ts\n# {3}\d+\.\d s {2}a\.test\.ts$/m,
  },
);
test.serial(
  'fails with a test that fails',
  ends,
  { 'a.test.ts': `${good}test('Two fails', (t) => t.fail());` },
  {},
  { code: 1, last: '1 passed, 1 failed, 0 skipped', says: /^FAILED: Two fails$/m },
);
test.serial(
  'names the test whose error says no place, and goes on',
  ends,
  {
    'a.test.ts': `import test from 'ava';
test('One fails', () => Promise.reject(Object.assign(new Error('far away'), { stack: 'Error: far away' })));
test('Two passes', (t) => t.pass());
`,
  },
  {},
  { code: 1, last: '1 passed, 1 failed, 0 skipped', says: /far away/ },
);
test.serial(
  'names the test that hangs, and ends',
  ends,
  { 'a.test.ts': `${good}test('Two hangs', () => new Promise(() => setTimeout(() => undefined, 1e6)));` },
  {},
  { code: 1, last: '1 passed, 1 failed, 0 skipped', says: /^FAILED: Two hangs$/m },
);
test.serial(
  'names the test that ends its process',
  ends,
  { 'a.test.ts': "import test from 'ava';\ntest('One leaves', () => process.exit(0));" },
  {},
  { code: 1, last: '0 passed, 1 failed, 0 skipped', says: /^FAILED: One leaves$/m },
);
test.serial(
  'fails with a file that cannot be loaded',
  ends,
  { 'a.test.ts': good, 'b.test.ts': "throw new Error('Broken');" },
  {},
  { code: 1, last: '1 passed, 2 failed, 0 skipped', says: /^FAILED: Error: Broken$/m },
);
test.serial(
  'fails with an error after the last test',
  ends,
  {
    'a.test.ts': `${good}test.after(() => { setImmediate(() => { throw new Error('Late'); }); return new Promise((r) => setTimeout(r, 500)); });`,
  },
  {},
  { code: 1, last: '1 passed, 2 failed, 0 skipped', says: /^FAILED: Error: Late$/m },
);
test.serial('fails where no test runs', ends, {}, {}, { code: 1, last: '0 passed, 1 failed, 0 skipped' });

const skipping = `${good}test.skip('Two is skipped', (t) => t.pass());`;
test.serial(
  'fails with a test that is skipped',
  ends,
  { 'a.test.ts': skipping },
  {},
  { code: 1, last: '1 passed, 0 failed, 1 skipped' },
);
test.serial(
  'allows skipped tests where that is asked for',
  ends,
  { 'a.test.ts': skipping },
  { ALLOW_SKIP: '1' },
  { code: 0, last: '1 passed, 0 failed, 1 skipped', says: /^SKIPPED: Two is skipped$/m },
);

const needy = `
  import ava from 'ava';
  import { requires } from ${requirements};
  const test = requires(ava, { programs: ['no-such-program'] });
  const macro = test.macro({ exec: (t) => t.pass(), title: (given) => \`Three \${given}\` });
  test.before(() => { throw new Error('Hooks must not run'); });
  test('One needs it', (t) => t.pass());
  test.serial('Two needs it', (t) => t.pass());
  test('needs it', macro);
`;
test.serial(
  'fails with tests whose needs this machine does not meet, and says what is missing',
  ends,
  { 'a.test.ts': needy },
  {},
  {
    code: 1,
    last: '0 passed, 3 failed, 0 skipped',
    says: /This machine lacks what the test needs: the program\s+no-such-program/,
  },
);
test.serial(
  'skips such tests where that is allowed',
  ends,
  { 'a.test.ts': needy, 'b.test.ts': good },
  { ALLOW_SKIP: '1' },
  { code: 0, last: '1 passed, 0 failed, 3 skipped' },
);
