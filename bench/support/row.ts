// What a benchmark gives: rows, each a measured value beside a reference that was measured in the same run.

import { rounded } from './statistics.ts';

export interface Row {
  /** As in the table of targets. */
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** In words, with what else has to hold besides the value. */
  readonly target: string;
  /** Whether all of the target was reached in this run. */
  readonly met: boolean;
  readonly reference: Reference;
  /** Value ÷ reference; null where the reference is 0. */
  readonly ratio: number | null;
  /** Other things measured beside it. */
  readonly others: readonly Reference[];
  /** What the value is made of: percentiles, samples, counts. */
  readonly details: Readonly<Record<string, number>>;
}

export interface Reference {
  readonly name: string;
  readonly value: number;
}

/** Measures one row or several that share their preparations. */
export interface Benchmark {
  /** Names of the rows it can give. */
  readonly rows: readonly string[];
  /** Gives those of `wanted`. */
  readonly run: (bench: Bench, wanted: ReadonlySet<string>) => Promise<readonly Row[]>;
}

/** What a benchmark gets. */
export interface Bench {
  /** Number of Services and samples for a share of the full size, at least `least`. */
  readonly scaled: (count: number, least?: number) => number;
  readonly haproxy: string;
  /** Tells what is going on. */
  readonly say: (text: string) => void;
}

type Given = Pick<Row, 'name' | 'value' | 'unit' | 'target' | 'met' | 'reference'> & Partial<Row>;

/** Rounds to what can be told from noise; the ratio is that of value and reference unless given. */
export function row(given: Given): Row {
  const { value, reference, others = [], details = {} } = given;
  const ratio = given.ratio ?? (reference.value === 0 ? null : value / reference.value);
  return {
    name: given.name,
    value: rounded(value),
    unit: given.unit,
    target: given.target,
    met: given.met,
    reference: roundedReference(reference),
    ratio: ratio === null ? null : rounded(ratio),
    others: others.map(roundedReference),
    details: Object.fromEntries(Object.entries(details).map(([name, number]) => [name, rounded(number)])),
  };
}

function roundedReference({ name, value }: Reference): Reference {
  return { name, value: rounded(value) };
}
