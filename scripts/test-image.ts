// Tests the package under traffic on a host with a real systemd: installation, faults, upgrade, instances, reboot, removal,
// purge. test-image.ts [AVA's arguments]. HEADGATE_DEB names an existing package. Needs root.

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const repository = fileURLToPath(new URL('..', import.meta.url));
if (process.getuid?.() !== 0) {
  console.error('Cannot boot a machine without root: it needs namespaces, mounts and a control group');
  process.exit(1);
}

const work = mkdtempSync(join(tmpdir(), 'headgate-test-image-'));
try {
  // Built before the tests, because a test would time out while it waits for the build.
  execFileSync('sh', [join(repository, 'scripts/image/debian-root.sh'), '--ansible'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const words = [
    'node_modules/.bin/ava',
    '--fail-fast',
    'test/image/life.test.ts',
    'test/image/first-boot.test.ts',
    'test/image/ansible.test.ts',
    ...process.argv.slice(2),
  ];
  const { status } = spawnSync(process.execPath, words, {
    cwd: repository,
    stdio: 'inherit',
    env: { ...process.env, IMAGE_TESTS: '1', HEADGATE_DEB: process.env.HEADGATE_DEB ?? buildDeb() },
  });
  process.exitCode = status ?? 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}

function buildDeb(): string {
  const script = join(repository, 'scripts/build-deb.ts');
  return execFileSync(process.execPath, [script, '--output', work], { encoding: 'utf8' }).trim();
}
