// Builds the container image: build-container.ts [--output DIR]. Writes DIR/headgate-image_VERSION_ARCH.tar, an OCI archive,
// and prints its path. Needs no root for a user with a range of users in /etc/subuid; as root it tests that the image serves.

import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { version } from '../agent/base/version.ts';
import { architecture } from './architectures.ts';
import { bundle } from './bundle.ts';

const repository = fileURLToPath(new URL('..', import.meta.url));
/** What the agent reads at run time besides its bundle. */
const PARTS = [
  'bin/headgate',
  'templates',
  'health/page',
  'node_modules/uplot',
  'package.json',
  'node_modules/node/bin/node',
];

const { values } = parseArgs({ options: { output: { type: 'string', default: '.cache/container' } } });
const output = resolve(values.output);
const isRoot = process.getuid?.() === 0;
const work = mkdtempSync(join(tmpdir(), 'headgate-container-'));
const context = join(work, 'context');
const storage = ['--root', join(work, 'storage'), '--runroot', join(work, 'run'), '--storage-driver', 'vfs'];
try {
  mkdirSync(context);
  await putProgram(join(context, 'headgate'));
  cpSync(join(repository, 'deploy/container/start'), join(context, 'start'));
  run('sh', [join(repository, 'scripts/container-root.sh'), join(context, 'root.tar')]);
  const name = `localhost/headgate:${version}`;
  buildah(
    'build',
    '--isolation',
    'chroot',
    '--layers=false',
    '--build-arg',
    `VERSION=${version}`,
    '--tag',
    name,
    '--file',
    join(repository, 'deploy/container/Containerfile'),
    context,
  );
  mkdirSync(output, { recursive: true });
  const image = join(output, `headgate-image_${version}_${architecture('').name}.tar`);
  rmSync(`${image}.part`, { force: true });
  buildah('push', '--quiet', name, `oci-archive:${image}.part:${name}`);
  renameSync(`${image}.part`, image);
  console.log(`Built the image ${image}, ${Math.round(statSync(image).size / 1e6)} MB`);
  if (isRoot) {
    console.log('Running it on hosts of its own, with a client, a member and a Kubernetes API server');
    // Built before the tests, because a test would time out while it waits for the build.
    run('sh', [join(repository, 'test/support/kube/kube-assets.sh'), 'etcd', 'kube-apiserver']);
    const { status } = spawnSync(
      process.execPath,
      ['node_modules/.bin/ava', 'test/image/container.test.ts'],
      {
        cwd: repository,
        stdio: 'inherit',
        env: { ...process.env, IMAGE_TESTS: '1', HEADGATE_CONTAINER: image },
      },
    );
    process.exitCode = status ?? 1;
  } else console.log('Not run: the network namespaces of its test need root');
} finally {
  // Without root, files of the image's users belong to the range of users of the one who builds.
  if (!isRoot) run('buildah', ['unshare', 'rm', '-rf', work]);
  rmSync(work, { recursive: true, force: true });
}

/** The agent and its Node, as below /usr/lib/headgate of the package, without the sources. */
async function putProgram(home: string): Promise<void> {
  for (const part of PARTS) cpSync(join(repository, part), join(home, part), { recursive: true });
  run('strip', ['--strip-unneeded', join(home, 'node_modules/node/bin/node')]);
  await bundle(join(home, 'dist/agent.mjs'));
}

function buildah(command: string, ...args: readonly string[]): void {
  run('buildah', [...storage, command, ...args]);
}

/** Errors: with a status other than 0, after the program's own output. */
function run(program: string, args: readonly string[]): void {
  execFileSync(program, args, { stdio: ['ignore', 'inherit', 'inherit'] });
}
