// What an engine has counted in the last minute: what was tried, and what failed. Pure: takes what happened between two
// readings, in the order in which they were made.

import type { MemberFailures } from './recent-failures.ts';

/** What happened between two readings. */
export interface Interval {
  readonly unit: MemberFailures['unit'];
  readonly tried: number;
  readonly failed: number;
  readonly hasSuccess: boolean;
}

/** Fewer failures are no more than an accident. */
const LEAST_FAILURES = 3;
/** From this share on some clients notice. */
const NOTICED_SHARE = 0.1;

/** The intervals of the last minute that have failures, or follow one that has. */
export class FailureWindow {
  readonly #lengthMs: number;
  #intervals: readonly (Interval & { readonly endedAt: number })[] = [];

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs;
  }

  /** False: nothing has failed in the last minute. */
  get isOpen(): boolean {
    return this.#intervals.some(({ failed }) => failed > 0);
  }

  /** `endedAt`: monotonic milliseconds. */
  add(interval: Interval, endedAt: number): void {
    const kept = this.#intervals.filter((each) => each.endedAt > endedAt - this.#lengthMs);
    this.#intervals = kept.length > 0 || interval.failed > 0 ? [...kept, { ...interval, endedAt }] : [];
  }

  /** Since the last success if there is none any more; `isAll`: it is known that nothing has succeeded. */
  sum(): MemberFailures {
    const last = this.#intervals.findLastIndex(({ hasSuccess }) => hasSuccess);
    const since = this.#intervals.slice(last + 1);
    const isAll = sum(since.map(({ failed }) => failed)) >= LEAST_FAILURES;
    const summed = isAll ? since : this.#intervals;
    const failed = sum(summed.map((each) => each.failed));
    const unit = summed.findLast((each) => each.failed > 0)?.unit ?? 'connections';
    return { unit, tried: Math.max(failed, sum(summed.map((each) => each.tried))), failed, isAll };
  }

  get share(): 'all' | 'some' | 'none' {
    const { isAll, tried, failed } = this.sum();
    if (isAll) return 'all';
    return failed >= LEAST_FAILURES && failed >= tried * NOTICED_SHARE ? 'some' : 'none';
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
