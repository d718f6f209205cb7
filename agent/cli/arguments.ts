// What a command is asked for: its own flags, its arguments, and the settings.

import { readFileSync } from 'node:fs';
import { HeadgateError } from '../base/errors.ts';
import { readCommandLine, readSettings, type Settings } from '../settings/settings.ts';

export interface Question {
  readonly settings: Settings;
  readonly own: Readonly<Record<string, string | boolean | undefined>>;
  readonly positionals: readonly string[];
}

/** `ownFlags` besides `--json`, which every command has. Errors: SETTINGS_INVALID, USAGE. */
export function readQuestion(
  argv: readonly string[],
  ownFlags: Readonly<Record<string, 'switch' | 'value'>> = {},
  expected: readonly string[] = [],
): Question {
  const flags = { json: 'switch', ...ownFlags } as const;
  const { own, positionals } = readCommandLine(argv, flags);
  if (positionals.length !== expected.length) {
    const wants = expected.length === 0 ? 'no arguments' : expected.join(' ');
    const message = `This command takes ${wants}, not ${JSON.stringify(positionals.join(' '))}`;
    throw new HeadgateError('USAGE', message, { retry: 'never' });
  }
  const given = argv.filter((word) => !positionals.includes(word));
  const readFile = (path: string): string => readFileSync(path, 'utf8');
  return {
    settings: readSettings({ argv: given, env: process.env, readFile, ownFlags: flags }),
    own,
    positionals,
  };
}
