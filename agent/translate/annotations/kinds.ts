// The kinds of value that an annotation can have: a function that parses the value, and the allowed values in words.
// The result of `parse` is safe as a bare word in HAProxy's configuration and commands: no blank, quote, backslash, `#`,
// `$`, `%`, `;` and only ASCII. The kinds for a body are safe between single quotes. Pure.

import { CIPHERS } from '../../base/ciphers.ts';
import { parseAddress, parseCidrOrAddress } from '../../base/ip.ts';
import { label, labelValue, subdomain } from '../../base/name-forms.ts';
import { isHarmlessPattern } from './body-pattern.ts';

export type Limits = readonly [min: number, max: number];

export interface Kind<T> {
  /** The allowed values; completes `is not`. */
  readonly words: string;
  /** For numbers and durations; in milliseconds for durations. */
  readonly limits?: Limits;
  /** Key: a value that an author may well expect; value: why it is refused, instead of `words`. */
  readonly whyNot?: ReadonlyMap<string, string>;
  /** undefined if the value is not allowed. The time is at most proportional to the text. */
  parse(text: string): T | undefined;
  /** The text that parses to this value. */
  format(value: T): string;
}

export function choice<const T extends string>(...options: readonly T[]): Kind<T> {
  return {
    words: oneOf(options),
    parse: (text) => options.find((option) => option === text),
    format: (value) => value,
  };
}

export const bool: Kind<boolean> = {
  words: oneOf(['true', 'false']),
  parse: (text) => (text === 'true' ? true : text === 'false' ? false : undefined),
  format: String,
};

export function wholeNumber(min: number, max: number): Kind<number> {
  return {
    words: `a whole number from ${min} to ${max}`,
    limits: [min, max],
    parse: (text) => (/^\d{1,10}$/.test(text) ? within(Number(text), min, max) : undefined),
    format: String,
  };
}

export const MILLISECOND = 1;
export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

const UNITS: Readonly<Record<string, number>> = { d: DAY, h: HOUR, m: MINUTE, s: SECOND, ms: MILLISECOND };

/**
 * One whole number with its unit; gives milliseconds. A number without a unit is refused, because HAProxy and Octavia
 * would read it as milliseconds, Kubernetes' probes as seconds.
 */
export function duration(min: number, max: number): Kind<number> {
  return {
    words: `a duration with its unit (ms, s, m, h or d) from ${formatDuration(min)} to ${formatDuration(max)}`,
    limits: [min, max],
    parse: (text) => {
      const [, digits, unit] = /^(\d{1,10})(ms|s|m|h|d)$/.exec(text) ?? [];
      return digits && unit ? within(Number(digits) * (UNITS[unit] ?? 0), min, max) : undefined;
    },
    format: formatDuration,
  };
}

const OFF = /^0(?:ms|s|m|h|d)?$/;

/** A duration, or `0` with or without a unit for off. */
export function durationOrOff(min: number, max: number): Kind<number> {
  const on = duration(min, max);
  return { ...on, words: `0 or ${on.words}`, parse: (text) => (OFF.test(text) ? 0 : on.parse(text)) };
}

/** A text that stays as it is. */
function textKind(words: string, isAllowed: (text: string) => boolean): Kind<string> {
  const parse = (text: string) => (isAllowed(text) ? text : undefined);
  return { words, parse, format: (value) => value };
}

/** A path that HAProxy accepts without quotes and sends unchanged. */
export const path = textKind(
  'a path that begins with / and has at most 256 letters, digits and characters of -._~/?&=:@+',
  (text) => /^\/[A-Za-z0-9\-._~/?&=:@+]{0,255}$/.test(text),
);

/** Codes and ranges, sorted and merged, so that equal sets are equal texts. */
export const statusCodes: Kind<string> = {
  words: 'a list of status codes from 100 to 599 and ranges of them, such as 200,204 or 200-399',
  parse: parseStatusCodes,
  format: (value) => value,
};

/** Canonical addresses in their given order. One that is no address beside another that is one stays as it is, to be refused alone. */
export const addressPerFamily: Kind<readonly string[]> = {
  words: 'one IPv4 address, one IPv6 address, or one of each with a comma between them',
  parse: (text) => {
    const parts = text.split(',', 3).map((part) => part.trim());
    const parsed = parts.map((part) => parseAddress(part));
    const families = new Set(parsed.map((address) => address?.family));
    const isAny = parsed.some((address) => address !== undefined);
    if (!isAny || parts.length > 2 || families.size < parts.length) return undefined;
    return parts.map((part, at) => parsed[at]?.address ?? part);
  },
  format: (value) => value.join(','),
};

/** The name of an object in Kubernetes (RFC 1123). */
export const objectName = textKind(
  'a name of at most 253 characters (a-z, 0-9, - and .) that begins and ends with a letter or digit',
  subdomain.check,
);

/** A list without repetitions, as one text. `most`: how many items it may have. */
function listKind(item: string, most: number, isAllowed: (item: string) => boolean): Kind<readonly string[]> {
  return {
    words: `a list of 1 to ${most} ${item}, separated by commas`,
    parse: (text) => {
      const items = [...new Set(text.split(',').map((each) => each.trim()))];
      return items.length <= most && items.every(isAllowed) ? items : undefined;
    },
    format: (value) => value.join(','),
  };
}

