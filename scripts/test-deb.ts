// Builds the Debian package and tests it: lintian finds no error, and an unpacked copy renders without any file of this
// repository. Ends with status 1 at the first fault.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { version } from '../agent/base/version.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'headgate-test-deb-'));

try {
  const file = run(process.execPath, [join(root, 'scripts/build-deb.ts'), '--output', work]).trim();
  run('lintian', ['--allow-root', '--fail-on', 'error', file]);
  console.log('ok: lintian finds no error');

  const tree = join(work, 'unpacked');
  mkdirSync(tree);
  run('dpkg-deb', ['-x', file, tree]);
  const program = join(tree, 'usr/lib/headgate/bin/headgate');
  expect('the version', run(program, ['--version']).trim() === `headgate ${version}`);
  const node = run(join(tree, 'usr/lib/headgate/node_modules/node/bin/node'), ['--version']).trim();
  expect('its own Node', node === process.version);
  run(program, ['render', '--manifests', join(root, 'examples/manifests'), '--output', join(work, 'files')]);
  const text = readFileSync(join(work, 'files/haproxy/haproxy.cfg'), 'utf8');
  expect('a rendered configuration', text.includes('\nlisten '));
  expect('no path of this repository', !everyText(join(tree, 'lib')).some((each) => each.includes(root)));
  for (const page of ['man8/headgate.8.gz', 'man5/headgate.yaml.5.gz'])
    expect(`the page ${page}`, readdirSync(join(tree, 'usr/share/man', page, '..')).length === 1);
} finally {
  rmSync(work, { recursive: true, force: true });
}

function expect(what: string, holds: boolean): void {
  if (!holds) throw new Error(`The package fails the test of ${what}`);
  console.log(`ok: ${what}`);
}

function everyText(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => readFileSync(join(each.parentPath, each.name), 'utf8'));
}

function run(program: string, args: readonly string[]): string {
  return execFileSync(program, args, {
    encoding: 'utf8',
    cwd: '/',
    env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}
