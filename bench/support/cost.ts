// What a change costs a process: the processor time that it takes while there are changes, less what it takes in as much
// time without any. The sides take turns, so that one has none while the other has some.

import { median } from './statistics.ts';
import { pause } from './until.ts';
import { processorTime } from './usage.ts';

export interface Side {
  readonly pid: number;
  readonly change: () => Promise<void> | void;
}

/** Milliseconds of processor time for each change. */
export interface Cost {
  /** Less what the process takes anyway; one for each round. */
  readonly rounds: readonly number[];
  readonly median: number;
  /** All that it took meanwhile: the median of the rounds. */
  readonly everything: number;
}

export interface CostOptions {
  readonly rounds: number;
  readonly changes: number;
  /** Milliseconds between two changes. */
  readonly between: number;
  /** Milliseconds from the first change to the end of what follows from the last one. */
  readonly stretch: number;
}

/** Of each side, in their order. One that is alone rests while nobody has changes. */
export async function costs(sides: readonly Side[], options: CostOptions): Promise<readonly Cost[]> {
  const { rounds, changes, between, stretch } = options;
  const turns: readonly (Side | undefined)[] = sides.length > 1 ? sides : [...sides, undefined];
  const times = (): number[] => sides.map(({ pid }) => processorTime(pid));
  const took = sides.map(() => ({ busy: [] as number[], resting: [] as number[] }));
  for (let round = 0; round < rounds; round++) {
    const resting = sides.map(() => [] as number[]);
    for (const turn of turns) {
      const [began, before] = [performance.now(), times()];
      for (let n = 0; turn !== undefined && n < changes; n++)
        await Promise.all([turn.change(), pause(between)]);
      await pause(Math.max(0, began + stretch - performance.now()));
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
