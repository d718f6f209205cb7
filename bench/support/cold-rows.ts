// The rows of a cold start, whatever it reads its objects from: seconds until all is served, and memory afterwards.

import { type Reference, type Row, row } from './row.ts';
import { median } from './statistics.ts';

export interface ColdSize {
  /** Of the rows' names. */
  readonly suffix: string;
  /** Services, and endpoints of each. */
  readonly count: number;
  readonly size: number;
  readonly runs: number;
  /** The target in seconds. */
  readonly cold: number;
  /** The target in MB. */
  readonly rss: number;
}

interface More {
  readonly others?: readonly Reference[];
  readonly details?: Readonly<Record<string, number>>;
}

/** The names of both rows. */
export function coldNames({ suffix }: ColdSize): readonly [cold: string, rss: string] {
  return [`cold-${suffix}`, `rss-${suffix}`];
}

/** Seconds of each run. */
export function coldRow(
  size: ColdSize,
  own: readonly number[],
  bound: readonly number[],
  { others = [], details = {} }: More = {},
): Row {
  const value = median(own);
  return row({
    name: coldNames(size)[0],
    value,
    unit: 's',
    target: `≤ ${size.cold} s`,
    met: value <= size.cold,
    reference: { name: 'the bound', value: median(bound) },
    others,
    details: { fastest: Math.min(...own), slowest: Math.max(...own), ...details, runs: own.length },
  });
}

/** MB, settled and at the most. */
export function rssRow(
  size: ColdSize,
  own: { readonly rss: number; readonly peak: number },
  bound: number,
  { others = [] }: More = {},
): Row {
  return row({
    name: coldNames(size)[1],
    value: own.rss,
    unit: 'MB',
    target: `≤ ${size.rss} MB`,
    met: own.rss <= size.rss,
    reference: { name: 'the bound', value: bound },
    others,
    details: { 'most ever': own.peak },
  });
}
