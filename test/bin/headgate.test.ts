import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, copyFile, mkdir, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import anyTest, { type TestFn } from 'ava';

const program = fileURLToPath(new URL('../../bin/headgate', import.meta.url));

// Prints its pid and arguments; with "wait" it runs until a signal.
const MAIN = `
  if (process.argv[2] === 'exit') process.exitCode = Number(process.argv[3]);
  if (process.argv[2] === 'wait') {
    const timer = setInterval(() => undefined, 1000);
    process.once('SIGTERM', () => (console.log('SIGTERM'), clearInterval(timer)));
  }
  const what: object = { pid: process.pid, argv: process.argv.slice(2) };
  console.log(JSON.stringify(what));
`;

const test = anyTest as TestFn<{ directory: string; app: string }>;

test.beforeEach(async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'bin-'));
  const app = join(directory, 'my app');
  for (const part of ['bin', 'agent', 'node_modules/node/bin'])
    await mkdir(join(app, part), { recursive: true });
  await copyFile(program, join(app, 'bin/headgate'));
  await writeFile(join(app, 'package.json'), '{ "type": "module" }');
  await writeFile(join(app, 'agent/main.ts'), MAIN);
  await symlink(process.execPath, join(app, 'node_modules/node/bin/node'));
  t.context = { directory, app };
});

test.afterEach.always(async (t) => {
  await rm(t.context.directory, { recursive: true });
});

test('bin/headgate runs the agent with unchanged arguments, without messages of its own, and returns its exit status', async (t) => {
  const { code, stdout, stderr } = await ended(
    spawn(join(t.context.app, 'bin/headgate'), ['exit', '3', 'a b', '*', '']),
  );
  t.is(code, 3);
  t.is(stderr, '');
  t.deepEqual(JSON.parse(stdout).argv, ['exit', '3', 'a b', '*', '']);
});

test('bin/headgate finds the agent through relative and absolute symlinks, from any directory', async (t) => {
  const { directory, app } = t.context;
  await mkdir(join(directory, 'usr/bin'), { recursive: true });
  await symlink('../../my app/bin/headgate', join(directory, 'usr/bin/headgate'));
  await symlink(join(directory, 'usr/bin/headgate'), join(directory, 'link'));
  for (const [command, cwd] of [
    [join(directory, 'link'), '/'],
    ['./link', directory],
    ['headgate', '/'],
    ['./headgate', join(app, 'bin')],
  ] as const) {
    const env = { ...process.env, PATH: `${join(directory, 'usr/bin')}:${process.env.PATH}` };
    const { code, stdout, stderr } = await ended(spawn('sh', ['-c', `exec ${command} ok`], { cwd, env }));
    t.is(stderr, '', command);
    t.is(code, 0, command);
    t.deepEqual(JSON.parse(stdout).argv, ['ok'], command);
  }
});

test('bin/headgate runs the bundle, or the sources if one of them is newer', async (t) => {
  const { app } = t.context;
  const [bundle, source] = [join(app, 'dist/agent.mjs'), join(app, 'agent/part.ts')];
  await mkdir(join(app, 'dist'));
  await writeFile(bundle, "console.log('in one file', process.argv[2]);");
  await writeFile(source, '');
  for (const folder of ['agent', 'agent/main.ts', 'agent/part.ts'])
    await utimes(join(app, folder), 1_000, 1_000);
  await utimes(bundle, 2_000, 2_000);
  const run = () => ended(spawn(join(app, 'bin/headgate'), ['ok']));
  t.is((await run()).stdout, 'in one file ok\n');
  await utimes(source, 3_000, 3_000);
  t.deepEqual(JSON.parse((await run()).stdout).argv, ['ok']);
});

test('bin/headgate replaces itself with Node, so that signals reach the agent', async (t) => {
  const child = spawn(join(t.context.app, 'bin/headgate'), ['wait']);
  const first: Buffer = await new Promise((resolve) => child.stdout.once('data', resolve));
  t.is(JSON.parse(first.toString()).pid, child.pid);
  const end = ended(child);
  child.kill('SIGTERM');
  const { code, stdout } = await end;
  t.is(code, 0);
  t.is(stdout, 'SIGTERM\n');
});

test("bin/headgate gives the agent the programs of the system before those of PATH, such as npm's", async (t) => {
  const { app, directory } = t.context;
  await writeFile(join(app, 'agent/main.ts'), 'console.log(process.env.PATH);');
  const system = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  const env = { PATH: `${directory}:${process.env.PATH}` };
  const { stdout } = await ended(spawn(join(app, 'bin/headgate'), ['ok'], { env }));
  t.is(stdout, `${system}:${env.PATH}\n`);
});

test('bin/headgate uses a new enough Node from PATH if it has none of its own', async (t) => {
  const { directory, app } = t.context;
  await rm(join(app, 'node_modules'), { recursive: true });
  await symlink(process.execPath, join(directory, 'node'));
  const env = { PATH: `${directory}:${process.env.PATH}` };
  const { code, stderr } = await ended(spawn(join(app, 'bin/headgate'), [], { env }));
  t.is(stderr, '');
  t.is(code, 0);
});

test('bin/headgate prints what to do if there is no new enough Node', async (t) => {
  const { directory, app } = t.context;
  await rm(join(app, 'node_modules'), { recursive: true });
  // Only the programs that the script needs, so that it finds no Node.
  const tools = join(directory, 'tools');
  await mkdir(tools);
  for (const tool of ['dirname', 'readlink']) await symlink(`/usr/bin/${tool}`, join(tools, tool));
  const none = await ended(spawn('/bin/sh', [join(app, 'bin/headgate')], { env: { PATH: tools } }));
  t.is(none.code, 1);
  t.is(
    none.stderr,
    'headgate: Cannot find Node 22.20 or newer: none in PATH\n' +
      `headgate: Run "make install" in ${app}, which installs one, or put a newer Node into PATH\n`,
  );

  const old = join(tools, 'node');
  await writeFile(old, '#!/bin/sh\n[ "$1" = --version ] && echo v20.20.2\nexit 1\n');
  await chmod(old, 0o755);
  const outdated = await ended(spawn('/bin/sh', [join(app, 'bin/headgate')], { env: { PATH: tools } }));
  t.is(outdated.code, 1);
  t.is(outdated.stderr.split('\n')[0], `headgate: Cannot find Node 22.20 or newer: ${old} is v20.20.2`);
});

async function ended(child: ChildProcess): Promise<{ code: number | null; stdout: string; stderr: string }> {
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr?.on('data', (chunk) => {
    stderr += chunk;
  });
  const code = await new Promise<number | null>((resolve, reject) =>
    child.on('error', reject).on('close', resolve),
  );
  return { code, stdout, stderr };
}
