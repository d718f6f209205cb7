// The kinds of value that a setting can have: reading from a file, a flag or a variable, the allowed values in words, and
// writing. Pure: an invalid value gives errors, never an exception.

import { resolve } from 'node:path';
import { parseAddress, parseCidr } from '../base/ip.ts';
import { formatLogTarget, LOG_TARGET_IN_WORDS, type LogTarget, parseLogTarget } from '../base/log-target.ts';
import { label } from '../base/name-forms.ts';
import { parseSocketAddress, socketAddress } from '../base/socket-address.ts';
import * as kinds from '../translate/annotations/kinds.ts';

/** The value, or one text per fault. */
export type Reading<T> = { readonly value: T } | { readonly errors: readonly string[] };

export interface Kind<T> {
  /** The word after the flag in `--help`; '' for a switch. */
  readonly placeholder: string;
  /** The allowed values; completes "is not": `a number from 1 to 100`. */
  readonly allowed: string;
  /** The setting can have several values: flags that are repeated, or a flag or variable with this separator. */
  readonly separator?: string;
  /** Instead of the separator, if it may stand within a value. */
  readonly splitsAt?: RegExp;
  /**
   * `raw`: the value in the YAML file, or the text of a flag or variable (a list of texts if there is a separator).
   * `directory`: where relative paths start.
   */
  read(raw: unknown, directory: string): Reading<T>;
  /** The value as a user would write it. */
  write(value: T): string;
  /** Merges the values of two sources; `first` has precedence. Without it, the first replaces the second. */
  merge?(first: T, second: T): T;
  /** The faults of the value after all sources are merged. */
  check?(value: T): readonly string[];
}

/** The values in the text of a flag or a variable. */
export function valuesIn(text: string, { separator, splitsAt }: Kind<unknown>): string | readonly string[] {
  return separator === undefined ? text : text.split(splitsAt ?? separator);
}

/** `allowed`: in words. */
export function text(
  placeholder: string,
  isAllowed: (raw: string) => boolean,
  allowed: string,
): Kind<string> {
  const parse = (raw: string) => (isAllowed(raw) ? raw : undefined);
  return scalar(placeholder, { words: allowed, parse, format: String });
}

export function choice<const T extends string>(...choices: readonly T[]): Kind<T> {
  return scalar(choices.join('|'), kinds.choice(...choices));
}

export function toggle(): Kind<boolean> {
  return scalar('', kinds.bool);
}

/** `unit` is for the documentation (`MB`). */
export function integer(min: number, max: number, unit = ''): Kind<number> {
  const kind = kinds.wholeNumber(min, max);
  return unit === '' ? scalar('N', kind) : scalar(unit, { ...kind, words: `${kind.words} (${unit})` });
}

/** In milliseconds. */
export function duration(min: number, max: number): Kind<number> {
  return scalar('DURATION', kinds.duration(min, max));
}

export function durationOrOff(min: number, max: number): Kind<number> {
  return scalar('DURATION', kinds.durationOrOff(min, max));
}

/** An IP address and a port as `ADDR:PORT`, IPv6 in brackets. */
export interface ListenAddress {
  readonly address: string;
  readonly port: number;
}

export function listenAddress(): Kind<ListenAddress> {
  const allowed =
    'ADDR:PORT with an IP address and a port from 0 to 65535, such as 127.0.0.1:9180 or [::1]:9180';
  const format = ({ address, port }: ListenAddress) => socketAddress(address, port);
  return scalar('ADDR:PORT', { words: allowed, parse: parseSocketAddress, format });
}

/** Where the connection log goes. */
export function logTarget(): Kind<LogTarget> {
  return scalar('TARGET', { words: LOG_TARGET_IN_WORDS, parse: parseLogTarget, format: formatLogTarget });
}

/** An IP address in canonical form, or nothing. */
export function address(): Kind<string> {
  const parse = (raw: string) => (raw === '' ? '' : parseAddress(raw)?.address);
  return scalar('ADDR', { words: 'an IP address, or nothing', parse, format: String });
}

