// Builds the root filesystem of a load-balancer host, boots it and tests that it serves: build-image.ts [--output DIR]
// [--config FILE] [--vrrp] [--bgp]. Writes DIR/headgate-rootfs_VERSION_ARCH.tar.gz and prints its path. Needs root.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { fillImageRoot } from './image/image-root.ts';

const repository = fileURLToPath(new URL('..', import.meta.url));
const { values } = parseArgs({
  options: {
    output: { type: 'string', default: '.cache/image' },
    config: { type: 'string', default: '' },
    vrrp: { type: 'boolean', default: false },
    bgp: { type: 'boolean', default: false },
  },
});
if (process.getuid?.() !== 0) {
  console.error(
    'Cannot build an image without root: debootstrap creates devices and sets owners, and the boot needs namespaces',
  );
  process.exit(1);
}

const work = mkdtempSync(join(tmpdir(), 'headgate-image-'));
try {
  const deb = execFileSync(process.execPath, [join(repository, 'scripts/build-deb.ts'), '--output', work], {
    encoding: 'utf8',
  }).trim();
  console.log(`Built the package ${basename(deb)}, ${megabytes(deb)}`);
  const root = join(work, 'root');
  mkdirSync(root, { mode: 0o755 });
  const config = values.config === '' ? '' : resolve(values.config);
  fillImageRoot({
    root,
    deb,
    variables: {
      DIB_HEADGATE_CONFIG: config,
      DIB_HEADGATE_VRRP: values.vrrp ? '1' : '0',
      DIB_HEADGATE_BGP: values.bgp ? '1' : '0',
    },
  });
  const made = join(work, basename(deb).replace(/^headgate_(.*)\.deb$/, 'headgate-rootfs_$1.tar.gz'));
  const owners = ['--numeric-owner', '--xattrs', '--sort=name'];
  execFileSync('tar', ['--use-compress-program=gzip -4', ...owners, '-cf', made, '-C', root, '.']);
  rmSync(root, { recursive: true });
  const output = resolve(values.output);
  mkdirSync(output, { recursive: true });
  const image = join(output, basename(made));
  execFileSync('mv', [made, `${image}.part`]);
  renameSync(`${image}.part`, image);
  console.log(`Built the root filesystem ${image}, ${megabytes(image)}`);
  console.log('Booting its systemd in namespaces, with a client and a member');
  const { status } = spawnSync(process.execPath, ['node_modules/.bin/ava', 'test/image/boot.test.ts'], {
    cwd: repository,
    stdio: 'inherit',
    env: { ...process.env, IMAGE_TESTS: '1', HEADGATE_IMAGE: image },
  });
  process.exitCode = status ?? 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}

function megabytes(file: string): string {
  return `${Math.round(statSync(file).size / 1e6)} MB`;
}
