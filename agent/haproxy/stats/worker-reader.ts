// Reads the statistics of one worker in portions, so that neither HAProxy nor the agent is busy with them for long.
// HAProxy numbers its proxies from 1 in the order of its file, and answers for one number; before 2.8 a name is not
// unique, because a listener's frontend and backend have the same.

import { Slice } from '../../base/slice.ts';
import type { Lane } from '../socket/pipeline.ts';
import type { Runtime } from '../socket/runtime.ts';
import { parseStatRows, type StatRow } from './stat-rows.ts';

export interface WorkerReaderOptions {
  readonly runtime: Pick<Runtime, 'askAll'>;
  readonly lane: Lane;
  /** The rows of a proxy that `show stat` returns: the sum of 1 (frontend), 2 (backend) and 4 (servers). */
  readonly kinds: number;
  /** `proxy`: its number in this worker. */
  readonly onRow: (row: StatRow, proxy: number) => void;
  /** Waits before the next portion. `tookMs`: the time that this portion took. */
  readonly pause: (tookMs: number) => Promise<void>;
  readonly now: () => number;
}

/** The rest after a portion is this many times its duration, so a round uses at most a tenth of one HAProxy thread. */
export const REST_FACTOR = 10;
/** Proxies in a portion. */
const PORTION = 16;

/** Errors: those of Runtime.askAll(); RUNTIME_REPLY. */
export async function readWorker(options: WorkerReaderOptions): Promise<void> {
  const { runtime, lane, kinds, onRow, pause, now } = options;
  for (let first = 1; ; first += PORTION) {
    const began = now();
    const questions = Array.from({ length: PORTION }, (_, at) => `show stat ${first + at} ${kinds} -1`);
    const answers = await runtime.askAll(questions, { lane });
    const slice = new Slice();
    let count = 0;
    for (const [at, answer] of answers.entries()) {
      const rows = parseStatRows(answer);
      for (const row of rows) onRow(row, first + at);
      count += rows.length;
      if (slice.isOver) await slice.breathe();
    }
    // Behind the last proxy.
    if (count === 0) return;
    await pause(now() - began);
  }
}
