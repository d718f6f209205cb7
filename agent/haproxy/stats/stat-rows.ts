// Reads answers to `show stat`: rows of CSV whose columns are found by the header's names. Pure.

import { unreadable } from '../socket/readings.ts';
import { allColumns, optionalColumns } from './columns.ts';

export interface StatRow {
  /** The name of the frontend or backend. */
  readonly proxy: string;
  /** `FRONTEND`, `BACKEND` or the name of a server. */
  readonly name: string;
  /** In the order of `allColumns`; NaN if the row has no such number. */
  readonly values: readonly number[];
  /** Such as `UP 1/3`. */
  readonly status: string;
  readonly checkStatus: string;
  readonly mode: string;
}

/** A text between quotes, which are doubled inside it. No column that is read has one. */
const QUOTED = /"(?:[^"]|"")*"/g;

/** One whole answer; no rows if there is no such proxy. Errors: RUNTIME_REPLY if it has not all columns. */
export function parseStatRows(answer: string): readonly StatRow[] {
  const text = answer.includes('"') ? answer.replaceAll(QUOTED, '') : answer;
  const [header = '', ...lines] = text.split('\n');
  const { numbers, texts, last } = placesOf(header);
  return lines.filter(Boolean).map((line) => {
    const fields = line.split(',');
    if (fields.length <= last) throw unreadable('statistics', line);
    const [proxy = '', name = '', status = '', checkStatus = '', mode = ''] = texts.map((at) => fields[at]);
    const values = numbers.map((at) => (at === -1 || fields[at] === '' ? Number.NaN : Number(fields[at])));
    return { proxy, name, values, status, checkStatus, mode };
  });
}

const TEXTS = ['pxname', 'svname', 'status', 'check_status', 'mode'] as const;

/** The positions of the columns that are read. */
interface Places {
  readonly header: string;
  readonly numbers: readonly number[];
  readonly texts: readonly number[];
  readonly last: number;
}

/** The last header: all answers of one HAProxy have the same. */
let known: Places | undefined;

function placesOf(header: string): Places {
  if (known?.header === header) return known;
  const names = header.replace(/^# /, '').split(',');
  const numbers = allColumns.map((name) => names.indexOf(name));
  const texts = TEXTS.map((name) => names.indexOf(name));
  const needed = numbers.filter((_, at) => !optionalColumns.has(allColumns[at] as string));
  const all = [...needed, ...texts];
  if (all.includes(-1)) throw unreadable('statistics', header);
  known = { header, numbers, texts, last: Math.max(...all, ...numbers) };
  return known;
}
