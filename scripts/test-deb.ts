// Makes a release with a key of its own and tests it: lintian finds no error in the Debian package, an unpacked copy renders
// without any file of this repository, and apt accepts the signed repository. Ends with status 1 at the first fault.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { version } from '../agent/base/version.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'headgate-test-deb-'));
/** Without a passphrase, for this test alone. */
const KEY = 'Headgate test <test@example.org>';
const keys = join(work, 'keys');
mkdirSync(keys, { mode: 0o700 });

try {
  const release = join(work, 'release');
  run('gpg', ['--batch', '--passphrase', '', '--quick-generate-key', KEY, 'default', 'sign', '1d']);
  run(process.execPath, [
    join(root, 'scripts/build-release.ts'),
    ...['--output', release, '--key', KEY, '--unreleased'],
  ]);
  const [name = ''] = readdirSync(release).filter((each) => each.endsWith('.deb'));
  const file = join(release, name);
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
  run('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], release);
  run('gpg', ['--verify', join(release, 'SHA256SUMS.asc'), join(release, 'SHA256SUMS')]);
  console.log('ok: the checksums, and their signature');
  const bill = JSON.parse(readFileSync(join(release, `headgate_${version}.spdx.json`), 'utf8'));
  const names: readonly string[] = bill.packages.map((each: { name: string }) => each.name);
  expect(
    'the bill of materials',
    ['headgate', '@kubernetes/client-node', 'node'].every((each) => names.includes(each)),
  );
  expect('the repository for apt', byApt(release) === readFileSync(file).toString('latin1'));
} finally {
  run('gpgconf', ['--kill', 'gpg-agent']);
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

/** The package as apt gets it from the signed repository. */
function byApt(release: string): string {
  const state = join(work, 'apt');
  for (const folder of ['state/lists/partial', 'cache/archives/partial', 'etc', 'download'])
    mkdirSync(join(state, folder), { recursive: true });
  const source = `deb [signed-by=${join(release, 'headgate-archive-keyring.gpg')}] file:${join(release, 'debian')} stable main\n`;
  writeFileSync(join(state, 'etc/sources.list'), source);
  const own = [
    `Dir::State=${join(state, 'state')}`,
    `Dir::Cache=${join(state, 'cache')}`,
    `Dir::Etc::sourcelist=${join(state, 'etc/sources.list')}`,
    'Dir::Etc::sourceparts=-',
    // Its own user cannot enter the folder of this test.
    'APT::Sandbox::User=',
  ].flatMap((option) => ['-o', option]);
  run('apt-get', [...own, '-qq', '--error-on=any', 'update']);
  run('apt-get', [...own, '-qq', 'download', 'headgate'], join(state, 'download'));
  const [downloaded = ''] = readdirSync(join(state, 'download'));
  return readFileSync(join(state, 'download', downloaded)).toString('latin1');
}

function run(program: string, args: readonly string[], cwd = '/'): string {
  return execFileSync(program, args, {
    encoding: 'utf8',
    cwd,
    env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1', GNUPGHOME: keys },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}
