// A controller that renders, checks and reloads everything on each change of a folder of manifests:
// `full-reload-process.ts FOLDER HAPROXY`. Changes during a reload go together into the next reload. When it has no work
// left it answers any message with its reloads.

import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { HeadgateError } from '../../agent/base/errors.ts';
import { askOnce } from '../../agent/haproxy/socket/ask-once.ts';
import { globalSection, type OwnHaproxy, startHaproxy } from '../support/haproxy.ts';
import { answer, over } from '../support/parent.ts';
import { withScratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';
import { type PlainService, plainConfig, readPlain } from './plain-service.ts';

export interface Reloads {
  /** Milliseconds of each reload, from the event to the new worker's first answer. */
  readonly reloads: readonly number[];
}

const [folder = '', executable = ''] = process.argv.slice(2);
const run = promisify(execFile);

async function workerPid({ adminSocket }: OwnHaproxy): Promise<string> {
  const info = await askOnce(adminSocket, 'show info').catch(() => '');
  return /^Stopping: 1$/m.test(info) ? '' : (/^Pid: (\d+)$/m.exec(info)?.[1] ?? '');
}

async function reload(haproxy: OwnHaproxy, services: ReadonlyMap<string, PlainService>): Promise<void> {
  const { config, adminSocket, masterSocket } = haproxy;
  writeFileSync(config, globalSection(adminSocket) + plainConfig(services.values()));
  await run(executable, ['-c', '-f', config]);
  const before = await workerPid(haproxy);
  // A master that executes itself again after the reload before refuses connections for a moment.
  await until('The master takes the order', () => isOrdered(masterSocket), { every: 1 });
  const isNew = async (): Promise<boolean> => {
    const pid = await workerPid(haproxy);
    return pid !== '' && pid !== before;
  };
  await until('A new worker answers', isNew, { every: 1 });
}

/** HAProxy before 2.7 closes the connection without an answer. */
function isOrdered(masterSocket: string): Promise<boolean> {
  return askOnce(masterSocket, 'reload', { timeoutMs: 30_000 }).then(
    () => true,
    (error) => !(error instanceof HeadgateError && error.code === 'RUNTIME_CONNECT'),
  );
}

await withScratch(async (scratch) => {
  const services = new Map<string, PlainService>();
  const read = (name: string): void => {
    const service = readPlain(readFileSync(join(folder, name), 'latin1'));
    services.set(service.name, service);
  };
  for (const name of readdirSync(folder)) if (name.endsWith('.yaml') && !name.startsWith('.')) read(name);
  const body = plainConfig(services.values());
  const haproxy = await startHaproxy(scratch, 'full-reload', executable, body, { master: true });

  const reloads: number[] = [];
  const changed = new Map<string, number>();
  let working: Promise<void> | undefined;
  const work = async (): Promise<void> => {
    while (changed.size > 0) {
      const since = Math.min(...changed.values());
      for (const name of changed.keys()) read(name);
      changed.clear();
      await reload(haproxy, services);
      reloads.push(performance.now() - since);
    }
    working = undefined;
  };
  const watcher = watch(folder, (_, name) => {
    if (name === null || name.startsWith('.')) return;
    if (!changed.has(name)) changed.set(name, performance.now());
    working ??= work();
  });
  process.on('message', async () => {
    while (working !== undefined) await Promise.all([working, delay(5)]);
    answer({ reloads: reloads.splice(0) });
  });
  await over;
  watcher.close();
});
process.exit();