/** Safe without quotes in HAProxy's and keepalived's files, into which the agent writes its paths. */
const SAFE_PATH = /^[A-Za-z0-9._/@%+=-]+$/;

/** One of the agent's own directories; `maxBytes` limits the absolute path. */
export function directory(maxBytes = 4096): Kind<string> {
  const allowed = 'the path of a directory made of letters, digits and . _ - / @ % + =';
  const kind = path('DIR', allowed, (raw) => SAFE_PATH.test(raw));
  return {
    ...kind,
    read(raw, base) {
      const reading = kind.read(raw, base);
      const bytes = 'value' in reading ? Buffer.byteLength(reading.value) : 0;
      if ('errors' in reading || bytes <= maxBytes) return reading;
      const fault = `is ${bytes} bytes long: at most ${maxBytes} leave room for the names of sockets in it`;
      return { errors: [`${shown(reading.value)} ${fault}`] };
    },
  };
}

/** A program: a name that is looked up in PATH, or a path. */
export function program(): Kind<string> {
  const isAllowed = (raw: string) => raw !== '' && !raw.startsWith('-') && !raw.includes('\0');
  return path('PROGRAM', 'the name or the path of a program', isAllowed, (raw) => raw.includes('/'));
}

/** A file, which need not exist yet, or nothing. */
export function file(): Kind<string> {
  const isAllowed = (raw: string) => !raw.includes('\0');
  return path('FILE', 'the path of a file, or nothing', isAllowed, (raw) => raw !== '');
}

/** `isPath`: false for texts that are not resolved. */
function path(
  placeholder: string,
  allowed: string,
  isAllowed: (raw: string) => boolean,
  isPath: (raw: string) => boolean = () => true,
): Kind<string> {
  return {
    placeholder,
    allowed,
    read(raw, base) {
      if (typeof raw !== 'string' || !isAllowed(raw)) return refuse(raw, allowed);
      return { value: isPath(raw) ? resolve(base, raw) : raw };
    },
    write: String,
  };
}

export function paths(): Kind<readonly string[]> {
  const isAllowed = (one: string) => one !== '' && !one.includes('\0');
  return list(
    'PATH',
    ':',
    'the path of a folder or file',
    'a list of paths of folders and files',
    isAllowed,
    resolve,
  );
}

export function names(): Kind<readonly string[]> {
  return list('NAME', ',', 'the name of a namespace', 'a list of names of namespaces', label.check);
}

/** Ranges of addresses, in canonical form. */
export function cidrs(): Kind<readonly string[]> {
  const example = 'such as 10.0.0.0/8 or fd00::/8';
  return list(
    'CIDR',
    ',',
    `a CIDR ${example}`,
    `a list of CIDRs ${example}`,
    (one) => parseCidr(one) !== undefined,
    (_, one) => parseCidr(one)?.cidr ?? one,
  );
}

/** URLs of servers, without credentials; a comma may stand in a path. */
export function urls(): Kind<readonly string[]> {
  const example = 'such as https://192.0.2.1:6443';
  const kind = list('URL', ',', `a URL ${example}`, `a list of URLs ${example}`, (one) => {
    const url = URL.canParse(one) ? new URL(one) : undefined;
    return (
      url !== undefined &&
      ['http:', 'https:'].includes(url.protocol) &&
      url.username === '' &&
      url.password === '' &&
      !url.host.includes(',') &&
      !/\s/.test(one)
    );
  });
  return { ...kind, splitsAt: /,(?=\s*https?:\/\/|\s*$)/i };
}

