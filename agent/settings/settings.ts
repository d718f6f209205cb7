// Reads the settings: flags before variables before the file before defaults, and says everything that is wrong
// at once, each with its place. Also what differs between two readings, for SIGHUP.
// Pure but for `readFile`.

import { HeadgateError } from '../base/errors.ts';
import { type Reading, shown } from './kinds.ts';
import { type Given, type OwnFlags, readCommandLine, readSettingsFile, readVariables } from './sources.ts';
import {
  allSettings,
  type Host,
  needsRestart,
  type Setting,
  type SettingName,
  type Settings,
} from './table.ts';

export { readCommandLine } from './sources.ts';
export type { SettingName, Settings } from './table.ts';

export interface SettingsInput {
  /** What follows the command: `['--config', 'FILE', ...]`. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly readFile: (path: string) => string;
  /** Flags of the command itself, which are no settings. */
  readonly ownFlags?: OwnFlags;
  readonly uid?: number;
  /** What relative paths of flags and variables start from. */
  readonly cwd?: string;
}

/** Why an agent with these settings has nothing to serve, '' where a source is set. */
export function nothingToServe({ manifests, kubeconfig, inCluster }: Settings): string {
  if (manifests.length > 0 || kubeconfig !== '' || inCluster) return '';
  return 'There is nothing to serve: set "manifests", "kubeconfig" or "inCluster"';
}

/**
 * The settings in force, for a command that takes flags only.
 * Throws SETTINGS_INVALID with one line per fault: its place, the value, what is allowed.
 */
export function readSettings(input: SettingsInput): Settings {
  const { argv, env, readFile, ownFlags = {}, uid = process.getuid?.() ?? 0, cwd = process.cwd() } = input;
  const line = readCommandLine(argv, ownFlags);
  const variables = readVariables(env);
  const file = readSettingsFile(line.config ?? variables.config, readFile, cwd);
  const unexpected = line.positionals.map((argument) => `${shown(argument)}: Unexpected argument`);
  const errors = [...line.errors, ...unexpected, ...variables.errors, ...file.errors];
  const given = [...line.given, ...variables.given, ...file.given];
  const host: Host = { uid, env, hasAccount: (database, name) => hasAccount(readFile, database, name) };

  const settings: Record<string, unknown> = {};
  for (const [name, setting] of allSettings()) {
    const said = given.filter((one) => one.name === name);
    const byDefault = typeof setting.default === 'function' ? setting.default(host) : setting.default;
    if (said.length === 0) said.push({ name, raw: byDefault, place: `The default of ${name}` });
    const reading = readOne(setting, said, cwd);
    if ('value' in reading) settings[name] = reading.value;
    else errors.push(...reading.errors);
  }
  if (errors.length > 0) throw new HeadgateError('SETTINGS_INVALID', refusal(errors), { retry: 'never' });
  return settings as Settings;
}

/** What the sources say of one setting, in order of precedence; each of them must be allowed, used or not. */
function readOne({ kind }: Setting<unknown>, said: readonly Given[], cwd: string): Reading<unknown> {
  const values: unknown[] = [];
  const errors: string[] = [];
  for (const { raw, place, directory = cwd } of said) {
    const reading = kind.read(raw, directory);
    if ('value' in reading) values.push(reading.value);
    else errors.push(...reading.errors.map((error) => `${place}: ${error}`));
  }
  if (errors.length > 0) return { errors };
  const value = values.reduce((first, second) =>
    kind.merge === undefined ? first : kind.merge(first, second),
  );
  const faults = kind.check?.(value) ?? [];
  const places = said.map(({ place }) => place).join(' and ');
  return faults.length === 0 ? { value } : { errors: faults.map((fault) => `${places}: ${fault}`) };
}

export interface SettingChange {
  readonly name: SettingName;
  /** As a user would write it. */
  readonly from: string;
  readonly to: string;
  readonly needsRestart: boolean;
}

/** What differs between two readings, in the order of the table. */
export function diffSettings(old: Settings, now: Settings): SettingChange[] {
  const changes: SettingChange[] = [];
  for (const [name, setting] of allSettings()) {
    const { kind } = setting;
    const [from, to] = [kind.write(old[name]), kind.write(now[name])];
    if (from !== to)
      changes.push({ name, from, to, needsRestart: needsRestart(setting, old[name], now[name]) });
  }
  return changes;
}

function hasAccount(readFile: (path: string) => string, file: 'passwd' | 'group', name: string): boolean {
  try {
    return readFile(`/etc/${file}`)
      .split('\n')
      .some((line) => line.startsWith(`${name}:`));
  } catch {
    return false;
  }
}

function refusal(errors: readonly string[]): string {
  return `Cannot use these settings:\n${errors.map((error) => `  ${error}`).join('\n')}`;
}
