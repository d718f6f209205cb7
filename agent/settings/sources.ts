// Reads the three sources of settings: the command line, the environment and the settings file. Each gives the unparsed
// values with their position for error messages; only names are checked here. Pure except for `readFile`.

import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { messageOf } from '../base/errors.ts';
import { nearestHint } from '../base/nearest.ts';
import { parseYamlDocuments } from '../base/yaml.ts';
import { SETTINGS_THAT_PROTECT } from '../protection/protections.ts';
import { shown, valuesIn } from './kinds.ts';
import { allSettings, flagOf, isSettingName, type SettingName, settingsTable, variableOf } from './table.ts';

/** The value of a setting in one source. */
export interface Given {
  readonly name: SettingName;
  readonly raw: unknown;
  /** For error messages: `--drain-timeout`, `HEADGATE_DRAIN_TIMEOUT`, `/etc/headgate.yaml: drainTimeout`. */
  readonly place: string;
  /** The folder in which relative paths start, if that is not the working directory. */
  readonly directory?: string;
}

export interface Source {
  readonly given: readonly Given[];
  readonly errors: readonly string[];
}

type FlagKind = 'switch' | 'value' | 'values';

/** The command's own flags by name, without dashes. */
export type OwnFlags = Readonly<Record<string, FlagKind>>;

export type OwnValue = string | boolean | readonly string[];

export interface CommandLine extends Source {
  /** The settings file. */
  readonly config: string | undefined;
  /** The values of the command's own flags; a switch is a boolean, and one that may be repeated a list. */
  readonly own: Readonly<Record<string, OwnValue | undefined>>;
  readonly positionals: readonly string[];
}

export function readCommandLine(argv: readonly string[], ownFlags: OwnFlags = {}): CommandLine {
  const kinds = new Map<string, FlagKind>(Object.entries({ config: 'value', ...ownFlags }));
  const names = new Map<string, SettingName>();
  for (const [name, { kind }] of allSettings()) {
    names.set(flagOf(name), name);
    kinds.set(flagOf(name), kind.placeholder === '' ? 'switch' : 'value');
  }
  const own: Record<string, OwnValue> = {};
  const texts = new Map<SettingName, string[]>();
  const positionals: string[] = [];
  const errors: string[] = [];
  let config: string | undefined;
  let afterUnknown = -1;
  for (const token of tokensOf(argv, kinds)) {
    if (token.kind === 'option-terminator') continue;
    if (token.kind === 'positional') {
      // The word after an unknown flag is most likely its value.
      if (token.index !== afterUnknown) positionals.push(token.value);
      continue;
    }
    const kind = kinds.get(token.name);
    if (kind === undefined) {
      errors.push(unknown('flag', token.rawName, [...kinds.keys()], '--'));
      if (token.value === undefined) afterUnknown = token.index + 1;
      continue;
    }
    const value =
      kind !== 'switch' ? token.value : (token.value ?? String(!token.rawName.startsWith('--no-')));
    if (value === undefined) {
      errors.push(`${token.rawName}: A value is missing`);
      continue;
    }
    const name = names.get(token.name);
    if (name !== undefined) texts.set(name, [...(texts.get(name) ?? []), value]);
    else if (token.name === 'config') config = value;
    else own[token.name] = ownValue(kind, value, own[token.name]);
  }
  const given = [...texts].map(([name, all]) => {
    const { kind } = settingsTable[name];
    const raw = kind.separator === undefined ? all.at(-1) : all.flatMap((text) => valuesIn(text, kind));
    return { name, raw, place: `--${flagOf(name)}` };
  });
  return { config, own, positionals, given, errors };
}

function ownValue(kind: FlagKind, value: string, before: OwnValue | undefined): OwnValue {
  if (kind === 'switch') return value === 'true';
  return kind === 'value' ? value : [...(Array.isArray(before) ? before : []), value];
}

type Token = NonNullable<ReturnType<typeof parseArgs>['tokens']>[number];

/** A value that looks like a flag is read as a flag, and the value as missing; `--zone=--x` is a value. */
function* tokensOf(
  argv: readonly string[],
  kinds: ReadonlyMap<string, FlagKind>,
  from = 0,
): Generator<Token> {
  const types = { switch: 'boolean', value: 'string', values: 'string' } as const;
  const options = Object.fromEntries([...kinds].map(([flag, kind]) => [flag, { type: types[kind] }]));
  const rules = { strict: false, allowPositionals: true, allowNegative: true, tokens: true } as const;
  for (const token of parseArgs({ args: argv.slice(from), options, ...rules }).tokens) {
    const index = from + token.index;
    if (token.kind !== 'option' || token.inlineValue !== false || !token.value.startsWith('--')) {
      yield { ...token, index };
      continue;
    }
    yield { ...token, index, value: undefined, inlineValue: undefined };
    yield* tokensOf(argv, kinds, index + 1);
    return;
  }
}

