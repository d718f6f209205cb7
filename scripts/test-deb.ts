// Makes a release with a key of its own and tests it: lintian finds no error in the Debian packages, an unpacked copy of
// each renders without any file of this repository, that of another architecture by qemu's emulation, and apt of each
// accepts the signed repository. Ends with status 1 at the first fault.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { version } from '../agent/base/version.ts';
import { ARCHITECTURES, type Architecture } from './architectures.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'headgate-test-deb-'));
/** Without a passphrase, for this test alone. */
const KEY = 'Headgate test <test@example.org>';
/** For lintian the placeholder of a package that is not published is an error. */
const MAINTAINER = { DEBFULLNAME: 'Headgate test', DEBEMAIL: 'test@example.org' };
const keys = join(work, 'keys');
mkdirSync(keys, { mode: 0o700 });

try {
  const release = join(work, 'release');
  run('gpg', ['--batch', '--passphrase', '', '--quick-generate-key', KEY, 'default', 'sign', '1d']);
  run(process.execPath, [join(root, 'scripts/build-release.ts'), ...['--output', release, '--key', KEY]]);
  for (const each of ARCHITECTURES) testPackage(packageFor(release, each), each);
  run('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], release);
  run('gpg', ['--verify', join(release, 'SHA256SUMS.asc'), join(release, 'SHA256SUMS')]);
  console.log('ok: the checksums, and their signature');
  const bill = JSON.parse(readFileSync(fileIn(release, '.spdx.json'), 'utf8'));
  const names: readonly string[] = bill.packages.map((each: { name: string }) => each.name);
  expect(
    'the bill of materials',
    ['headgate', '@kubernetes/client-node', 'node'].every((each) => names.includes(each)),
  );
  for (const each of ARCHITECTURES) {
    const file = readFileSync(packageFor(release, each)).toString('latin1');
    expect(`the repository for apt of ${each.name}`, byApt(release, each) === file);
  }
} finally {
  run('gpgconf', ['--kill', 'gpg-agent']);
  rmSync(work, { recursive: true, force: true });
}

function packageFor(release: string, { name }: Architecture): string {
  return fileIn(release, `-1_${name}.deb`);
}

/** The only file of the release with this end; a pre-release has the commit in its name. */
function fileIn(release: string, end: string): string {
  const [name = ''] = readdirSync(release).filter((each) => each.endsWith(end));
  return join(release, name);
}

function testPackage(file: string, target: Architecture): void {
  run('lintian', ['--allow-root', '--fail-on', 'error', file]);
  console.log(`ok: lintian finds no error in the package for ${target.name}`);
  const tree = join(work, target.name);
  mkdirSync(tree);
  run('dpkg-deb', ['-x', file, tree]);
  const of = (what: string) => `${what} of the package for ${target.name}`;
  const emulator = target.node === process.arch ? [] : emulatorOf(target);
  const [home, files] = [join(tree, 'usr/lib/headgate'), join(work, `${target.name}-files`)];
  const node = (...args: readonly string[]) => {
    const [program = '', ...words] = [...emulator, join(home, 'node_modules/node/bin/node'), ...args];
    return run(program, words);
  };
  // The emulator starts one program only, so that of another architecture is run without its shell script.
  const headgate = (...args: readonly string[]) =>
    emulator.length === 0
      ? run(join(home, 'bin/headgate'), args)
      : node(join(home, 'dist/agent.mjs'), ...args);
  expect(of('the version'), headgate('--version').trim() === `headgate ${version}`);
  expect(
    of('its own Node'),
    node('-p', 'process.version + process.arch').trim() === process.version + target.node,
  );
  headgate('render', '--manifests', join(root, 'examples/manifests'), '--output', files);
  const text = readFileSync(join(files, 'haproxy/haproxy.cfg'), 'utf8');
  expect(of('a rendered configuration'), text.includes('\nlisten '));
  // Whatever is loaded late: here the package that reads the keys of tokens.
  expect(
    of('the reader of keys'),
    checked(headgate).includes('warn https://127.0.0.1:9/: it cannot be read'),
  );
  const units = everyText(join(tree, 'lib'));
  expect(of('no path of this repository'), units.length > 0 && !units.some((each) => each.includes(root)));
  for (const page of ['man8/headgate.8.gz', 'man5/headgate.yaml.5.gz'])
    expect(of(`the page ${page}`), readdirSync(join(tree, 'usr/share/man', page, '..')).length === 1);
}

/** What `headgate check` prints of a URL at which no server answers; the host has other faults. */
function checked(headgate: (...args: readonly string[]) => string): string {
  const folders = ['--state-dir', join(work, 'state'), '--runtime-dir', join(work, 'run')];
  try {
    return headgate('check', '--jwks-urls', 'https://127.0.0.1:9/', ...folders);
  } catch (error) {
    return (error as { readonly stdout: string }).stdout;
  }
}

/** Runs a program with the libraries that the package depends on, of Debian 12. */
function emulatorOf({ name }: Architecture): readonly string[] {
  const libraries = join(work, `${name}-libraries`);
  const options = ['--quiet', '--variant=extract', '--mode=chrootless', `--architectures=${name}`];
  const mirror = process.env.HEADGATE_DEBIAN_MIRROR ?? 'http://deb.debian.org/debian';
  run('mmdebstrap', [...options, '--include=libc6,libgcc-s1,libstdc++6', 'bookworm', libraries, mirror]);
  const machine = name === 'arm64' ? 'aarch64' : 'x86_64';
  return [`qemu-${machine}-static`, '-L', libraries];
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
function byApt(release: string, { name }: Architecture): string {
  const state = join(work, `apt-${name}`);
  for (const folder of ['state/lists/partial', 'cache/archives/partial', 'etc', 'download'])
    mkdirSync(join(state, folder), { recursive: true });
  const source = `deb [signed-by=${join(release, 'headgate-archive-keyring.gpg')}] file:${join(release, 'debian')} stable main\n`;
  writeFileSync(join(state, 'etc/sources.list'), source);
  const own = [
    `Dir::State=${join(state, 'state')}`,
    `Dir::Cache=${join(state, 'cache')}`,
    `Dir::Etc::sourcelist=${join(state, 'etc/sources.list')}`,
    'Dir::Etc::sourceparts=-',
    `APT::Architecture=${name}`,
    `APT::Architectures=${name}`,
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
    env: { ...MAINTAINER, ...process.env, NODE_DISABLE_COMPILE_CACHE: '1', GNUPGHOME: keys },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}
