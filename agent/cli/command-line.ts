// What the commands share: reading flags, arguments and settings, and printing an answer for people or as JSON.

import { readFileSync } from 'node:fs';
import { HeadgateError } from '../base/errors.ts';
import { quote } from '../base/quote.ts';
import type { Problem } from '../model/load-balancer.ts';
import { readCommandLine, readSettings, type Settings } from '../settings/settings.ts';
import type { Arguments, Command } from './command.ts';
import { type Line, printLines } from './text.ts';

/** Errors: SETTINGS_INVALID, USAGE. */
export function readArguments(command: Command, argv: readonly string[]): Arguments {
  const { settings, arguments: expected = [] } = command;
  const { words, ownFlags } = withoutShortFlags(command, argv);
  const { own, positionals, errors } = readCommandLine(words, ownFlags);
  const required = expected.filter(({ name }) => !name.startsWith('['));
  const isOpen = expected.at(-1)?.name.endsWith('...') === true;
  if ((positionals.length > expected.length && !isOpen) || positionals.length < required.length) {
    const allowed = expected.length === 0 ? 'no arguments' : expected.map(({ name }) => name).join(' ');
    throw usageError(`This command takes ${allowed}, not ${JSON.stringify(positionals.join(' '))}`);
  }
  if (settings === 'none' && errors.length > 0) throw usageError(errors.join('; '));
  return { settings: settingsOf(command, argv), own, positionals };
}

/** The settings of a command line that may not be complete yet; the defaults if the command needs none. */
export function settingsOf(command: Command, argv: readonly string[]): Settings {
  const readFile = (path: string): string => readFileSync(path, 'utf8');
  if (command.settings === 'none') return readSettings({ argv: [], env: {}, readFile });
  const { words, ownFlags } = withoutShortFlags(command, argv);
  return readSettings({ argv: words, env: process.env, readFile, ownFlags, hasArguments: true });
}

type OwnFlags = Readonly<Record<string, 'switch' | 'value' | 'values'>>;

/** The words with `--namespace` instead of `-n`, and the kinds of the command's own flags. */
function withoutShortFlags(
  { flags }: Command,
  argv: readonly string[],
): { readonly words: readonly string[]; readonly ownFlags: OwnFlags } {
  const own = Object.entries(flags);
  const long = new Map<string, string>(
    own.flatMap(([name, { short }]) => (short === undefined ? [] : [[`-${short}`, `--${name}`] as const])),
  );
  const kinds = own.map(
    ([name, { placeholder, isRepeated }]) =>
      [name, placeholder === '' ? 'switch' : isRepeated ? 'values' : 'value'] as const,
  );
  return { words: argv.map((word) => long.get(word) ?? word), ownFlags: Object.fromEntries(kinds) };
}

export function usageError(message: string): HeadgateError {
  return new HeadgateError('USAGE', message, { retry: 'never' });
}

/** Prints `answer` as JSON if `--json` was given, otherwise `lines`. */
export function print({ own }: Arguments, answer: unknown, lines: readonly Line[]): void {
  if (own.json) console.log(JSON.stringify(answer, undefined, 2));
  else printLines(lines);
}

/** The value of `--namespace`; undefined without the flag. Errors: USAGE. */
export function namespaceOf({ own: { namespace } }: Arguments): string | undefined {
  if (typeof namespace !== 'string') return undefined;
  if (!isName(namespace))
    throw usageError(
      `Cannot use --namespace ${quote(namespace)}: a namespace has letters, digits, "-" and "."`,
    );
  return namespace;
}

/** True for a text that can be the name of an object or of a namespace. */
export function isName(text: string): boolean {
  return /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(text);
}

/** One line that names the object once; the message of a file's problem already names its place in the file. */
export function problemLine({ object, message }: Pick<Problem, 'object' | 'message'>): string {
  const isNamed =
    message.startsWith(object) || message.includes(`: ${object}: `) || message.includes(`: ${object} `);
  return isNamed ? message : `${object}: ${message}`;
}
