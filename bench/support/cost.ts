// Measures the processor time of a change: the time that a process uses during changes, minus the time that it uses in an
// equal period without changes. The sides take turns, so that one rests while the other has changes.

import { median } from './statistics.ts';
import { pause } from './until.ts';
import { processorTime } from './usage.ts';

export interface Side {
  readonly pid: number;
  readonly change: () => Promise<void> | void;
}

/** Milliseconds of processor time for each change. */
export interface Cost {
  /** Without the time that the process uses at rest; one value for each round. */
  readonly rounds: readonly number[];
  readonly median: number;
  /** With the time that the process uses at rest: the median of the rounds. */
  readonly everything: number;
}

export interface CostOptions {
  readonly rounds: number;
  readonly changes: number;
  /** Milliseconds between two changes. */
  readonly betweenMs: number;
  /** Milliseconds of one turn, from the first change until the work after the last change has ended. */
  readonly turnMs: number;
}

/** Returns a cost for each side, in their order. A single side takes turns with a rest. */
export async function costs(sides: readonly Side[], options: CostOptions): Promise<readonly Cost[]> {
  const { rounds, changes, betweenMs, turnMs } = options;
  const turns: readonly (Side | undefined)[] = sides.length > 1 ? sides : [...sides, undefined];
  const times = (): number[] => sides.map(({ pid }) => processorTime(pid));
  const took = sides.map(() => ({ busy: [] as number[], resting: [] as number[] }));
  for (let round = 0; round < rounds; round++) {
    const resting = sides.map(() => [] as number[]);
    for (const turn of turns) {
      const [began, before] = [performance.now(), times()];
      for (let n = 0; turn !== undefined && n < changes; n++)
        await Promise.all([turn.change(), pause(betweenMs)]);
      await pause(Math.max(0, began + turnMs - performance.now()));
      for (const [at, time] of times().entries()) {
        const taken = time - (before[at] ?? 0);
        if (sides[at] === turn) took[at]?.busy.push(taken);
        else resting[at]?.push(taken);
      }
    }
    for (const [at, each] of resting.entries()) took[at]?.resting.push(median(each));
  }
  return took.map(({ busy, resting }) => {
    const differences = busy.map((time, round) => (time - (resting[round] ?? 0)) / changes);
    return { rounds: differences, median: median(differences), everything: median(busy) / changes };
  });
}
