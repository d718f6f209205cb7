// Makes a release: build-release.ts [--output DIR] [--key KEY] [--arch ARCH]. Writes into DIR the Debian
// packages of all architectures or of ARCH, the notes of this version, a bill of materials (SPDX), checksums, and `debian`, a
// repository for apt. `--key`: a key of gpg, by which the checksums and the repository are signed. A version that has no
// section in CHANGELOG.md yet becomes a pre-release, 0.1.0~gitDATE.COMMIT.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { version as ofPackage } from '../agent/base/version.ts';
import { ARCHITECTURES, architecture } from './architectures.ts';
import { billOfMaterials, releaseFile, releaseOf } from './release-texts.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const { values } = parseArgs({
  options: {
    output: { type: 'string', default: '.cache/release' },
    key: { type: 'string', default: '' },
    arch: { type: 'string', default: '' },
  },
});
const output = resolve(values.output);
const epoch = Number(process.env.SOURCE_DATE_EPOCH ?? run('git', ['log', '-1', '--format=%ct']));
const date = new Date(epoch * 1000);

const commit = run('git', ['rev-parse', '--short=8', 'HEAD']).trim();
const release = releaseOf(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), ofPackage, { date, commit });
if (release === undefined) {
  console.error(
    `Cannot release ${ofPackage}: CHANGELOG.md has neither "## ${ofPackage}" nor "## Unreleased"; write its notes there first`,
  );
  process.exit(1);
}
const { version, notes } = release;
if (version !== ofPackage)
  console.error(`CHANGELOG.md has no heading "## ${ofPackage}" yet: this is the pre-release ${version}`);
rmSync(output, { recursive: true, force: true });
mkdirSync(output, { recursive: true });
const targets = values.arch === '' ? ARCHITECTURES : [architecture(values.arch)];
for (const { name } of targets)
  run(process.execPath, [
    join(root, 'scripts/build-deb.ts'),
    '--output',
    output,
    '--version',
    version,
    '--arch',
    name,
  ]);
write('NOTES.md', notes);
const dependencies = run('npm', [
  'sbom',
  '--package-lock-only',
  '--omit=dev',
  '--sbom-format=spdx',
  '--sbom-type=application',
]);
write(`headgate_${version}.spdx.json`, billOfMaterials(dependencies, { date, node: process.version }));
makeRepository();
const files = readdirSync(output, { withFileTypes: true }).filter((each) => each.isFile());
write('SHA256SUMS', files.map(({ name }) => `${sha256(join(output, name))}  ${name}\n`).join(''));
if (values.key !== '') sign(['--detach-sign', '--armor'], 'SHA256SUMS', 'SHA256SUMS.asc');
else console.error('Nothing is signed: name a key of gpg, KEY=...');
console.log(output);

/** As apt reads it: `deb [signed-by=KEYRING] URL stable main`. */
function makeRepository(): void {
  const pool = join(output, 'debian/pool/main');
  mkdirSync(pool, { recursive: true });
  for (const name of readdirSync(output).filter((each) => each.endsWith('.deb')))
    cpSync(join(output, name), join(pool, name));
  const lists = targets.flatMap(({ name }) => {
    const packages = run(
      'dpkg-scanpackages',
      ['--multiversion', '--arch', name, 'pool/main'],
      join(output, 'debian'),
    );
    return [
      { path: `main/binary-${name}/Packages`, content: Buffer.from(packages) },
      { path: `main/binary-${name}/Packages.gz`, content: gzipSync(packages, { level: 9 }) },
    ];
  });
  for (const { path, content } of lists) {
    const file = join(output, 'debian/dists/stable', path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
  }
  const architectures = targets.map(({ name }) => name);
  write('debian/dists/stable/Release', releaseFile({ version, architectures, date, files: lists }));
  if (values.key === '') return;
  sign(['--clearsign'], 'debian/dists/stable/Release', 'debian/dists/stable/InRelease');
  run('gpg', ['--yes', '--output', join(output, 'headgate-archive-keyring.gpg'), '--export', values.key]);
}

function sign(how: readonly string[], from: string, to: string): void {
  const key = ['--batch', '--yes', '--local-user', values.key];
  run('gpg', [...key, ...how, '--output', join(output, to), join(output, from)]);
}

function write(path: string, text: string): void {
  writeFileSync(join(output, path), text);
}

function sha256(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}

function run(program: string, args: readonly string[], cwd = root): string {
  return execFileSync(program, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
}
