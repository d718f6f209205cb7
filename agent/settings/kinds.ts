// The kinds of value a setting can have: how each is read from a file, a flag or a variable, what it allows in
// words, and how it is written again. Pure: a value that is not allowed comes back as errors, never as an exception.

import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { parseAddress } from '../base/ip.ts';
import * as kinds from '../translate/annotations/kinds.ts';

/** What reading gives: the value as the code has it, or what is wrong, one text per fault. */
export type Reading<T> = { readonly value: T } | { readonly errors: readonly string[] };

export interface Kind<T> {
  /** The word after the flag in `--help`; '' for a switch, which needs none. */
  readonly placeholder: string;
  /** Completes "is not": `a number from 1 to 100`. */
  readonly allowed: string;
  /** One flag or variable may give several values: this is what separates them in a variable. */
  readonly separator?: string;
  /**
   * `raw` is what the YAML file holds, or the text of a flag or variable (a list of texts where there is a separator).
   * Relative paths are resolved against `directory`.
   */
  read(raw: unknown, directory: string): Reading<T>;
  /** The value as a user would write it. */
  write(value: T): string;
  /** Joins what two sources say, the first having precedence; without it, the first replaces the second. */
  merge?(first: T, second: T): T;
  /** What is wrong with the value once all sources are merged. */
  check?(value: T): readonly string[];
}

/** Text that matches `pattern`; `allowed` says so in words. */
export function text(placeholder: string, pattern: RegExp, allowed: string): Kind<string> {
  const parse = (raw: string) => (pattern.test(raw) ? raw : undefined);
  return scalar(placeholder, { words: allowed, parse, format: String });
}

export function choice<const T extends string>(...choices: readonly T[]): Kind<T> {
  return scalar(choices.join('|'), kinds.choice(...choices));
}

export function toggle(): Kind<boolean> {
  return scalar('', kinds.bool);
}

/** A whole number from `least` to `most`; `unit` is for the reader (`MB`). */
export function integer(least: number, most: number, unit = ''): Kind<number> {
  const kind = kinds.wholeNumber(least, most);
  return unit === '' ? scalar('N', kind) : scalar(unit, { ...kind, words: `${kind.words} (${unit})` });
}

/** A length of time in milliseconds. */
export function duration(least: number, most: number): Kind<number> {
  return scalar('DURATION', kinds.duration(least, most));
}

export function durationOrOff(least: number, most: number): Kind<number> {
  return scalar('DURATION', kinds.durationOrOff(least, most));
}

/** An IP address and a port as `ADDR:PORT`, IPv6 in brackets. */
export interface ListenAddress {
  readonly address: string;
  readonly port: number;
}

