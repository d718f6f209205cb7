// Reads answers to `show stat` as their bytes arrive: rows of CSV whose columns are found by the header's names, of which only
// those are looked at that become metrics. A row makes no more than its name as a string.

import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import { allColumns } from './columns.ts';

/** One row; the same object for every row. */
export interface StatRow {
  /** `frontend or backend,server`: `default:web:tcp:80:v4,FRONTEND`. */
  key: string;
  /** Where the first of its two names ends. */
  comma: number;
  /** In the order of `allColumns`; NaN where the row has none. */
  readonly values: number[];
  status: string;
  checkStatus: string;
  mode: string;
}

const [LF, QUOTE, HASH, COMMA, MINUS, ZERO] = [10, 34, 35, 44, 45, 48];
/** What a column may be besides a place in `values`. */
const [SKIP, FIRST, STATUS, CHECK, MODE] = [-1, -2, -3, -4, -5];
const TEXTS: Readonly<Record<string, number>> = { status: STATUS, check_status: CHECK, mode: MODE };
/** No row is nearly as long. */
const LONGEST_ROW = 64 * 1024;
/** Bytes in which most rows come to their end. */
const FIRST_COPY = 1_024;
const NOTHING = Buffer.alloc(0);

export class StatRows {
  readonly #onRow: (row: StatRow) => void;
  readonly #row: StatRow;
  /** By number of the column; empty before the header. */
  #meanings: number[] = [];
  /** The number of the last column that means anything. */
  #last = 0;
  #rest: Buffer = NOTHING;
  /** The header that the meanings are of: it comes again with each answer. */
  #known = '';

  constructor(onRow: (row: StatRow) => void) {
    this.#onRow = onRow;
    this.#row = {
      key: '',
      comma: 0,
      values: allColumns.map(() => Number.NaN),
      status: '',
      checkStatus: '',
      mode: '',
    };
  }

  /** Bytes of the answer in their order, cut anywhere; copied. Errors: RUNTIME_REPLY for what is no such answer. */
  feed(chunk: Buffer): void {
    let from = 0;
    for (let end = this.#complete(chunk); end !== -1; end = this.#take(chunk, from)) from = end;
    if (from < chunk.length) this.#rest = Buffer.concat([this.#rest, chunk.subarray(from)]);
    if (this.#rest.length > LONGEST_ROW) throw unreadable(this.#rest.toString('latin1', 0, 200));
  }

  /**
   * Takes in the row that began in chunks before, if one did, with a copy of little more of this one than it needs;
   * where the next one begins, -1 where it is not whole yet.
   */
  #complete(chunk: Buffer): number {
    const begun = this.#rest.length;
    if (begun === 0) return 0;
    for (let more = FIRST_COPY; ; more *= 2) {
      const end = this.#take(Buffer.concat([this.#rest, chunk.subarray(0, more)]), 0);
      if (end !== -1) {
        this.#rest = NOTHING;
        return end - begun;
      }
      if (more >= chunk.length) return -1;
    }
  }

  /** Errors: RUNTIME_REPLY where the answer broke off. */
  end(): void {
    const rest = this.#rest.toString('latin1').trim();
    if (this.#meanings.length === 0 || rest !== '') throw unreadable(rest);
  }

  /** Takes in the row at `from`; where the next one begins, -1 where this one is not whole yet. */
  #take(bytes: Buffer, from: number): number {
    const first = bytes[from];
    // Each command's answer begins with a header.
    if (this.#meanings.length > 0 && first !== LF && first !== HASH) return this.#fields(bytes, from);
    const end = bytes.indexOf(LF, from);
    if (end === -1) return -1;
    if (end > from) this.#header(bytes.toString('latin1', from, end));
    return end + 1;
  }

  #header(line: string): void {
    if (line === this.#known) return;
    if (!line.startsWith('# ')) throw unreadable(line);
    const names = line.slice(2).split(',');
    this.#meanings = names.map((name, at) => {
      if (at === 1) return FIRST;
      return TEXTS[name] ?? allColumns.indexOf(name as (typeof allColumns)[number]);
    });
    this.#last = this.#meanings.findLastIndex((meaning) => meaning !== SKIP);
    const missing = allColumns.find((name) => !names.includes(name));
    if (missing !== undefined || names[0] !== 'pxname' || names[1] !== 'svname')
      throw unreadable(missing ?? line);
    this.#known = line;
  }

  #fields(bytes: Buffer, from: number): number {
    const row = this.#row;
    const { values } = row;
    const meanings = this.#meanings;
    const { length } = bytes;
    let column = 0;
    let begin = from;
    let number = 0;
    let isNegative = false;
    let isQuoted = false;
    for (let at = from; at < length; at++) {
      const byte = bytes[at] as number;
      if (isQuoted) {
        if (byte === QUOTE) isQuoted = false;
      } else if (byte === COMMA || byte === LF) {
        const meaning = meanings[column] ?? SKIP;
        if (meaning >= 0) values[meaning] = at === begin ? Number.NaN : isNegative ? -number : number;
        else if (meaning === FIRST) {
          row.key = bytes.toString('latin1', from, at);
          row.comma = begin - 1 - from;
        } else if (meaning === STATUS) row.status = statusOf(bytes, begin, at);
        else if (meaning === CHECK) row.checkStatus = begin === at ? '' : bytes.toString('latin1', begin, at);
        else if (meaning === MODE)
          row.mode = bytes[begin] === 0x74 ? 'tcp' : bytes.toString('latin1', begin, at);
        if (byte === LF) {
          if (column === 0) throw unreadable(bytes.toString('latin1', from, at));
          this.#onRow(row);
          return at + 1;
        }
        if (column === this.#last) {
          const end = bytes.indexOf(LF, at);
          if (end === -1) return -1;
          this.#onRow(row);
          return end + 1;
        }
        column++;
        begin = at + 1;
        number = 0;
        isNegative = false;
      } else if (byte === QUOTE) isQuoted = true;
      else if (byte === MINUS) isNegative = true;
      else number = number * 10 + byte - ZERO;
    }
    return -1;
  }
}

/** The two that nearly every row has need no string of their own. */
function statusOf(bytes: Buffer, begin: number, end: number): string {
  if (end - begin === 2 && bytes[begin] === 0x55) return 'UP';
  if (end - begin === 8 && bytes[begin] === 0x6e) return 'no check';
  return bytes.toString('latin1', begin, end);
}

function unreadable(text: string): HeadgateError {
  return new HeadgateError('RUNTIME_REPLY', `Cannot read HAProxy's statistics: ${quote(text.slice(0, 200))}`);
}
