// Golden cases: cases/*.txt hold manifests, the haproxy.cfg they become, and the problems they have, if any.
// Each file is also shown to the real HAProxy.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava from 'ava';
import { AclIds } from '../agent/haproxy/config/acl-ids.ts';
import { configText, inFileOrder } from '../agent/haproxy/config/config-text.ts';
import type { RenderContext } from '../agent/haproxy/config/render-context.ts';
import type { KubernetesObject } from '../agent/kubernetes/objects.ts';
import { runCommand } from '../agent/run-command.ts';
import type { TranslateSettings } from '../agent/translate.ts';
import { clusterOf } from './support/build.ts';
import { type CaseFile, isUpdating, readCases, writeCase } from './support/case-file.ts';
import { haproxyExecutable } from './support/haproxy.ts';
import { objectsOf, settingsOf } from './support/manifests.ts';
import { requires } from './support/requirements.ts';
import { translateCluster } from './support/translated.ts';

const test = requires(ava, { haproxy: true });

const CONTEXT: RenderContext = {
  adminSocket: '/run/headgate/haproxy/admin.sock',
  peersSocket: '/run/headgate/haproxy/peers.sock',
  serverState: '/run/headgate/haproxy/servers.state',
  startScript: '/var/lib/headgate/haproxy/start.lua',
  socketMode: '600',
  maxConnections: 2_000,
  threads: 0,
  hardStopAfter: 1_800_000,
  maxReloads: 16,
  localPeer: 'headgate',
  user: '',
  group: '',
  aclId: new AclIds().idOf,
};

/** The configuration and the problems, as they stand in the case. */
async function rendered(
  objects: readonly KubernetesObject[],
  settings: Partial<TranslateSettings>,
): Promise<readonly [string, string]> {
  const model = translateCluster(clusterOf(objects), settings);
  const loadBalancers = inFileOrder(model.loadBalancers);
  const { chunks, structure } = await configText(loadBalancers, CONTEXT);
  const problems = loadBalancers.flatMap((loadBalancer) =>
    loadBalancer.problems.map(({ object, reason, message }) => `${object}: ${reason}: ${message}\n`),
  );
  return [chunks.join('').replace(structure, '<structure>'), problems.join('')];
}

const golden = test.macro(async (t, file: CaseFile) => {
  const [manifests = '', expected = '', expectedProblems = ''] = file.parts;
  const [config, problems] = await rendered(objectsOf(manifests), settingsOf(manifests));
  if (isUpdating) await writeCase(file, [manifests, config, ...(problems === '' ? [] : [problems])]);
  else t.is(config, expected);
  if (!isUpdating) t.is(problems, expectedProblems);

  const folder = await mkdtemp(join(tmpdir(), 'headgate-case-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'haproxy.cfg');
  // HAProxy warns where the file is missing that the agent keeps there for it.
  const serverState = join(folder, 'servers.state');
  await writeFile(serverState, '1\n');
  await writeFile(path, config.replace(CONTEXT.serverState, serverState));
  const { exitCode, stderr } = await runCommand(haproxyExecutable, ['-c', '-f', path], { timeout: 30_000 });
  t.is(exitCode, 0, stderr);
  t.notRegex(stderr, /WARNING/);
});

for (const file of readCases(new URL('cases/', import.meta.url))) test(`Case: ${file.title}`, golden, file);

test('The same objects in another order become the same file', async (t) => {
  for (const { parts } of readCases(new URL('cases/', import.meta.url))) {
    const [manifests = ''] = parts;
    const objects = objectsOf(manifests);
    const settings = settingsOf(manifests);
    t.deepEqual(await rendered([...objects].reverse(), settings), await rendered(objects, settings));
  }
});
