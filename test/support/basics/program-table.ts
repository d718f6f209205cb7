// Reads scripts/programs.txt, the table of the programs that commands and tests start.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export interface ProgramRow {
  readonly command: string;
  /** Debian's; undefined if none has it. */
  readonly package: string | undefined;
  /** What needs it, as the head of the table explains. */
  readonly kinds: ReadonlySet<string>;
  readonly purpose: string;
}

export const PROGRAM_TABLE = 'scripts/programs.txt';
const path = fileURLToPath(new URL(`../../../${PROGRAM_TABLE}`, import.meta.url));

/** The key is the command. Errors: a line without a purpose, or a command with two rows. */
export function programTable(text = readFileSync(path, 'utf8')): ReadonlyMap<string, ProgramRow> {
  const table = new Map<string, ProgramRow>();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const [command = '', debian = '', kinds = '', ...purpose] = line.split(/ +/);
    if (purpose.length === 0) throw new Error(`${PROGRAM_TABLE}: The line has no purpose: ${line}`);
    if (table.has(command)) throw new Error(`${PROGRAM_TABLE}: ${command} has two rows`);
    table.set(command, {
      command,
      package: debian === '-' ? undefined : debian,
      kinds: new Set(kinds.split(',')),
      purpose: purpose.join(' '),
    });
  }
  return table;
}
