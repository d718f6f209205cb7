// Says each problem once in the log when it comes, and once when it is gone.

import type { Log } from '../host/log.ts';
import type { Problem } from '../model/load-balancer.ts';

export class ProblemLog {
  readonly #log: Log;
  /** What a problem belongs to (a load balancer's key, a source) to its problems' texts. */
  readonly #known = new Map<string, ReadonlyMap<string, Problem>>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** `problems` are all that `owner` has now. */
  report(owner: string, problems: readonly Problem[]): void {
    const before = this.#known.get(owner);
    if (before === undefined && problems.length === 0) return;
    const now = new Map(problems.map((problem) => [`${problem.object} ${problem.message}`, problem]));
    for (const [text, { object, reason, message }] of now) {
      if (!before?.has(text)) this.#log.warn(message, { object, reason });
    }
    for (const [text, { object, reason, message }] of before ?? []) {
      if (!now.has(text)) this.#log.info(`Solved: ${message}`, { object, reason });
    }
    if (now.size > 0) this.#known.set(owner, now);
    else this.#known.delete(owner);
  }
}

/** How many problems there are of each reason. */
export function problemCounts(problems: readonly Problem[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { reason } of problems) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  return counts;
}