export function listenAddress(): Kind<ListenAddress> {
  const allowed =
    'ADDR:PORT with an IP address and a port from 0 to 65535, such as 127.0.0.1:9180 or [::1]:9180';
  const parse = (raw: string) => {
    const [, v6, v4, digits] = /^(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+)):(\d{1,5})$/.exec(raw) ?? [];
    const address = v6 ?? v4 ?? '';
    if (isIP(address) !== (v6 === undefined ? 4 : 6) || Number(digits) > 65535) return undefined;
    return { address, port: Number(digits) };
  };
  const format = ({ address, port }: ListenAddress) =>
    isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`;
  return scalar('ADDR:PORT', { words: allowed, parse, format });
}

/** One IP address in its canonical spelling, or nothing. */
export function address(): Kind<string> {
  const parse = (raw: string) => (raw === '' ? '' : parseAddress(raw)?.address);
  return scalar('ADDR', { words: 'an IP address, or nothing', parse, format: String });
}

// What HAProxy's and keepalived's files take without quoting; a path of ours is written into them.
const SAFE_PATH = /^[A-Za-z0-9._/@%+=-]+$/;

/** A directory of ours; `most` bytes at most once it is absolute. */
export function directory(most = 4096): Kind<string> {
  const allowed = 'the path of a directory made of letters, digits and . _ - / @ % + =';
  return {
    placeholder: 'DIR',
    allowed,
    read(raw, base) {
      if (typeof raw !== 'string' || !SAFE_PATH.test(raw)) return refuse(raw, allowed);
      const path = resolve(base, raw);
      const length = Buffer.byteLength(path);
      if (length <= most) return { value: path };
      return {
        errors: [
          `${shown(path)} is ${length} bytes long: at most ${most} leave room for the names of sockets in it`,
        ],
      };
    },
    write: String,
  };
}

/** A program: a name that is looked up in PATH, or a path. */
export function program(): Kind<string> {
  const allowed = 'the name or the path of a program';
  return {
    placeholder: 'PROGRAM',
    allowed,
    read(raw, base) {
      if (typeof raw !== 'string' || raw === '' || raw.startsWith('-') || raw.includes('\0'))
        return refuse(raw, allowed);
      return { value: raw.includes('/') ? resolve(base, raw) : raw };
    },
    write: String,
  };
}

export function directories(): Kind<readonly string[]> {
  const allowed = 'a list of paths of directories';
  return {
    placeholder: 'DIR',
    allowed,
    separator: ':',
    read(raw, base) {
      const list = typeof raw === 'string' ? [raw] : raw;
      if (!Array.isArray(list)) return refuse(raw, allowed);
      const wrong = list.filter((one) => typeof one !== 'string' || one === '' || one.includes('\0'));
      if (wrong.length > 0)
        return { errors: wrong.map((one) => `${shown(one)} is not the path of a directory`) };
      return { value: [...new Set(list.map((one) => resolve(base, one)))] };
    },
    write: (list) => list.join(':'),
  };
}

/** A file that need not exist yet, or nothing. */
export function file(): Kind<string> {
  const allowed = 'the path of a file, or nothing';
  return {
    placeholder: 'FILE',
    allowed,
    read(raw, base) {
      if (typeof raw !== 'string' || raw.includes('\0')) return refuse(raw, allowed);
      return { value: raw === '' ? '' : resolve(base, raw) };
    },
    write: String,
  };
}

/** Namespaces, separated by commas in a flag or a variable. */
export function names(): Kind<readonly string[]> {
  return list('NAME', 'a list of names of namespaces', (one) =>
    /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(one),
  );
}

/** URLs of servers, separated by commas in a flag or a variable. */
export function urls(): Kind<readonly string[]> {
  return list('URL', 'a list of URLs such as https://192.0.2.1:6443', (one) => {
    const url = URL.canParse(one) ? new URL(one) : undefined;
    return (
      url !== undefined &&
      ['http:', 'https:'].includes(url.protocol) &&
      url.username === '' &&
      url.password === ''
    );
  });
}

function list(
  placeholder: string,
  allowed: string,
  isAllowed: (one: string) => boolean,
): Kind<readonly string[]> {
  return {
    placeholder,
    allowed,
    separator: ',',
    read(raw) {
      const given = typeof raw === 'string' ? [raw] : raw;
      if (!Array.isArray(given) || !given.every((one) => typeof one === 'string'))
        return refuse(raw, allowed);
      const wrong = given.filter((one) => !isAllowed(one));
      if (wrong.length > 0) return { errors: wrong.map((one) => `${shown(one)} is not in ${allowed}`) };
      return { value: [...new Set(given)] };
    },
    write: (value) => value.join(','),
  };
}

/** Names with a text each. Sources are merged name by name; `check` says what is wrong with all of them together. */
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

/** `"abc" is not a number`: the one mould for a value that is not allowed. */
function refuse(raw: unknown, allowed: string): { errors: readonly string[] } {
  return { errors: [`${shown(raw)} is not ${allowed}`] };
}

/** A value as the error shows it: JSON, cut where it is long. */
export function shown(raw: unknown): string {
  const written = JSON.stringify(raw) ?? String(raw);
  return written.length <= 200 ? written : `${written.slice(0, 200)}…`;
}

function scalar<T>(placeholder: string, kind: Pick<kinds.Kind<T>, 'words' | 'parse' | 'format'>): Kind<T> {
  return {
    placeholder,
    allowed: kind.words,
    read(raw) {
      // YAML makes numbers and truth values of bare words: take them for the text they were written as.
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
