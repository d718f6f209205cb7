// Reads the statistics of one worker in portions, so that neither HAProxy nor the agent is held for more than about a
// millisecond. HAProxy numbers the proxies of its file from 1 on, and tells one of them by its number. A name would not
// do: before 2.8 a listener's frontend and its backend have the same one.

import type { Lane } from '../socket/pipeline.ts';
import type { Runtime } from '../socket/runtime.ts';
import { type StatRow, StatRows } from './stat-rows.ts';

export interface WorkerReaderOptions {
  readonly runtime: Pick<Runtime, 'askAll'>;
  readonly lane: Lane;
  /** What `show stat` tells of a proxy: the sum of 1 (frontend), 2 (backend) and 4 (servers). */
  readonly kinds: number;
  readonly onRow: (row: StatRow) => void;
  /** Waits before the next portion. `tookMs`: how long this one has taken. */
  readonly pause: (tookMs: number) => Promise<void>;
  readonly now: () => number;
}

/** Proxies asked for at a time. */
const PORTION = 16;

/** Errors: as Runtime.askAll(), and RUNTIME_REPLY. */
export async function readWorker(options: WorkerReaderOptions): Promise<void> {
  const { runtime, lane, kinds, onRow, pause, now } = options;
  let count = 0;
  const rows = new StatRows((row) => {
    count++;
    onRow(row);
  });
  for (let first = 1; ; first += PORTION) {
    const began = now();
    const questions = Array.from({ length: PORTION }, (_, at) => `show stat ${first + at} ${kinds} -1`);
    const answers = await runtime.askAll(questions, { lane });
    count = 0;
    for (const answer of answers) rows.read(answer);
    // No proxy has such a number any more.
    if (count === 0) return;
    await pause(now() - began);
  }
}
