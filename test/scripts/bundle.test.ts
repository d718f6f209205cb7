import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import test from 'ava';
import { bundle } from '../../scripts/bundle.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));

test('The bundle renders the same files as the sources, without the folder agent/', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'bundle-'));
  t.teardown(() => rm(home, { recursive: true }));
  const file = join(home, 'dist/agent.mjs');
  await bundle(file);
  await mkdir(join(home, 'health'));
  for (const part of ['templates', 'package.json', 'health/page', 'node_modules'])
    await symlink(join(root, part), join(home, part));
  const render = async (main: string, output: string) => {
    const manifests = join(root, 'examples/manifests');
    await run(process.execPath, [main, 'render', '--manifests', manifests, '--output', join(home, output)]);
    return readFile(join(home, output, 'haproxy/haproxy.cfg'), 'utf8');
  };
  const text = await render(file, 'a');
  t.true(text.includes('\nlisten '));
  t.is(text, await render(join(root, 'agent/main.ts'), 'b'));
  // Node prints the line of an uncaught error.
  const longest = Math.max(...(await readFile(file, 'utf8')).split('\n').map((line) => line.length));
  t.true(longest < 10_000, `${longest}`);
});

test('The bundle loads TLS and HTTPS only for their first use, and no unused module of packages', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'bundle-'));
  t.teardown(() => rm(home, { recursive: true }));
  const file = join(home, 'dist/agent.mjs');
  await bundle(file);
  for (const part of ['templates', 'package.json', 'node_modules'])
    await symlink(join(root, part), join(home, part));
  await mkdir(join(home, 'health'));
  await symlink(join(root, 'health/page'), join(home, 'health/page'));
  const tell = 'process.on("exit", () => console.log(process.moduleLoadList.join("\\n")))';
  const { stdout } = await run(process.execPath, [
    '--import',
    `data:text/javascript,${encodeURIComponent(tell)}`,
    file,
    'help',
  ]);
  const loaded = stdout.split('\n');
  t.true(loaded.includes('NativeModule http'));
  for (const name of ['tls', 'https', 'internal/deps/undici/undici', 'cluster'])
    t.false(loaded.includes(`NativeModule ${name}`), name);
});
