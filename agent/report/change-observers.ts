// Tells what became of load balancers to all who want to know: the cluster, the peer, the log and the status page.

import type { Pair } from '../pair/pair.ts';
import type { Model } from '../translate/translate.ts';
import { type Dataplanes, dataplaneProblems } from './dataplane-problems.ts';
import type { Operating } from './operating.ts';
import type { Overview } from './overview.ts';
import type { ProblemLog } from './problem-log.ts';
import type { Reporter } from './reporter.ts';

export interface TellingOptions extends Dataplanes {
  readonly model: Model;
  readonly operating: Operating;
  /** undefined where there is no cluster. */
  readonly reporter: Reporter | undefined;
  /** undefined where this host has no peer. */
  readonly pair: Pair | undefined;
  readonly overview: Overview;
  readonly problemLog: ProblemLog;
}

export class Telling {
  readonly #options: TellingOptions;

  constructor(options: TellingOptions) {
    this.#options = options;
  }

  /** The agent begins with what is wanted now; nothing is known yet of how it is served. */
  first(): void {
    const { model, pair, overview, problemLog } = this.#options;
    const { loadBalancers } = model;
    for (const { key, problems } of loadBalancers.values()) problemLog.report(key, problems);
    pair?.touched(loadBalancers.keys());
    overview.mark(loadBalancers.keys());
  }

  /** The loop has gone through these, or keepalived is given other VIPs of them. */
  touched(keys: Iterable<string>): void {
    const { reporter, pair, operating, overview } = this.#options;
    reporter?.report(keys);
    pair?.touched(keys);
    operating.touched(keys);
    this.#logProblems(keys);
    overview.mark(keys);
  }

  /** Checks have found something else of members of these. */
  checked(keys: Iterable<string>): void {
    const { operating, overview } = this.#options;
    operating.touched(keys);
    overview.mark(keys);
  }

  /** The operating status of these is another one. */
  operatesOtherwise(keys: Iterable<string>): void {
    this.#options.reporter?.report(keys);
    this.#logProblems(keys);
  }

  #logProblems(keys: Iterable<string>): void {
    const { model, operating, problemLog } = this.#options;
    for (const key of keys) {
      const own = model.loadBalancers.get(key);
      const problems = own && [
        ...own.problems,
        ...dataplaneProblems(own, this.#options),
        ...operating.book.problemsOf(key),
      ];
      problemLog.report(key, problems ?? []);
    }
  }
}
