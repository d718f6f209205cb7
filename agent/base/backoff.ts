// The wait before the next attempt: doubled with each failure in a row, up to a limit. Pure.

export interface BackoffTerms {
  readonly firstMs: number;
  readonly mostMs: number;
  /** Gives 0 to 1. Spreads the wait from half a step to a whole one, so that many hosts do not retry at the same time. */
  readonly random?: (() => number) | undefined;
}

/** `failures`: failures in a row, from 1. */
export function backoffMs(failures: number, { firstMs, mostMs, random }: BackoffTerms): number {
  const step = Math.min(mostMs, firstMs * 2 ** Math.min(Math.max(0, failures - 1), 30));
  return random === undefined ? step : step * (0.5 + random() / 2);
}
