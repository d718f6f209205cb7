// The lines that commands print: parts with a tone, which a terminal shows as a colour, and tables with aligned columns.
// What does not print is escaped: a line may have the name of a file, which its author could write to the operator's
// terminal with.

import { styleText } from 'node:util';
import { printable } from '../base/quote.ts';
import type { OperatingStatus } from '../model/operating-status.ts';

type Tone = 'good' | 'warning' | 'bad' | 'title';

export interface Toned {
  readonly text: string;
  readonly tone: Tone;
}

export type Part = string | Toned;
export type Line = string | readonly Part[];

const STYLES = { good: 'green', warning: 'yellow', bad: 'red', title: 'bold' } as const;

/** Prints the lines to stdout, in colours if that is a terminal and NO_COLOR is not set. */
export function printLines(lines: readonly Line[]): void {
  const written = lines.map((line) =>
    typeof line === 'string' ? printable(line) : line.map(shown).join(''),
  );
  console.log(written.join('\n'));
}

function shown(part: Part): string {
  if (typeof part === 'string') return printable(part);
  // styleText() knows NO_COLOR, FORCE_COLOR and whether the stream is a terminal.
  return styleText(STYLES[part.tone], printable(part.text), { stream: process.stdout });
}

export function title(text: string): Toned {
  return { text, tone: 'title' };
}

export function bad(text: string): Toned {
  return { text, tone: 'bad' };
}

export function warning(text: string): Toned {
  return { text, tone: 'warning' };
}

export function good(text: string): Toned {
  return { text, tone: 'good' };
}

const TONES: Readonly<Record<OperatingStatus, Tone | undefined>> = {
  ONLINE: 'good',
  NO_MONITOR: undefined,
  DRAINING: 'warning',
  DEGRADED: 'warning',
  ERROR: 'bad',
  OFFLINE: 'bad',
};

/** What no monitor has found out is neither good nor bad. */
export function statusPart(status: OperatingStatus): Part {
  const tone = TONES[status];
  return tone === undefined ? 'not known' : { text: status, tone };
}

/** `served` and `served in part`, and the words for what is not served. */
export function verdictPart(verdict: string): Toned {
  if (verdict === 'served') return { text: verdict, tone: 'good' };
  return { text: verdict, tone: verdict === 'served in part' ? 'warning' : 'bad' };
}

/** The rows as lines with aligned columns; the last cells of a row may be empty. */
export function tableLines(rows: readonly (readonly Part[])[]): readonly Line[] {
  const widths: number[] = [];
  for (const row of rows)
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, widthOf(cell));
  return rows.map((row) => {
    const last = row.findLastIndex((cell) => textOf(cell) !== '');
    return row
      .slice(0, last + 1)
      .flatMap((cell, at) =>
        at === last ? [cell] : [cell, ' '.repeat((widths[at] ?? 0) - widthOf(cell) + GAP_COLUMNS)],
      );
  });
}

/** Between two columns. */
const GAP_COLUMNS = 2;

function widthOf(part: Part): number {
  return printable(textOf(part)).length;
}

function textOf(part: Part): string {
  return typeof part === 'string' ? part : part.text;
}
