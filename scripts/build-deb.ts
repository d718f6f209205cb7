// Builds the Debian package: the agent, its packages without those for development, its own Node, units, manual pages,
// completions of shells. build-deb.ts [--output DIR] [--version VERSION] [--revision N] [--arch ARCH]: writes
// DIR/headgate_VERSION-N_ARCH.deb and names it; ARCH is amd64 or arm64, by default this machine's. DEBFULLNAME and DEBEMAIL
// name the maintainer, as in Debian's own tools.
// The same sources give the same bytes: times come from SOURCE_DATE_EPOCH or the last commit.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { version } from '../agent/base/version.ts';
import { completionScripts } from '../agent/cli/completion/completion.ts';
import { architecture, nodeFor } from './architectures.ts';
import { bundle } from './bundle.ts';
import { copyrightFile, type PackagedLicence } from './deb-copyright.ts';
import { commandPage, settingsPage } from './man-pages.ts';
import { packagedDocuments } from './packaged-documents.ts';

interface LockedPackage {
  readonly version?: string;
  readonly license?: string;
  readonly dev?: boolean;
}

const root = fileURLToPath(new URL('..', import.meta.url));
/** What Node reads of a package at run time. */
const NEEDED = /\.(c?js|mjs|json|node|wasm|css)$/;
/** At the top of a package; deeper down a folder of such a name may be code. */
const UNNEEDED = /^\/(tests?|__tests__|examples?|docs?|benchmarks?|\.github|typings|bin|bin\.m?js)$/;
const LICENCE = /^(licen[cs]e|copying|notice)/i;

const { values } = parseArgs({
  options: {
    output: { type: 'string', default: '.cache/deb' },
    version: { type: 'string', default: version },
    revision: { type: 'string', default: '1' },
    arch: { type: 'string', default: '' },
  },
});
const output = resolve(values.output);
const { DEBFULLNAME = 'Headgate', DEBEMAIL = 'headgate@localhost' } = process.env;
const maintainer = `${DEBFULLNAME} <${DEBEMAIL}>`;
const fullVersion = `${values.version}-${values.revision}`;
const target = architecture(values.arch);
const epoch = process.env.SOURCE_DATE_EPOCH ?? run('git', ['log', '-1', '--format=%ct']).trim();
const date = new Date(Number(epoch) * 1000);

// mkdtemp makes a folder that only its owner can enter, so the package's tree is a folder inside it.
const work = mkdtempSync(join(tmpdir(), 'headgate-deb-'));
const tree = join(work, 'tree');
try {
  mkdirSync(tree, { mode: 0o755 });
  putProgram();
  await bundle(join(tree, 'usr/lib/headgate/dist/agent.mjs'));
  putUnits();
  putDocuments();
  putControl();
  const file = join(output, `headgate_${fullVersion}_${target.name}.deb`);
  mkdirSync(output, { recursive: true });
  for (const path of everything(tree)) if (!lstatSync(path).isSymbolicLink()) chmodSync(path, modeOf(path));
  run('find', [tree, '-exec', 'touch', '--no-dereference', `--date=@${epoch}`, '{}', '+']);
  run('dpkg-deb', ['--root-owner-group', '-Zxz', '-z1', '--build', tree, file], { SOURCE_DATE_EPOCH: epoch });
  console.log(file);
} finally {
  rmSync(work, { recursive: true, force: true });
}

/** The agent and everything that it runs with, below /usr/lib/headgate. */
function putProgram(): void {
  const home = join(tree, 'usr/lib/headgate');
  for (const part of ['agent', 'health', 'templates', 'package.json'])
    cpSync(join(root, part), join(home, part), { recursive: true });
  put('usr/lib/headgate/bin/headgate', readFileSync(join(root, 'bin/headgate')));
  for (const [path] of packages())
    cpSync(join(root, path), join(home, path), {
      recursive: true,
      dereference: true,
      filter: (source) => isNeeded(source, join(root, path)),
    });
  const node = join(home, 'node_modules/node/bin/node');
  mkdirSync(dirname(node), { recursive: true });
  cpSync(nodeFor(target).program, node);
  run(target.strip, ['--strip-unneeded', node]);
  for (const folder of everything(home).reverse())
    if (lstatSync(folder).isDirectory() && readdirSync(folder).length === 0)
      rmSync(folder, { recursive: true });
  put('usr/bin/headgate', readFileSync(join(root, 'deploy/deb/headgate.sh')));
}

/** The packages that the agent needs at run time: path from the root, and the lock file's entry. */
function packages(): readonly [path: string, locked: LockedPackage][] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, LockedPackage>>;
  };
  return Object.entries(lock.packages).filter(
    ([path, { dev = false }]) => path !== '' && !dev && !/(^|\/)(@types\/|undici-types$)/.test(path),
  );
}

/** A package inside a package has its own entry in the lock file. */
function isNeeded(source: string, from: string): boolean {
  const inside = source.slice(from.length);
  if (inside === '') return true;
  if (inside.includes('/node_modules')) return false;
  if (UNNEEDED.test(inside)) return false;
  if (lstatSync(source).isDirectory()) return true;
  return NEEDED.test(source) && basename(source) !== 'package-lock.json';
}

