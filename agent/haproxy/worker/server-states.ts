// Keeps the results of health checks over a reload: HAProxy itself takes every member for up until its first failed
// check. Writes the file that a booting worker reads (`server-state-file`), and empties it after the reload, because a
// worker that boots later must not read old results.
// Why: docs/design/decisions/0017-handing-on-down-members.md

import { statSync } from 'node:fs';
import { writeAtomically } from '../../host/atomic-file.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import type { BootedWorker } from '../booted-worker.ts';
import type { HaproxyPaths } from '../paths.ts';
import { readServers } from '../readback.ts';
import { keptRows } from '../socket/servers-state.ts';

type ServerStateFile = Pick<HaproxyPaths, 'serverState' | 'fileMode'>;

/** A file without rows: the version of the format. */
const EMPTY = '1\n';

/**
 * Writes the results of these workers' checks for all pools that `next` has with the same monitor; the first worker that has
 * a pool counts. Errors: those of the connection, FILE_WRITE.
 */
export async function keepServerStates(
  workers: readonly BootedWorker[],
  next: ReadonlyMap<string, LoadBalancer>,
  file: ServerStateFile,
): Promise<void> {
  const names = new Map<BootedWorker, string[]>();
  for (const { key, listeners } of next.values())
    for (const listener of listeners) {
      const worker = workers.find((each) => hasResults(each, key, listener));
      if (worker !== undefined) names.get(worker)?.push(listener.name) ?? names.set(worker, [listener.name]);
    }
  const rows: string[] = [];
  let header = '';
  for (const [{ runtime }, own] of names)
    await readServers(runtime, own, (_, answer) => {
      const kept = keptRows(answer);
      header ||= kept.header;
      rows.push(...kept.rows);
    });
  if (rows.length === 0) return forgetServerStates(file);
  const lines = [header, ...rows].filter(Boolean).map((line) => `${line}\n`);
  await writeAtomically(file.serverState, [EMPTY, ...lines], { mode: file.fileMode });
}

/** Results of another monitor do not count; for a worker that booted from an unknown file its monitor is assumed. */
function hasResults({ running, booted }: BootedWorker, key: string, { name, pool }: Listener): boolean {
  if (pool.monitor === undefined || !running.has(name)) return false;
  const before = booted.get(key)?.listeners.find((each) => each.name === name);
  return before === undefined || JSON.stringify(before.pool.monitor) === JSON.stringify(pool.monitor);
}

/** Errors: FILE_WRITE. */
export async function forgetServerStates({ serverState, fileMode: mode }: ServerStateFile): Promise<void> {
  if (statSync(serverState, { throwIfNoEntry: false })?.size === EMPTY.length) return;
  await writeAtomically(serverState, [EMPTY], { mode });
}
