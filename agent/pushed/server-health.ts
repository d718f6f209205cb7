// The `server-state-file` of a pushed text: what checks have found, for the moment in which a new worker boots, and nothing
// afterwards, because a worker that boots later must not read old results.

import { writeAtomically } from '../host/atomic-file.ts';
import { healthRows, NO_HEALTH } from './health-rows.ts';
import type { PushedWorker } from './pushed-worker.ts';
import type { PushedText } from './text/pushed-text.ts';

/** `allowed`: the only path that is written. Errors: those of the connection, FILE_WRITE. */
export async function keepHealth(
  { runtime, text }: PushedWorker,
  next: PushedText,
  allowed: string,
): Promise<void> {
  if (!namesFile(next, allowed)) return;
  const rows = healthRows(await runtime.ask('show servers state'), text, next);
  await writeAtomically(allowed, [rows]);
}

/** Never rejects: a file that cannot be written now could not be written before either. */
export async function forgetHealth(next: PushedText, allowed: string): Promise<void> {
  if (namesFile(next, allowed)) await writeAtomically(allowed, [NO_HEALTH]).catch(() => undefined);
}

function namesFile({ sections }: PushedText, path: string): boolean {
  return sections.get('global')?.lines.includes(`server-state-file ${path}`) ?? false;
}
