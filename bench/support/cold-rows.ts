// The rows of a cold start, from manifests or from an API server: seconds until all Services are served, and memory.

import { type Reference, type Row, row } from './row.ts';
import { median } from './statistics.ts';

export interface ColdSize {
  /** The end of the rows' names. */
  readonly suffix: string;
  /** Number of Services, and of endpoints in each. */
  readonly count: number;
  readonly size: number;
  readonly runs: number;
  /** The target: at most this many times the lower bound, or seconds. */
  readonly cold: { readonly most: number; readonly of: 'bound' | 'seconds' };
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

/** `agent` and `bound` are the seconds of each run. */
export function coldRow(
  size: ColdSize,
  agent: readonly number[],
  bound: readonly number[],
  { others = [], details = {} }: More = {},
): Row {
  const [value, least] = [median(agent), median(bound)];
  const { most, of } = size.cold;
  return row({
    name: coldNames(size)[0],
    value,
    unit: 's',
    target: of === 'bound' ? `≤ ${most} × the lower bound` : `≤ ${most} s`,
    met: value <= (of === 'bound' ? most * least : most),
    reference: { name: 'lower bound', value: least },
    others,
    details: { fastest: Math.min(...agent), slowest: Math.max(...agent), ...details, runs: agent.length },
  });
}

/** All values are in MB: `rss` after the agent has settled, `peak` at most. */
export function rssRow(
  size: ColdSize,
  agent: { readonly rss: number; readonly peak: number },
  bound: number,
  { others = [] }: More = {},
): Row {
  return row({
    name: coldNames(size)[1],
    value: agent.rss,
    unit: 'MB',
    target: `≤ ${size.rss} MB`,
    met: agent.rss <= size.rss,
    reference: { name: 'lower bound', value: bound },
    others,
    details: { peak: agent.peak },
  });
}
