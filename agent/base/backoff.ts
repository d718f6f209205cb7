// How long to wait before the next attempt: doubled with each failure in a row, up to a limit. Pure.

export interface BackoffTerms {
  readonly firstMs: number;
  readonly mostMs: number;
  /** 0 to 1. With it the wait is between half of the step and the whole, so that many hosts do not retry at one time. */
  readonly random?: (() => number) | undefined;
}

/** Milliseconds; `failures` counts those in a row, from 1. */
export function backoffMs(failures: number, { firstMs, mostMs, random }: BackoffTerms): number {
  const step = Math.min(mostMs, firstMs * 2 ** Math.min(Math.max(0, failures - 1), 30));
  return random === undefined ? step : step * (0.5 + random() / 2);
}
