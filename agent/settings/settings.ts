// Reads the settings: flags have precedence over variables, variables over the file, the file over defaults. Reports all
// mistakes together, each with where it is. Compares two readings for SIGHUP. Pure except for `readFile`.

import { HeadgateError } from '../base/errors.ts';
import { fileLimit } from '../host/file-limit.ts';
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
  /** The words after the command: `['--config', 'FILE', ...]`. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly readFile: (path: string) => string;
  /** The command's own flags, which are not settings. */
  readonly ownFlags?: OwnFlags;
  /** The command has positional arguments, which it reads itself. */
  readonly hasArguments?: boolean;
  readonly uid?: number;
  /** Where relative paths of flags and variables start. */
  readonly cwd?: string;
}

/** The reason why an agent with these settings has nothing to serve; '' if a source is set. */
export function nothingToServe({ manifests, kubeconfig, inCluster }: Settings): string {
  if (manifests.length > 0 || kubeconfig !== '' || inCluster) return '';
  return 'There is nothing to serve: set "manifests", "kubeconfig" or "inCluster"';
}

/**
 * Throws SETTINGS_INVALID with one line per fault: its place, the value, what is allowed.
 */
export function readSettings(input: SettingsInput): Settings {
  const { argv, env, readFile, ownFlags = {}, hasArguments = false } = input;
  const { uid = process.getuid?.() ?? 0, cwd = process.cwd() } = input;
  const line = readCommandLine(argv, ownFlags);
  const variables = readVariables(env);
  const file = readSettingsFile(line.config ?? variables.config, readFile, cwd);
  const unexpected = hasArguments
    ? []
    : line.positionals.map((argument) => `${shown(argument)}: Unexpected argument`);
  const errors = [...line.errors, ...unexpected, ...variables.errors, ...file.errors];
  const given = [...line.given, ...variables.given, ...file.given];
  const host: Host = {
    uid,
    env,
    fileLimit: fileLimit(readFile),
    hasAccount: (database, name) => hasAccount(readFile, database, name),
  };

  const settings: Record<string, unknown> = {};
  for (const [name, setting] of allSettings()) {
    const ofSetting = given.filter((one) => one.name === name);
    const byDefault = typeof setting.default === 'function' ? setting.default(host) : setting.default;
    if (ofSetting.length === 0) ofSetting.push({ name, raw: byDefault, place: `The default of ${name}` });
    const reading = readOne(setting, ofSetting, cwd);
    if ('value' in reading) settings[name] = reading.value;
    else errors.push(...reading.errors);
  }
  if (errors.length > 0) throw new HeadgateError('SETTINGS_INVALID', refusal(errors), { retry: 'never' });
  return settings as Settings;
}

/** The value of one setting from its sources in order of precedence; all of them must be valid, also unused ones. */
function readOne({ kind }: Setting<unknown>, given: readonly Given[], cwd: string): Reading<unknown> {
  const values: unknown[] = [];
  const errors: string[] = [];
  for (const { raw, place, directory = cwd } of given) {
    const reading = kind.read(raw, directory);
    if ('value' in reading) values.push(reading.value);
    else errors.push(...reading.errors.map((error) => `${place}: ${error}`));
  }
  if (errors.length > 0) return { errors };
  const value = values.reduce((first, second) =>
    kind.merge === undefined ? first : kind.merge(first, second),
  );
  const faults = kind.check?.(value) ?? [];
  const places = given.map(({ place }) => place).join(' and ');
  return faults.length === 0 ? { value } : { errors: faults.map((fault) => `${places}: ${fault}`) };
}

export interface SettingChange {
  readonly name: SettingName;
  /** As a user would write it. */
  readonly from: string;
  readonly to: string;
  readonly needsRestart: boolean;
}

/** In the order of the table. */
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
