// Logs each problem once when it appears, and once when it is solved: those of load balancers as they change, and those
// that other parts of the agent report. The load balancers of one namespace, and each other part,
// have a bounded number of lines in a minute.

import { type Clock, systemClock } from '../base/clock.ts';
import { LineBudget } from '../base/line-budget.ts';
import type { Log } from '../host/log.ts';
import type { DesiredState } from '../model/desired-state.ts';
import type { Problem } from '../model/load-balancer.ts';
import { ownerOf } from '../model/names.ts';
import { subjectOfName } from '../model/object-statuses.ts';
import type { ChangeObserver } from './change-observers.ts';
import { classProblems } from './operating/class-problems.ts';
import { type FactSources, problemsOf } from './operating/load-balancer-view.ts';
import type { StatusBook } from './operating/status-book.ts';

const MORE_PROBLEMS = 'There were more problems in the last minute than the log shows';

export class ProblemLog {
  readonly #log: Log;
  /** Owner of problems (a load balancer's key, a source) → their texts → the problems. */
  readonly #known = new Map<string, ReadonlyMap<string, Problem>>();

  readonly #budget: LineBudget;

  constructor(log: Log, clock?: Clock) {
    this.#log = log;
    this.#budget = new LineBudget({
      onMore: (of, unlogged) => log.warn(MORE_PROBLEMS, { of, unlogged }),
      ...(clock && { clock }),
    });
  }

  /** `problems` are all that `owner` has now: a load balancer, or a part of the agent. */
  report(owner: string, problems: readonly Problem[]): void {
    const before = this.#known.get(owner);
    if (before === undefined && problems.length === 0) return;
    const now = new Map(problems.map((problem) => [`${problem.object} ${problem.message}`, problem]));
    for (const [text, problem] of now) {
      if (!before?.has(text) && this.#takes(owner)) this.#log.warn(problem.message, fieldsOf(problem));
    }
    for (const [text, problem] of before ?? []) {
      if (!now.has(text) && this.#takes(owner))
        this.#log.info(`Solved: ${problem.message}`, fieldsOf(problem));
    }
    if (now.size > 0) this.#known.set(owner, now);
    else this.#known.delete(owner);
  }

  #takes(owner: string): boolean {
    return this.#budget.takes(owner.includes('/') ? `namespace ${ownerOf(owner).namespace}` : owner);
  }
}

/** A Service's problem has the fields by which its changes are found in the log, too. */
function fieldsOf({ object, reason }: Problem): Readonly<Record<string, string>> {
  const { namespace, name } = subjectOfName(object);
  return { object, ...(object.startsWith('Service ') && { namespace, service: name }), reason };
}

export interface ProblemObserverOptions extends FactSources {
  readonly desired: Pick<DesiredState, 'loadBalancers' | 'statuses'>;
  readonly health: Pick<StatusBook, 'problemsOf'>;
  readonly problemLog: ProblemLog;
  readonly clock?: Clock;
}

/** After the start, until what is read only on request has been read, such as a Secret. */
const SETTLE_MS = 500;

/** Logs the problems of load balancers; at the start those that last, because others are solved before anybody can act. */
export function problemObserver(options: ProblemObserverOptions): ChangeObserver {
  const { desired, health, problemLog, clock = systemClock } = options;
  /** What has to be looked at once the start has settled; undefined afterwards, and if nothing began. */
  let waiting: Set<string> | undefined;
  const report = (keys: Iterable<string>): void => {
    for (const key of keys) {
      const loadBalancer = desired.loadBalancers.get(key);
      const problems = loadBalancer
        ? problemsOf(loadBalancer, options, health.problemsOf(key))
        : classProblems(desired.statuses.of(key));
      problemLog.report(key, problems);
    }
  };
  return {
    began(keys) {
      const some = [...keys].filter((key) => (desired.loadBalancers.get(key)?.problems ?? []).length > 0);
      const settling = new Set(some);
      waiting = settling;
      clock.after(SETTLE_MS, () => {
        waiting = undefined;
        report(settling);
      });
    },
    changed(keys) {
      if (waiting === undefined) report(keys);
      else for (const key of keys) waiting.add(key);
    },
  };
}
