// Bounds how many lines of one sort the log gets in a minute for each namespace, or other author, so that none fills it; the
// lines beyond that are counted.

import { type Clock, systemClock } from './clock.ts';

export interface LineBudgetOptions {
  /** At the end of a minute with more lines than the budget. */
  readonly onMore: (author: string, unlogged: number) => void;
  readonly clock?: Clock;
}

const PERIOD_MS = 60_000;
/** The most lines of one author in a period. */
const MAX_LINES = 100;

export class LineBudget {
  readonly #options: LineBudgetOptions;
  readonly #clock: Clock;
  /** By author, in the period under way. */
  readonly #lines = new Map<string, number>();

  constructor(options: LineBudgetOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** False: the line is counted only. */
  takes(author: string): boolean {
    if (this.#lines.size === 0) this.#clock.after(PERIOD_MS, () => this.#end());
    const lines = (this.#lines.get(author) ?? 0) + 1;
    this.#lines.set(author, lines);
    return lines <= MAX_LINES;
  }

  #end(): void {
    for (const [author, lines] of this.#lines)
      if (lines > MAX_LINES) this.#options.onMore(author, lines - MAX_LINES);
    this.#lines.clear();
  }
}
