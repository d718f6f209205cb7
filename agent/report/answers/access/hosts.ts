// Which hosts of listeners and routes a request's host belongs to. Pure.

import type { HostPattern } from '../../../model/routes.ts';

/** Items that the host matches, the most specific first. */
export function mostSpecific<T>(
  all: readonly T[],
  host: string,
  patternOf: (each: T) => HostPattern,
): readonly T[] {
  return all
    .filter((each) => matchesHost(patternOf(each), host))
    .sort((a, b) => specificity(patternOf(b)) - specificity(patternOf(a)));
}

export function matchesHost({ kind, suffix }: HostPattern, host: string): boolean {
  if (kind === 'any') return true;
  if (kind === 'exact') return host === suffix;
  if (!host.endsWith(`.${suffix}`)) return false;
  return kind === 'labels' || !host.slice(0, -suffix.length - 1).includes('.');
}

function specificity({ kind, suffix }: HostPattern): number {
  return kind === 'exact' ? Number.POSITIVE_INFINITY : suffix.length;
}
