// Reads answers to `show stat`: rows of CSV whose columns are found by the header's names. Looks only at the columns that
// become metrics, byte by byte: of a row only its name becomes a string.

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

const [LF, QUOTE, COMMA, MINUS, ZERO] = [10, 34, 44, 45, 48];
/** What a column may be besides a place in `values`. */
const [SKIP, FIRST, STATUS, CHECK, MODE] = [-1, -2, -3, -4, -5];
const TEXTS: Readonly<Record<string, number>> = { status: STATUS, check_status: CHECK, mode: MODE };

export class StatRows {
  readonly #onRow: (row: StatRow) => void;
  readonly #current: StatRow;
  /** By number of the column. */
  #meanings: number[] = [];
  /** The number of the last column that means anything. */
  #last = 0;
  /** The header that the meanings are of: it is the same in each answer. */
  #known = '';

  constructor(onRow: (row: StatRow) => void) {
    this.#onRow = onRow;
    this.#current = {
      key: '',
      comma: 0,
      values: allColumns.map(() => Number.NaN),
      status: '',
      checkStatus: '',
      mode: '',
    };
  }

  /** Takes in one whole answer. Errors: RUNTIME_REPLY for a text that is no such answer. */
  read(answer: string): void {
    if (!answer.startsWith('# ')) throw unreadable(answer);
    const bytes = Buffer.from(`${answer}\n`, 'latin1');
    let from = bytes.indexOf(LF) + 1;
    this.#header(answer.slice(0, from - 1));
    while (from < bytes.length) from = this.#row(bytes, from);
  }

  #header(line: string): void {
    if (line === this.#known) return;
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

  /** Takes in the row at `from`; where the next one begins. */
  #row(bytes: Buffer, from: number): number {
    const row = this.#current;
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
          if (column < this.#last) throw unreadable(bytes.toString('latin1', from, at));
          this.#onRow(row);
          return at + 1;
        }
        if (column === this.#last) {
          this.#onRow(row);
          return bytes.indexOf(LF, at) + 1;
        }
        column++;
        begin = at + 1;
        number = 0;
        isNegative = false;
      } else if (byte === QUOTE) isQuoted = true;
      else if (byte === MINUS) isNegative = true;
      else number = number * 10 + byte - ZERO;
    }
    throw unreadable(bytes.toString('latin1', from));
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