export const secretNames = listKind(
  'names of Secrets (a-z, 0-9, - and ., at most 253 characters)',
  16,
  (text) => objectName.parse(text) !== undefined,
);

/** `clients` for a ConfigMap, `secret/shop-tls` for a Secret; gives the dependency without its namespace. */
export const authorityObject = textKind(
  'the name of a ConfigMap, or secret/ with the name of a Secret, or nothing',
  (text) => text === '' || objectName.parse(text.replace(/^secret\//, '')) !== undefined,
);

/** `pages`, or `web/pages` with its namespace. */
export const configMapName = textKind(
  'the name of a ConfigMap, or its namespace and name with / between them, or nothing',
  (text) =>
    text === '' ||
    (text.split('/', 3).length < 3 && text.split('/').every((part) => objectName.parse(part) !== undefined)),
);

/** Numbers and names, as a Service's ports have them. */
export const portList = listKind(
  'numbers or names of ports',
  32,
  (text) => (/^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535) || label.check(text),
);

export const cipherList = listKind(
  'known ciphers, such as ECDHE-RSA-AES128-GCM-SHA256',
  CIPHERS.length,
  (text) => CIPHERS.some((cipher) => cipher === text),
);

/** Names of RFC 7301, and `none` for no negotiation. */
export const protocolList = listKind(
  'names of protocols (letters, digits, -, _, / and .), or none',
  8,
  (text) => /^[A-Za-z0-9][A-Za-z0-9._/-]{0,31}$/.test(text),
);

/** HAProxy accepts 64 words in a line. */
const MOST_CIDRS = 32;

/** Canonical CIDRs, sorted; an address alone is a CIDR of its own. */
export const cidrList: Kind<readonly string[]> = {
  words: `a list of 1 to ${MOST_CIDRS} CIDRs or addresses, separated by commas, or nothing`,
  parse: (text) => {
    if (text === '') return [];
    const cidrs = text.split(',').map((each) => parseCidrOrAddress(each.trim())?.cidr);
    const known = cidrs.filter((each) => each !== undefined);
    return known.length === cidrs.length && known.length <= MOST_CIDRS
      ? [...new Set(known)].sort()
      : undefined;
  },
  format: (value) => value.join(','),
};

/** A non-empty value of a Kubernetes label. */
export const word = textKind(
  'a word of at most 63 letters, digits, -, _ and . that begins and ends with a letter or digit',
  (text) => text !== '' && labelValue.check(text),
);

const NAME = '[A-Za-z0-9](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?';
const HOST = new RegExp(String.raw`^${NAME}(?:\.${NAME})*$`);
const isHost = (text: string): boolean => text.length <= 253 && HOST.test(text);

export const hostName = textKind(
  'a host name of at most 253 characters (letters, digits, - and .), or nothing',
  (text) => text === '' || isHost(text),
);

export const hostAndPort = textKind(
  'a host name of at most 253 characters (letters, digits, - and .), with an optional port, as in example.com:8443, or nothing',
  (text) => {
    const [, host = '', port = '1'] = /^([^:]+)(?::([1-9]\d{0,4}))?$/.exec(text) ?? [];
    return text === '' || (isHost(host) && Number(port) <= 65_535);
  },
);

export const grpcServiceName = textKind(
  'a name of at most 100 letters, digits, -, _, / and . that begins with a letter, digit or _, or nothing',
  (text) => /^(?:[A-Za-z0-9_][-A-Za-z0-9_./]{0,99})?$/.test(text),
);

/** A text for a place between single quotes, where HAProxy reads all other characters literally. */
export const bodyText = textKind(
  "a text of at most 200 printable ASCII characters other than ' and \\",
  (text) => /^[ -&(-[\]-~]{0,200}$/.test(text),
);

/** A pattern for a place between single quotes. */
export const bodyPattern = textKind(
  "a regular expression of at most 200 printable ASCII characters other than ', without * and +, and with counts up to {0,64} only after single characters and classes",
  (text) => text === '' || isHarmlessPattern(text),
);

/** `a`, `a or b`, `one of a, b or c`. */
export function oneOf(words: readonly string[]): string {
  if (words.length < 3) return words.join(' or ');
  return `one of ${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

function within(value: number, min: number, max: number): number | undefined {
  return value >= min && value <= max ? value : undefined;
}

function formatDuration(milliseconds: number): string {
  if (milliseconds === 0) return '0';
  for (const [unit, size] of Object.entries(UNITS)) {
    if (milliseconds % size === 0) return `${milliseconds / size}${unit}`;
  }
  return `${milliseconds}ms`;
}

function parseStatusCodes(text: string): string | undefined {
  const ranges: { from: number; to: number }[] = [];
  for (const part of text.split(',')) {
    const [, low, high] = /^\s*([1-5]\d\d)(?:-([1-5]\d\d))?\s*$/.exec(part) ?? [];
    const from = Number(low);
    const to = Number(high ?? low);
    if (!(from <= to)) return undefined;
    ranges.push({ from, to });
  }
  ranges.sort((a, b) => a.from - b.from);
  const merged: { from: number; to: number }[] = [];
  for (const range of ranges) {
    const last = merged.at(-1);
    if (last !== undefined && range.from <= last.to + 1) last.to = Math.max(last.to, range.to);
    else merged.push(range);
  }
  return merged.map(({ from, to }) => (from === to ? `${from}` : `${from}-${to}`)).join(',');
}
