// Golden cases: cases/*.txt have manifests, their haproxy.cfg, and their problems, if any. The real HAProxy checks each
// configuration.

import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { AclIds } from '../agent/haproxy/config/acl-ids.ts';
import { configText, inFileOrder } from '../agent/haproxy/config/config-text.ts';
import { logWords } from '../agent/haproxy/config/connection-log.ts';
import { needsOf } from '../agent/haproxy/config/limits.ts';
import type { RenderContext } from '../agent/haproxy/config/render-context.ts';
import { sharedTables } from '../agent/haproxy/config/shared-tables.ts';
import { runCommand } from '../agent/host/run-command.ts';
import type { KubernetesObject } from '../agent/kubernetes/objects.ts';
import type { TranslateSettings } from '../agent/translate/translate-settings.ts';
import { requires } from './support/basics/requirements.ts';
import { haproxyExecutable } from './support/haproxy/haproxy.ts';
import { clusterOf } from './support/values/build.ts';
import { type CaseFile, isUpdating, readCases, writeCase } from './support/values/case-file.ts';
import { objectsOf, settingsOf } from './support/values/manifests.ts';
import { translateCluster } from './support/values/translated.ts';
import { makeCredentials } from './support/vrrp/pair-credentials.ts';

const test = requires(ava, { haproxy: true });
const withOpenssl = requires(ava, { haproxy: true, programs: ['openssl'] });

const CONTEXT: RenderContext = {
  adminSocket: '/run/headgate/haproxy/admin.sock',
  peersSocket: '/run/headgate/haproxy/peers.sock',
  mirrorSocket: '/run/headgate/haproxy/mirrors.sock',
  authSocket: '/run/headgate/haproxy/auth.sock',
  serverState: '/run/headgate/haproxy/servers.state',
  socketMode: '600',
  namespaceConnections: 1_800,
  maxConnections: 2_000,
  threads: 0,
  graceMs: 50,
  hardStopAfter: 1_800_000,
  maxReloads: 16,
  localPeer: 'headgate',
  user: '',
  group: '',
  certificates: '/run/headgate/haproxy/certificates',
  routes: '/var/lib/headgate/haproxy/routes',
  pages: '/var/lib/headgate/haproxy/pages',
  keys: '/var/lib/headgate/haproxy/keys',
  forgetsSessions: false,
  hasRoutes: false,
  asksServers: false,
  verifiesTokens: false,
  reportsErrors: false,
  countsRoutes: false,
  boot: '',
  log: logWords({ kind: 'journald' }, ''),
  logFormat: 'json',
  aclId: new AclIds().idOf,
};

/** The configuration and the problems in the form of the case. */
async function rendered(
  objects: readonly KubernetesObject[],
  settings: Partial<TranslateSettings>,
  context = CONTEXT,
): Promise<readonly [string, string]> {
  const model = translateCluster(clusterOf(objects), settings);
  const loadBalancers = inFileOrder(model.loadBalancers);
  const { chunks, structure } = await configText(loadBalancers, {
    ...context,
    reportsErrors: needsOf(loadBalancers).reportsErrors,
  });
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

  await isTakenWithoutWarning(t, await temporaryFolder(t), config);
});

for (const file of readCases(new URL('cases/', import.meta.url))) test(`Case: ${file.title}`, golden, file);

withOpenssl('A configuration with a pair, a user and threads gives no warning', async (t) => {
  const folder = await temporaryFolder(t);
  const ends = { address: '127.0.0.1', peers: ['::1'], port: 17_090 };
  const tables = sharedTables(ends, '', join(folder, 'haproxy.cfg'));
  await copyFile(await makeCredentials(folder), tables.trustedFile);
  const of = { localPeer: tables.ownName, user: 'nobody', group: 'nogroup', threads: 1 };
  const context = { ...CONTEXT, ...of, sharedTables: tables };
  const affinity = readCases(new URL('cases/', import.meta.url)).find(({ title }) => /affinity/.test(title));
  const [config] = await rendered(objectsOf(affinity?.parts[0] ?? ''), {}, context);
  t.regex(config, /server ::1:17090 \[::1\]:17090\n[\s\S]*stick-table/);
  await isTakenWithoutWarning(t, folder, config);
});

test('The same objects in another order give the same file', async (t) => {
  for (const { parts } of readCases(new URL('cases/', import.meta.url))) {
    const [manifests = ''] = parts;
    const objects = objectsOf(manifests);
    const settings = settingsOf(manifests);
    t.deepEqual(await rendered([...objects].reverse(), settings), await rendered(objects, settings));
  }
});

async function temporaryFolder(t: ExecutionContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-case-'));
  t.teardown(() => rm(folder, { recursive: true }));
  return folder;
}

/** Warnings count as errors, because the next version refuses what one version warns of. */
async function isTakenWithoutWarning(t: ExecutionContext, folder: string, config: string): Promise<void> {
  const path = join(folder, 'haproxy.cfg');
  // HAProxy warns if this file, which the agent writes, is missing.
  const serverState = join(folder, 'servers.state');
  await writeFile(serverState, '1\n');
  await writeFile(path, config.replace(CONTEXT.serverState, serverState));
  const args = ['-c', '-dW', '-f', path];
  const { exitCode, stderr } = await runCommand(haproxyExecutable, args, { timeout: 30_000 });
  t.is(exitCode, 0, stderr);
  t.notRegex(stderr, /WARNING/);
}
