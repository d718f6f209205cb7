// The command of a name. Pure.

import { nearestHint } from '../base/nearest.ts';
import { quote } from '../base/quote.ts';
import type { Command } from './command.ts';
import { usageError } from './command-line.ts';

/** Errors: USAGE with the nearest name. */
export function namedCommand(name: string, all: readonly Command[]): Command {
  const found = all.find((command) => command.name === name);
  if (found !== undefined) return found;
  const names = all.map((command) => command.name);
  throw usageError(
    `Unknown command ${quote(name)}${nearestHint(name, names)}: the commands are ${names.join(', ')}`,
  );
}
