// Keeps what health checks have found over a reload: a member that is down in the old worker is down in the new one
// from its first moment, until checks there say otherwise, and one that is up falls by as many failed checks as ever.
// HAProxy by itself would take every member for up, until the first failed check.
// Writes the file that a booting worker reads (`server-state-file`), and empties it afterwards: a worker that boots for
// another reason must not go by what was true once.

import { statSync } from 'node:fs';
import { Slice } from '../../base/slice.ts';
import { writeAtomically } from '../../host/atomic-file.ts';
import type { Listener, LoadBalancer } from '../../model/load-balancer.ts';
import type { HaproxyPaths } from '../paths.ts';
import { keptRows } from '../socket/servers-state.ts';
import type { BootedWorker } from '../worker.ts';

type ServerStateFile = Pick<HaproxyPaths, 'serverState' | 'fileMode'>;

const QUESTIONS = 64;
/** The version of the format; a file without rows. */
const EMPTY = '1\n';

/**
 * Writes down what this worker's checks have found, of all pools that `next` has with the same
 * monitor: another one has not judged them yet. Errors: those of the connection, FILE_WRITE.
 */
export async function keepServerStates(
  worker: BootedWorker,
  next: ReadonlyMap<string, LoadBalancer>,
  { serverState: path, fileMode: mode }: ServerStateFile,
): Promise<void> {
  const { runtime } = worker;
  const names: string[] = [];
  for (const { key, listeners } of next.values())
    for (const listener of listeners) if (isStillJudged(worker, key, listener)) names.push(listener.name);
  const slice = new Slice();
  const rows: string[] = [];
  let header = '';
  for (let at = 0; at < names.length; at += QUESTIONS) {
    const questions = names.slice(at, at + QUESTIONS).map((name) => `show servers state ${name}`);
    const answers = await runtime.askAll(questions, { lane: 'bulk' });
    for (const answer of answers) {
      const kept = keptRows(answer);
      header ||= kept.header;
      rows.push(...kept.rows);
      if (slice.isOver) await slice.breathe();
    }
  }
  if (rows.length === 0) return forgetServerStates({ serverState: path, fileMode: mode });
  const lines = [header, ...rows].filter(Boolean).map((line) => `${line}\n`);
  await writeAtomically(path, [EMPTY, ...lines], { mode });
}

/** Of a worker that booted from an unknown file it is taken for granted. */
function isStillJudged({ running, booted }: BootedWorker, key: string, { name, pool }: Listener): boolean {
  if (pool.monitor === undefined || !running.has(name)) return false;
  const before = booted.get(key)?.listeners.find((each) => each.name === name);
  return before === undefined || JSON.stringify(before.pool.monitor) === JSON.stringify(pool.monitor);
}

/** Costs one look where there is nothing to forget. Errors: FILE_WRITE. */
export async function forgetServerStates({ serverState, fileMode: mode }: ServerStateFile): Promise<void> {
  if (statSync(serverState, { throwIfNoEntry: false })?.size === EMPTY.length) return;
  await writeAtomically(serverState, [EMPTY], { mode });
}