/** A URL for people, in which the query may have placeholders, or nothing. */
export function link(...placeholders: readonly string[]): Kind<string> {
  const words = placeholders.map((each) => `{${each}}`).join(' and ');
  const allowed = `a URL that begins with https:// or http://, without user and password and of at most ${MAX_LINK_LENGTH} characters, whose query may have ${words}, or nothing`;
  const withPlaceholders = new RegExp(`\\{(${placeholders.join('|')})\\}`, 'g');
  const parse = (raw: string) => {
    if (raw === '') return raw;
    const [, place = '', query = ''] = /^([^?]*)(.*)$/s.exec(raw) ?? [];
    // The characters of RFC 3986.
    const isPlain = /^[A-Za-z0-9\-._~:/?@[\]!$&'()*+,;=%]+$/.test(
      place + query.replaceAll(withPlaceholders, ''),
    );
    const url = URL.canParse(raw) ? new URL(raw) : undefined;
    const isAllowed = /^https?:\/\//.test(raw) && url?.username === '' && url.password === '';
    return isPlain && isAllowed && raw.length <= MAX_LINK_LENGTH ? raw : undefined;
  };
  return scalar('URL', { words: allowed, parse, format: String });
}

const MAX_LINK_LENGTH = 1_000;

/** `item` and `allowed`: an item and the whole list in words; `convert` gets the directory of relative paths. */
function list(
  placeholder: string,
  separator: string,
  item: string,
  allowed: string,
  isAllowed: (one: string) => boolean,
  convert: (directory: string, one: string) => string = (_, one) => one,
): Kind<readonly string[]> {
  return {
    placeholder,
    allowed,
    separator,
    read(raw, base) {
      const given: unknown = typeof raw === 'string' ? [raw] : raw;
      if (!Array.isArray(given)) return refuse(raw, allowed);
      const invalid = given.filter((one) => typeof one !== 'string' || !isAllowed(one));
      if (invalid.length > 0) return { errors: invalid.map((one) => `${shown(one)} is not ${item}`) };
      return { value: [...new Set(given.map((one) => convert(base, one)))] };
    },
    write: (value) => value.join(separator),
  };
}

/** A mapping from names to texts. Sources are merged name by name, then `check` gives the faults. */
export function entries(
  allowed: string,
  check: (record: Readonly<Record<string, string>>) => readonly string[],
): Kind<Readonly<Record<string, string>>> {
  return {
    placeholder: 'NAME=VALUE',
    allowed,
    separator: ';',
    read(raw) {
      const pairs = Array.isArray(raw) ? raw.map(splitEntry) : entriesOf(raw);
      if (pairs === undefined) return refuse(raw, allowed);
      const bare = pairs.filter(([, value]) => value === undefined);
      if (bare.length > 0) return { errors: bare.map(([name]) => `${shown(name)} is not NAME=VALUE`) };
      return { value: Object.fromEntries(pairs) as Record<string, string> };
    },
    write: (record) =>
      Object.entries(record)
        .map(([name, value]) => `${name}=${value}`)
        .sort()
        .join(';'),
    merge: (first, second) => ({ ...second, ...first }),
    check,
  };
}

/** The message for an invalid value: `"abc" is not a number`. */
function refuse(raw: unknown, allowed: string): { errors: readonly string[] } {
  return { errors: [`${shown(raw)} is not ${allowed}`] };
}

/** A value in an error message: JSON, shortened if it is long. */
export function shown(raw: unknown): string {
  const written = JSON.stringify(raw) ?? String(raw);
  return written.length <= 200 ? written : `${written.slice(0, 200)}…`;
}

function scalar<T>(placeholder: string, kind: Pick<kinds.Kind<T>, 'words' | 'parse' | 'format'>): Kind<T> {
  return {
    placeholder,
    allowed: kind.words,
    read(raw) {
      // YAML reads some words as numbers or booleans.
      const bare = typeof raw === 'string' || typeof raw === 'number' || typeof raw === 'boolean';
      const value = bare ? kind.parse(String(raw)) : undefined;
      return value === undefined ? refuse(raw, kind.words) : { value };
    },
    write: kind.format,
  };
}

function splitEntry(raw: unknown): [string, string | undefined] {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(String(raw)) ?? [];
  return name === undefined ? [String(raw), undefined] : [name.trim(), value];
}

function entriesOf(raw: unknown): [string, string][] | undefined {
  if (typeof raw !== 'object' || raw === null) return undefined;
  const pairs = Object.entries(raw);
  if (pairs.some(([, value]) => typeof value === 'object')) return undefined;
  return pairs.map(([name, value]) => [name, String(value)]);
}
