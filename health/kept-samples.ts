// Samples as they were packed for the scrape before: those of rows that have not changed are not even looked at, those
// whose numbers are the same not written and packed again. Most are: errors that nobody has made, weights, members that
// nobody has asked for anything since. Forgets all of it when nobody scrapes any more.

import type { MetricFamily, MetricPart, MetricRow } from '../agent/base/metric-family.ts';
import { packed, type Segment } from './gzip-segments.ts';
import { type Filling, lineHeads, lookUp, writeLines } from './sample-lines.ts';
import { sampleHead } from './text-format.ts';

interface Kept {
  /** Of the part that they were last compared with. */
  asOf: number;
  readonly numbers: Float64Array;
  segments: readonly Segment[];
}

/** Milliseconds after the last scrape. */
const KEEP = 5 * 60_000;

export class KeptSamples {
  /** By the rows, and by what their lines begin with. */
  #kept = new WeakMap<readonly MetricRow[], Map<string, Kept>>();
  /** What stands before samples, by itself. */
  #texts = new Map<string, Segment>();
  #numbers = new Float64Array(256);
  #forgetting: NodeJS.Timeout | undefined;

  /** Somebody scrapes. */
  touch(): void {
    this.#forgetting ??= setTimeout(() => this.forget(), KEEP).unref();
    this.#forgetting.refresh();
  }

  forget(): void {
    clearTimeout(this.#forgetting);
    this.#forgetting = undefined;
    this.#kept = new WeakMap();
    this.#texts = new Map();
  }

  /** A text that comes again at each scrape: there must not be many. */
  text(text: string): Segment {
    let segment = this.#texts.get(text);
    if (segment === undefined) {
      segment = packed(Buffer.from(text));
      this.#texts.set(text, segment);
    }
    return segment;
  }

  /**
   * Of a part whose rows are kept, as they are `asOf`; to be used at once, because a single one is packed into the same
   * memory next time. `scratch`: for the text, whatever is in it.
   */
  segments(family: MetricFamily, part: MetricPart, asOf: number, scratch: Buffer): readonly Segment[] {
    const { rows } = part;
    let byHead = this.#kept.get(rows);
    if (byHead === undefined) {
      byHead = new Map();
      this.#kept.set(rows, byHead);
    }
    const head = sampleHead(family, part, false);
    const before = byHead.get(head);
    if (before?.asOf === asOf) return before.segments;
    if (this.#numbers.length < rows.length) this.#numbers = new Float64Array(rows.length);
    const numbers = this.#numbers;
    lookUp(part, 0, rows.length, numbers);
    const kept = before ?? { asOf, numbers: new Float64Array(rows.length), segments: [] };
    kept.asOf = asOf;
    if (before !== undefined && isSame(before.numbers, numbers)) return before.segments;
    const [single, ...others] = kept.segments;
    const memory = others.length === 0 ? single?.bytes : undefined;
    const segments: Segment[] = [];
    const into: Filling = { memory: scratch, at: 0 };
    for (let row = 0; row < rows.length; ) {
      into.at = 0;
      row = writeLines(lineHeads(family, part), rows, numbers.subarray(row), [row, rows.length], into);
      const isWhole = row === rows.length && segments.length === 0;
      if (into.at > 0) segments.push(packed(scratch.subarray(0, into.at), isWhole ? memory : undefined));
    }
    kept.numbers.set(numbers.subarray(0, rows.length));
    kept.segments = segments;
    byHead.set(head, kept);
    return segments;
  }
}

/** NaN, which is no sample, included. */
function isSame(before: Float64Array, now: Float64Array): boolean {
  for (let at = 0; at < before.length; at++) if (!Object.is(before[at], now[at])) return false;
  return true;
}
