// The result of a benchmark: rows, each with a measured value and a reference that was measured in the same run.

import { rounded } from './statistics.ts';

export interface Row {
  /** As in the table of targets. */
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** In words, with every further condition. */
  readonly target: string;
  /** Whether this run met the whole target. */
  readonly met: boolean;
  readonly reference: Reference;
  /** Value ÷ reference; null if the reference is 0. */
  readonly ratio: number | null;
  /** Further references of the same run. */
  readonly others: readonly Reference[];
  /** Percentiles, samples, counts. */
  readonly details: Readonly<Record<string, number>>;
}

export interface Reference {
  readonly name: string;
  readonly value: number;
}

/** Measures one row, or several rows that share their preparation. */
export interface Benchmark {
  /** Names of the rows that it can measure. */
  readonly rows: readonly string[];
  /** Measures the `selected` rows, and reports each to `bench.measured` as it ends. */
  readonly run: (bench: Bench, selected: ReadonlySet<string>) => Promise<void>;
}

/** The parameters of a benchmark. */
export interface Bench {
  /** Scales a number of Services, samples or milliseconds by BENCH_SCALE, to at least `least`. */
  readonly scaled: (count: number, least?: number) => number;
  readonly haproxy: string;
  /** Prints the progress. */
  readonly report: (text: string) => void;
  /** Keeps rows that have ended. */
  readonly measured: (...rows: readonly Row[]) => void;
}

type Given = Pick<Row, 'name' | 'value' | 'unit' | 'target' | 'met' | 'reference'> & Partial<Row>;

/** Rounds all numbers; the ratio is value ÷ reference unless given. */
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