function putUnits(): void {
  const units = readdirSync(join(root, 'systemd')).filter((name) => name.endsWith('.service'));
  for (const unit of units) put(`lib/systemd/system/${unit}`, readFileSync(join(root, 'systemd', unit)));
  for (const [from, to] of [
    ['sysusers', 'usr/lib/sysusers.d/headgate.conf'],
    ['tmpfiles', 'usr/lib/tmpfiles.d/headgate.conf'],
    ['sysctl', 'usr/lib/sysctl.d/60-headgate.conf'],
    ['preset', 'usr/lib/systemd/system-preset/60-headgate.preset'],
  ] as const)
    put(to, readFileSync(join(root, `systemd/headgate.${from}`)));
  put('usr/share/headgate/headgate.schema.json', readFileSync(join(root, 'deploy/headgate.schema.json')));
  put('etc/headgate/headgate.yaml', readFileSync(join(root, 'deploy/deb/headgate.yaml')));
}

function putDocuments(): void {
  const manual = { version, date: date.toISOString().slice(0, 10) };
  const [vrrp, pools] = ['high-availability', 'addresses'].map((name) =>
    readFileSync(join(root, `docs/${name}.md`), 'utf8'),
  ) as [string, string];
  put('usr/share/man/man8/headgate.8.gz', zipped(commandPage(manual)));
  put('usr/share/man/man5/headgate.yaml.5.gz', zipped(settingsPage(manual, { vrrp, pools })));
  put('usr/share/bash-completion/completions/headgate', completionScripts.bash);
  put('usr/share/zsh/vendor-completions/_headgate', completionScripts.zsh);
  put('usr/share/fish/vendor_completions.d/headgate.fish', completionScripts.fish);
  const own = 'usr/share/doc/headgate';
  put(`${own}/copyright`, copyrightFile(licences()));
  put(`${own}/LICENSE.node.gz`, zipped(readFileSync(nodeFor(target).licence, 'utf8')));
  put(`${own}/changelog.gz`, zipped(readFileSync(join(root, 'CHANGELOG.md'), 'utf8')));
  put(`${own}/changelog.Debian.gz`, zipped(debianChangelog()));
  for (const { path, content } of packagedDocuments()) put(`${own}/${path}`, content);
  put('usr/share/lintian/overrides/headgate', readFileSync(join(root, 'deploy/deb/lintian-overrides')));
}

function putControl(): void {
  const size = everything(tree).reduce((sum, path) => sum + Math.ceil(lstatSync(path).size / 1024), 0);
  const control = `Package: headgate
Version: ${fullVersion}
Architecture: ${target.name}
Maintainer: ${maintainer}
Installed-Size: ${size}
Depends: libc6 (>= 2.28), libgcc-s1, libstdc++6 (>= 8), haproxy (>= 2.6), iproute2, procps, systemd (>= 252)
Recommends: keepalived (>= 1:2.2.7), nftables (>= 1.0.6), conntrack
Suggests: conntrackd (>= 1:1.4.7), bird2 (>= 2.0.12)
Section: net
Priority: optional
Description: load-balancer agent for Kubernetes Services, Gateways, Ingresses
 Headgate runs on a load-balancer host. It reads Services, Gateways with their
 routes, and Ingresses from a Kubernetes cluster or from folders of manifests,
 keeps HAProxy (TCP, HTTP), nftables (UDP, SCTP) and keepalived at exactly what
 they ask for, and changes them at runtime: a pod that comes or goes costs no
 reload.
 .
 HAProxy and keepalived run in units of their own; an upgrade of this package
 restarts the agent alone and touches no traffic. Node comes with the package.
`;
  put('DEBIAN/control', control);
  put('DEBIAN/conffiles', '/etc/headgate/headgate.yaml\n');
  for (const script of ['postinst', 'prerm', 'postrm'])
    put(`DEBIAN/${script}`, readFileSync(join(root, 'deploy/deb', script)));
  const sums = everything(tree)
    .filter((path) => lstatSync(path).isFile() && !path.startsWith(join(tree, 'DEBIAN')))
    .map(
      (path) =>
        `${createHash('md5').update(readFileSync(path)).digest('hex')}  ${path.slice(tree.length + 1)}\n`,
    );
  put('DEBIAN/md5sums', sums.join(''));
}

function licences(): readonly PackagedLicence[] {
  return packages().map(([path, { version: its = '', license = 'not said' }]) => {
    const files = existsSync(join(root, path)) ? readdirSync(join(root, path)) : [];
    const file = files.find((each) => LICENCE.test(each));
    const words = file === undefined ? '' : readFileSync(join(root, path, file), 'utf8');
    return { name: path.replace(/^node_modules\//, ''), version: its, licence: license, text: words };
  });
}

function debianChangelog(): string {
  const when = date.toUTCString().replace('GMT', '+0000');
  return `headgate (${fullVersion}) unstable; urgency=medium\n\n  * Release ${values.version}; see changelog.gz.\n\n -- ${maintainer}  ${when}\n`;
}

function put(path: string, content: string | Buffer): void {
  const file = join(tree, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

/** gzipSync() writes no time, so the same text gives the same bytes. */
function zipped(text: string): Buffer {
  return gzipSync(text, { level: 9 });
}

function modeOf(path: string): number {
  const isProgram = /\/(bin\/(headgate|node)|DEBIAN\/(postinst|prerm|postrm))$/.test(path);
  return isProgram || lstatSync(path).isDirectory() ? 0o755 : 0o644;
}

/** Every path below `folder`, folders before their content. */
function everything(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((each) => {
    const path = join(folder, each.name);
    return each.isDirectory() ? [path, ...everything(path)] : [path];
  });
}

function run(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  return execFileSync(program, args, { cwd: root, encoding: 'utf8', env: { ...process.env, ...env } });
}
