// For how long answers of an authorization server count, as in ingress-nginx. A key without a credential would let every client in
// once one is, so it is refused. Pure.

import type { AuthCache } from '../../model/routes.ts';
import type { Parse } from '../routes/annotation-values.ts';

const VARIABLE =
  /\$(remote_user|remote_addr|host|request_uri|uri|scheme|request_method|(?:http|cookie|arg)_[A-Za-z0-9_]{1,64})(?![A-Za-z0-9_])/g;
/** The name of a user is in `Authorization`, and proves nothing alone. */
const WITHOUT_VALUE = 'remote_user';
const CREDENTIAL = /^(?:cookie_.+|http_(?!sec_).*(?:auth|cookie|token|key|session|secret).*)$/i;
const MOST_SECONDS = 86_400;
const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const PART = /^((?:(?:\d{3}|any)\s+)*)(\d{1,6})([smhd]?)$/;
const ANY = [200, 201, 202, 204, 206, 401, 403];

export const CACHE_KEY_WORDS =
  'a text with $http_NAME, $cookie_NAME, $arg_NAME, $remote_addr, $host, $request_uri, $uri, $scheme, $request_method or $remote_user; one of them is a cookie, or a header whose name has auth, cookie, token, key, session or secret';

/** As ingress-nginx has it. */
export const DEFAULT_CACHE: AuthCache['seconds'] = [
  [200, 300],
  [202, 300],
  [401, 300],
];

export const cacheKey: Parse<Omit<AuthCache, 'seconds'>> = (text) => {
  if (text.length > 256 || !/^[\x21-\x7e]+$/.test(text) || text.replace(VARIABLE, '').includes('$'))
    return undefined;
  const names = new Set(Array.from(text.matchAll(VARIABLE), ([, name = '']) => name));
  names.delete(WITHOUT_VALUE);
  const variables = [...names];
  const credentials = variables.filter((name) => CREDENTIAL.test(name));
  return credentials.length === 0 ? undefined : { variables, credentials };
};

export const cacheDuration: Parse<AuthCache['seconds']> = (text) => {
  const seconds = new Map<number, number>();
  for (const part of text.split(',')) {
    const [, statuses = '', number = '', unit = ''] = PART.exec(part.trim()) ?? [];
    const time = Number(number) * (UNITS[unit] ?? 1);
    if (number === '' || time > MOST_SECONDS) return undefined;
    const words = statuses.split(/\s+/).filter(Boolean);
    const all = words.flatMap((word) => (word === 'any' ? ANY : [Number(word)]));
    for (const status of words.length === 0 ? [200] : all)
      if (isKept(status) && !seconds.has(status)) seconds.set(status, time);
  }
  return [...seconds].filter(([, time]) => time > 0);
};

/** Clients see no other status of the service. */
function isKept(status: number): boolean {
  return (status >= 200 && status <= 299) || status === 401 || status === 403;
}
