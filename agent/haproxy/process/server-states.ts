// Keeps what health checks have found over a reload: a member that is down in the old worker is down in the new one
// from its first moment, until checks there say otherwise. HAProxy by itself would take every member for up.
// Writes the file that a booting worker reads (`server-state-file`), and empties it afterwards: a worker that boots for
// another reason must not go by what was true once.

import { writeAtomically } from '../../atomic-file.ts';
import { Slice } from '../../slice.ts';
import { downRows } from '../socket/readings.ts';
import type { Worker } from '../worker.ts';

const QUESTIONS = 64;
/** The version of the format; a file without rows. */
const EMPTY = '1\n';

/** Writes down the members that this worker's checks have found down. Errors: those of the connection, FILE_WRITE. */
export async function keepServerStates({ runtime, running }: Worker, path: string): Promise<void> {
  const names: string[] = [];
  for (const name of running.names()) {
    const [first] = running.get(name)?.servers.values() ?? [];
    // All servers of a pool have a check, or none has.
    if (first !== undefined && first.check !== 'none') names.push(name);
  }
  const slice = new Slice();
  const rows: string[] = [];
  let header = '';
  for (let at = 0; at < names.length; at += QUESTIONS) {
    const answers = await Promise.all(
      names
        .slice(at, at + QUESTIONS)
        .map((name) => runtime.ask(`show servers state ${name}`, { lane: 'bulk' })),
    );
    for (const answer of answers) {
      const down = downRows(answer);
      header ||= down.header;
      rows.push(...down.rows);
      if (slice.isOver) await slice.breathe();
    }
  }
  await writeAtomically(path, [EMPTY, ...[header, ...rows].filter(Boolean).map((line) => `${line}\n`)]);
}

/** Errors: FILE_WRITE. */
export async function forgetServerStates(path: string): Promise<void> {
  await writeAtomically(path, [EMPTY]);
}
