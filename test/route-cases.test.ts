// Golden cases of Gateways, routes and Ingresses: route-cases/*.txt have manifests, the load balancers that follow from them, the
// rows of HAProxy's maps, and the statuses and problems that their authors get. A bug report becomes such a file. The real
// HAProxy checks what `headgate render` writes of each.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ava from 'ava';
import { yamlText } from '../agent/base/yaml.ts';
import { inFileOrder } from '../agent/haproxy/config/config-text.ts';
import { tablesOf } from '../agent/haproxy/routes/tables.ts';
import { runCommand } from '../agent/host/run-command.ts';
import type { DesiredState } from '../agent/model/desired-state.ts';
import type { Listener } from '../agent/model/load-balancer.ts';
import { requires } from './support/basics/requirements.ts';
import { haproxyExecutable } from './support/haproxy/haproxy.ts';
import { type CaseFile, isUpdating, readCases, writeCase } from './support/values/case-file.ts';
import { objectsOf, settingsOf } from './support/values/manifests.ts';
import { translated } from './support/values/translated.ts';

const test = requires(ava, { haproxy: true });

const HEADGATE = fileURLToPath(new URL('../bin/headgate', import.meta.url));
const COMMAND = { timeout: 60_000 };

/** The rows of the maps, one on a line: map, key, value. */
function rowsOf(listeners: readonly Listener[]): string {
  return listeners
    .filter(({ routing }) => routing !== undefined)
    .flatMap((listener) => [...tablesOf(listener).values()].flat())
    .map(({ map, key, value }) => `${map} ${key} ${value}\n`)
    .join('');
}

/** Not of classes, whose statuses are the same in all cases. */
function answersOf({ statuses, loadBalancers }: DesiredState): string {
  const names = [...statuses.names()].filter((name) => !name.startsWith('GatewayClass ')).sort();
  const given = Object.fromEntries(names.map((name) => [name, statuses.partsOf(name)]));
  const problems = [...loadBalancers.values()].flatMap((each) => each.problems);
  const texts = problems.map(({ object, reason, message }) => `${object}: ${reason}: ${message}`);
  return yamlText({ statuses: given, problems: texts });
}

const golden = test.macro(async (t, file: CaseFile) => {
  const [manifests = '', ...expected] = file.parts;
  const desired = translated(objectsOf(manifests), settingsOf(manifests));
  const loadBalancers = inFileOrder(desired.loadBalancers);
  const listeners = loadBalancers.flatMap((each) => each.listeners);
  const parts = [yamlText(loadBalancers), rowsOf(listeners), answersOf(desired)];
  if (isUpdating) await writeCase(file, [manifests, ...parts]);
  else for (const [at, part] of parts.entries()) t.is(part, expected[at] ?? '');

  const folder = await mkdtemp(join(tmpdir(), 'headgate-route-case-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const path = join(folder, 'objects.yaml');
  await writeFile(path, manifests);
  const folders = ['--output', folder, '--state-dir', folder, '--runtime-dir', folder];
  const rendered = await runCommand(HEADGATE, ['render', '--manifests', path, ...folders], COMMAND);
  t.is(rendered.exitCode, 0, rendered.stderr);
  const checked = await runCommand(
    haproxyExecutable,
    ['-c', '-f', join(folder, 'haproxy', 'haproxy.cfg')],
    COMMAND,
  );
  t.is(checked.exitCode, 0, checked.stderr);
});

for (const file of readCases(new URL('route-cases/', import.meta.url)))
  test(`Case: ${file.title}`, golden, file);
