// What the commands share: reading flags, arguments and settings, and printing an answer for people or as JSON.

import { readFileSync } from 'node:fs';
import { HeadgateError } from '../base/errors.ts';
import { printable } from '../base/quote.ts';
import type { Problem } from '../model/load-balancer.ts';
import { readCommandLine, readSettings, type Settings } from '../settings/settings.ts';

export interface Arguments {
  readonly settings: Settings;
  /** The command's own flags; `json` is one of every command. */
  readonly own: Readonly<Record<string, string | boolean | undefined>>;
  readonly positionals: readonly string[];
}

/** `expected`: the names of the positional arguments, all required. Errors: SETTINGS_INVALID, USAGE. */
export function readArguments(
  argv: readonly string[],
  ownFlags: Readonly<Record<string, 'switch' | 'value'>> = {},
  expected: readonly string[] = [],
): Arguments {
  const flags = { json: 'switch', ...ownFlags } as const;
  const { own, positionals } = readCommandLine(argv, flags);
  if (positionals.length !== expected.length) {
    const allowed = expected.length === 0 ? 'no arguments' : expected.join(' ');
    throw usageError(`This command takes ${allowed}, not ${JSON.stringify(positionals.join(' '))}`);
  }
  const given = argv.filter((word) => !positionals.includes(word));
  const readFile = (path: string): string => readFileSync(path, 'utf8');
  return {
    settings: readSettings({ argv: given, env: process.env, readFile, ownFlags: flags }),
    own,
    positionals,
  };
}

export function usageError(message: string): HeadgateError {
  return new HeadgateError('USAGE', message, { retry: 'never' });
}

/**
 * Prints `answer` as JSON if `--json` was given, otherwise `lines`. What does not print is escaped: a line may have the name
 * of a file, which its author could write to the operator's terminal with.
 */
export function print({ own }: Arguments, answer: unknown, lines: readonly string[]): void {
  console.log(own.json ? JSON.stringify(answer, undefined, 2) : lines.map(printable).join('\n'));
}

/** One line that names the object once; the message of a file's problem already names its place in the file. */
export function problemLine({ object, message }: Pick<Problem, 'object' | 'message'>): string {
  const isNamed =
    message.startsWith(object) || message.includes(`: ${object}: `) || message.includes(`: ${object} `);
  return isNamed ? message : `${object}: ${message}`;
}