// Kubernetes sets these variables for a Service named headgate in every pod of its namespace:
// https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
const SERVICE_LINK =
  /_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/;

const PREFIX = 'HEADGATE_';

/** Without a value they would be off, which their author cannot have meant. */
const PROTECTING: ReadonlySet<string> = new Set(SETTINGS_THAT_PROTECT.map(({ name }) => name));

function isProtecting(name: SettingName | 'config'): name is SettingName {
  return PROTECTING.has(name);
}

/** The `HEADGATE_` variables; an empty one counts as absent, unless its setting protects. */
export function readVariables(
  env: Readonly<Record<string, string | undefined>>,
): Source & { readonly config: string | undefined } {
  const names = new Map<string, SettingName | 'config'>([['HEADGATE_CONFIG', 'config']]);
  for (const [name] of allSettings()) names.set(variableOf(name), name);
  const given: Given[] = [];
  const errors: string[] = [];
  let config: string | undefined;
  for (const [variable, value] of Object.entries(env)) {
    if (!variable.startsWith(PREFIX) || value === undefined) continue;
    // The variable of a Service such as headgate-pair can have the name of a setting.
    if (SERVICE_LINK.test(variable) && /^(?:tcp|udp|sctp):\/\//.test(value)) continue;
    const name = names.get(variable);
    if (/^[\s,;]*$/.test(value) && name !== undefined && isProtecting(name)) {
      errors.push(withoutValue(variable, name));
      continue;
    }
    if (value === '') continue;
    if (name === undefined) {
      const known = [...names.keys()].map((each) => each.slice(PREFIX.length));
      if (!SERVICE_LINK.test(variable)) errors.push(unknown('variable', variable, known, PREFIX));
    } else if (name === 'config') {
      config = value;
    } else {
      const values = valuesIn(value, settingsTable[name].kind);
      const raw = typeof values === 'string' ? values : values.filter((part) => part !== '');
      given.push({ name, raw, place: variable });
    }
  }
  return { given, errors, config };
}

/** The settings file; a key without a value counts as absent, unless its setting protects. */
export function readSettingsFile(
  path: string | undefined,
  readFile: (path: string) => string,
  cwd: string,
): Source {
  if (path === undefined) return { given: [], errors: [] };
  const absolute = resolve(cwd, path);
  let content: string;
  try {
    content = readFile(absolute);
  } catch (error) {
    return { given: [], errors: [`${path}: Cannot read the settings file: ${messageOf(error)}`] };
  }
  const { documents, errors: faults } = parseYamlDocuments(content);
  const errors = faults.map(({ line, column, message }) => `${path}:${line}:${column}: ${message}`);
  if (documents.length > 1) {
    errors.push(
      `${path}:${documents[1]?.line}: A second document begins here: the settings must be one document`,
    );
  }
  const settings = documents[0]?.value ?? {};
  if (typeof settings !== 'object' || Array.isArray(settings)) {
    return { given: [], errors: [...errors, `${path}: ${shown(settings)} is not a mapping of settings`] };
  }
  const given: Given[] = [];
  for (const [key, raw] of Object.entries(settings)) {
    const place = `${path}: ${key}`;
    if (!isSettingName(key)) errors.push(unknown('key', place, Object.keys(settingsTable), '', key));
    else if (raw !== null && raw !== undefined)
      given.push({ name: key, raw, place, directory: dirname(absolute) });
    else if (isProtecting(key)) errors.push(withoutValue(place, key));
  }
  return { given, errors };
}

function withoutValue(place: string, name: SettingName): string {
  const { allowed } = settingsTable[name].kind;
  return `${place}: A value is missing, and this setting protects: leave it out, or set it to ${allowed}`;
}

/** `prefix`: the beginning of all names of this source, which does not count for the nearest name. */
function unknown(
  what: string,
  place: string,
  known: readonly string[],
  prefix: string,
  word = place.slice(prefix.length),
): string {
  return `${place}: Unknown ${what}${nearestHint(word, known, prefix)}`;
}
