// The kinds of value that annotations of routes and Ingresses have: functions that read a text, or refuse it. Pure.

import { parseCidrOrAddress } from '../../base/ip.ts';

/** A text that has passed its rule, or undefined. */
export type Parse<T> = (text: string) => T | undefined;

export interface AnnotationRule<T> {
  readonly parse: Parse<T>;
  readonly allowed: string;
  readonly doc: string;
  /** For a list whose good entries count although others are wrong, because an entry only ever lets clients in. */
  readonly entry?: Parse<unknown>;
}

export const HOSTS = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/;
export const PATH = /^\/[^\s\p{Cc}"'\\]{0,1023}$/u;
export const HEADER = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/;
export const SECRET = /^[a-z0-9.-]{1,253}(\/[a-z0-9.-]{1,253})?$/;

export const bool: Parse<boolean> = (text) =>
  /^(true|false)$/i.test(text) ? text.toLowerCase() === 'true' : undefined;
export const matching =
  (pattern: RegExp): Parse<string> =>
  (text) =>
    pattern.test(text) ? text : undefined;
export const number =
  (min: number, max: number): Parse<number> =>
  (text) =>
    /^\d{1,10}$/.test(text) && Number(text) >= min && Number(text) <= max ? Number(text) : undefined;
export const list =
  <T>(parse: Parse<T>): Parse<readonly T[]> =>
  (text) => {
    const items = text.split(',').map((each) => parse(each.trim()));
    return items.includes(undefined) ? undefined : (items as readonly T[]);
  };

/** `8m`, `512k`, `1g` or bytes; 0 for no limit. */
export const size: Parse<number> = (text) => {
  const [, digits = '', unit = ''] = /^(\d{1,10})([kmg]?)$/i.exec(text) ?? [];
  const factor = { '': 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3 }[unit.toLowerCase()] ?? Number.NaN;
  return digits === '' ? undefined : Number(digits) * factor;
};

export const seconds: Parse<number> = (text) => {
  const [, digits] = /^(\d{1,6})s?$/.exec(text) ?? [];
  return digits === undefined ? undefined : Number(digits) * 1000;
};

/** Variables of nginx; another `$` is refused. `is_args` is `?` if the request has a query. */
const VARIABLES = /\$(?:host|request_uri|uri|is_args|args|query_string)(?![A-Za-z0-9_])/g;
/** For the check of the whole; others stand for a path. */
const EXAMPLES: Readonly<Record<string, string>> = {
  $host: 'host',
  $is_args: '?',
  $args: 'a',
  $query_string: 'a',
};
/** The host is the author's or the one that the client has asked for, never a part of a path. */
const HOST_FIRST = /^https?:\/\/(?:[A-Za-z0-9.:[\]_-]|\$host(?![A-Za-z0-9_]))+(?:[/?#]|\$(?:request_)?uri|$)/;

/** An http or https URL with variables of nginx. */
export const location: Parse<string> = (text) => {
  if (/[\s\p{Cc}"'\\{}|^`<>]/u.test(text) || text.length > 1024) return undefined;
  const withScheme = text.replace(/^\$scheme(?=:)/, 'http');
  const plain = withScheme.replace(VARIABLES, (name) => EXAMPLES[name] ?? '/');
  if (plain.includes('$') || !URL.canParse(plain) || !/^https?:\/\//.test(plain)) return undefined;
  const { username, href } = new URL(plain);
  if (username !== '') return undefined;
  if (plain === text) return href;
  return HOST_FIRST.test(withScheme) ? text : undefined;
};

/** A path on the host of the request, with a query or without; variables as in a location. */
export const pathWithVariables: Parse<string> = (text) =>
  text.startsWith('/') && location(`http://$host${text}`) !== undefined ? text : undefined;

export const cidr: Parse<string> = (text) => parseCidrOrAddress(text)?.cidr;

export const oneOf =
  <T extends string>(...choices: readonly T[]): Parse<T> =>
  (text) =>
    choices.find((each) => each === text);

export const BOOL = 'true or false';

/** A list that lets clients in by each entry: a wrong one lets none in. */
export function listRule<T>(entry: Parse<T>, allowed: string, doc: string): AnnotationRule<readonly T[]> {
  return { parse: list(entry), allowed, doc, entry };
}

export function rule<T>(parse: Parse<T>, allowed: string, doc: string): AnnotationRule<T> {
  return { parse, allowed, doc };
}
