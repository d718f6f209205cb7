// Logs the problems of load balancers when they appear, and when they are solved.

import type { DesiredState } from '../model/desired-state.ts';
import type { ChangeObserver } from './change-observers.ts';
import { problemsOf, type ViewSources } from './load-balancer-view.ts';
import type { ProblemLog } from './problem-log.ts';
import type { StatusBook } from './status-book.ts';

export interface ProblemObserverOptions extends ViewSources {
  readonly desired: Pick<DesiredState, 'loadBalancers'>;
  readonly health: Pick<StatusBook, 'problemsOf'>;
  readonly problemLog: ProblemLog;
}

export class ProblemObserver implements ChangeObserver {
  readonly #options: ProblemObserverOptions;

  constructor(options: ProblemObserverOptions) {
    this.#options = options;
  }

  began(keys: ReadonlySet<string>): void {
    const { desired, problemLog } = this.#options;
    for (const key of keys) problemLog.report(key, desired.loadBalancers.get(key)?.problems ?? []);
  }

  changed(keys: ReadonlySet<string>): void {
    const { desired, health, problemLog } = this.#options;
    for (const key of keys) {
      const loadBalancer = desired.loadBalancers.get(key);
      const problems = loadBalancer && problemsOf(loadBalancer, this.#options, health.problemsOf(key));
      problemLog.report(key, problems ?? []);
    }
  }
}
