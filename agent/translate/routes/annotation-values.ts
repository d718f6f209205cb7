// The kinds of value that annotations of routes and Ingresses have: functions that read a text, or refuse it. Pure.

import { parseCidrOrAddress } from '../../base/ip.ts';

/** A text that has passed its rule, or undefined. */
export type Parse<T> = (text: string) => T | undefined;

export interface AnnotationRule<T> {
  readonly parse: Parse<T>;
  readonly allowed: string;
  readonly doc: string;
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

export const url: Parse<URL> = (text) => {
  if (!URL.canParse(text) || /[\s"'\\{}|^`]/.test(text)) return undefined;
  const parsed = new URL(text);
  return /^https?:$/.test(parsed.protocol) && parsed.username === '' && parsed.search === ''
    ? parsed
    : undefined;
};

export const cidr: Parse<string> = (text) => parseCidrOrAddress(text)?.cidr;

export const oneOf =
  <T extends string>(...choices: readonly T[]): Parse<T> =>
  (text) =>
    choices.find((each) => each === text);

export const BOOL = 'true or false';

export function rule<T>(parse: Parse<T>, allowed: string, doc: string): AnnotationRule<T> {
  return { parse, allowed, doc };
}
