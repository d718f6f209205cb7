// Does what docs/getting-started-cluster.md says, block by block, in a cluster whose node this file plays; prints each command
// with its output. For a process with network, mount and PID namespaces of its own, with which everything ends:
// cluster-admin.test.ts starts it, with a folder that is empty.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Kube, kubePrograms } from '../support/kube/kube.ts';
import { blocksOf } from '../support/repository/markdown.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const [folder = ''] = process.argv.slice(2);
const PODS = '/api/v1/namespaces/default/pods';
const COMMAND_TIMEOUT_MS = 60_000;

// The host: an interface, and folders that no other agent has.
const setUp = [
  'link set lo up',
  'link add eth0 type bridge',
  'link set eth0 up',
  'address add 192.0.2.2/24 dev eth0',
];
for (const words of setUp) execFileSync('ip', words.split(' '));
for (const place of ['/run', '/var/lib']) execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', place]);

const kube = await Kube.start({
  address: '192.0.2.2',
  controllerManager: true,
  controllers: ['serviceaccount-token-controller'],
});
const { kubectl = '' } = await kubePrograms(['kubectl']);
// A clone whose files are those of the repository.
const clone = join(folder, 'clone');
for (const directory of [clone, join(folder, 'bin')]) mkdirSync(directory);
for (const name of readdirSync(root)) symlinkSync(join(root, name), join(clone, name));
symlinkSync(kubectl, join(folder, 'bin/kubectl'));
const env = {
  ...process.env,
  KUBECONFIG: kube.kubeconfig,
  PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
};

let isOver = false;
const node = playNode();
let agent: ChildProcess | undefined;
for (const block of blocksOf(readFileSync(join(root, 'docs/getting-started-cluster.md'), 'utf8'), 'sh')) {
  console.log(block.replaceAll(/^/gm, '$ '));
  if (block.startsWith('bin/headgate run ')) {
    // It stays in the foreground of a terminal of its own.
    agent = spawn('sh', ['-euc', `exec ${block}`], {
      cwd: clone,
      env,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    continue;
  }
  if (block.includes('headgate release')) await interrupt(agent);
  const options = { cwd: clone, env, timeout: COMMAND_TIMEOUT_MS } as const;
  // Not synchronously: the pods answer from this process.
  const command = spawn('sh', ['-euc', block], { ...options, stdio: ['ignore', 'inherit', 'inherit'] });
  const [status] = await once(command, 'exit');
  if (status !== 0) throw new Error(`Status ${status} of: ${block}`);
}
const left = await kube.api('GET', '/apis/headgate.io/v1alpha1/addressclaims');
if (left.status !== 404) throw new Error(`Claims are left: ${JSON.stringify(left.body)}`);
const { items } = await kube.must('GET', '/api/v1/services');
console.log(
  `Left are the Services ${items.map(({ metadata }: { metadata: { name: string } }) => metadata.name).join(', ')}`,
);
isOver = true;
await node;
await kube.stop();
process.exit(0);

/** As Ctrl-C does. */
async function interrupt(program: ChildProcess | undefined): Promise<void> {
  if (program === undefined) throw new Error('The page starts no agent');
  const exit = once(program, 'exit');
  program.kill('SIGINT');
  await exit;
}

/** Runs each pod as a server on the host's interface that answers with its name; ends those that are deleted. */
async function playNode(): Promise<void> {
  const known = new Set<string>();
  await kube.must('POST', '/api/v1/nodes', { metadata: { name: 'node-1' } });
  while (!isOver) {
    const { items } = await kube.must('GET', PODS);
    for (const { metadata } of items) {
      const path = `${PODS}/${metadata.name}`;
      if (metadata.deletionTimestamp !== undefined) await kube.api('DELETE', path, { gracePeriodSeconds: 0 });
      else if (!known.has(metadata.name)) {
        known.add(metadata.name);
        const podIP = `10.244.0.${known.size}`;
        execFileSync('ip', ['address', 'add', `${podIP}/32`, 'dev', 'eth0']);
        createServer((_, response) => response.end(`${metadata.name}\n`)).listen(8080, podIP);
        await kube.must('POST', `${path}/binding`, {
          metadata: { name: metadata.name },
          target: { kind: 'Node', name: 'node-1' },
        });
        const conditions = [{ type: 'Ready', status: 'True' }];
        await kube.must('PATCH', `${path}/status`, {
          status: { phase: 'Running', podIP, podIPs: [{ ip: podIP }], conditions },
        });
      }
    }
    await delay(100);
  }
}
