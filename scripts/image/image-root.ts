// Fills a directory with the root filesystem of an image: Debian, the package, and the changes of the diskimage-builder
// element `headgate`, whose own scripts it runs. Needs root and `unshare`; leaves nothing mounted.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseYamlDocuments } from '../../agent/base/yaml.ts';

const element = fileURLToPath(new URL('../../deploy/image/elements/headgate', import.meta.url));
/** diskimage-builder copies scripts that run inside the image to this folder. */
const HOOKS = '/tmp/in_target.d';

export interface ImageOptions {
  /** An empty directory. */
  readonly root: string;
  /** The path of the Debian package. */
  readonly deb: string;
  /** The variables of the element, such as `DIB_HEADGATE_VRRP`. */
  readonly variables: Readonly<Record<string, string>>;
}

export function fillImageRoot({ root, deb, variables }: ImageOptions): void {
  const base = execFileSync('sh', [fileURLToPath(new URL('debian-root.sh', import.meta.url))], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  }).trim();
  execFileSync('cp', ['--archive', '--reflink=auto', `${base}/.`, root]);
  const hooks = join(root, HOOKS);
  mkdirSync(hooks, { recursive: true });
  cpSync(element, hooks, { recursive: true });
  const env = {
    DIB_DEBUG_TRACE: '0',
    DIB_HEADGATE_CONFIG: '',
    DIB_HEADGATE_VRRP: '0',
    DIB_HEADGATE_BGP: '0',
    ...variables,
  };
  for (const script of scriptsOf('extra-data.d'))
    execFileSync('bash', [join(element, script)], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, ...env, DIB_HEADGATE_DEB: deb, TMP_HOOKS_PATH: hooks },
    });
  inside(root, env, ['apt-get', '-y', '--no-install-recommends', 'install', ...packages()]);
  for (const script of [...scriptsOf('install.d'), ...scriptsOf('post-install.d')])
    inside(root, env, ['bash', join(HOOKS, script)]);
  tidy(root, env);
}

/** Removes what a build by diskimage-builder removes with its own elements. */
function tidy(root: string, env: Readonly<Record<string, string>>): void {
  inside(root, env, ['apt-get', 'clean']);
  const traces = [
    HOOKS,
    '.fresh',
    'etc/dpkg/dpkg.cfg.d/unsafe-io',
    'etc/resolv.conf',
    'usr/sbin/policy-rc.d',
    'var/log/bootstrap.log',
    'var/log/apt',
  ];
  for (const path of traces) rmSync(join(root, path), { recursive: true, force: true });
  for (const each of readdirSync(join(root, 'var/lib/apt/lists')))
    rmSync(join(root, 'var/lib/apt/lists', each), { recursive: true });
  writeFileSync(join(root, 'etc/hostname'), 'headgate\n');
  // Each host gets its own at its first boot; without the file systemd would enable every unit.
  writeFileSync(join(root, 'etc/machine-id'), '');
}

function packages(): string[] {
  const { documents } = parseYamlDocuments(readFileSync(join(element, 'package-installs.yaml'), 'utf8'));
  return Object.keys(documents[0]?.value as object);
}

/** In the order in which diskimage-builder runs them. */
function scriptsOf(phase: string): string[] {
  return readdirSync(join(element, phase))
    .sort()
    .map((name) => join(phase, name));
}

/** Runs a program in the image; its children end with it. Errors: with the program's output. */
function inside(root: string, env: Readonly<Record<string, string>>, words: readonly string[]): void {
  const namespaces = ['--mount', '--pid', '--fork', '--kill-child', `--mount-proc=${join(root, 'proc')}`];
  execFileSync('unshare', [...namespaces, 'chroot', root, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...env,
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      DEBIAN_FRONTEND: 'noninteractive',
    },
  });
}
