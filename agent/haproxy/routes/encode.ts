// Encodes what authors of routes control, so that it can stand in a row of a map: hosts, paths, names and values. No other
// file puts such a text into a row. Pure.

import { createHash } from 'node:crypto';
import type { Anchoring } from '../../base/expression/automaton.ts';
import type {
  ExternalAuth,
  ForwardAction,
  Header,
  HeaderChanges,
  HostPattern,
  RouteJwt,
  RouteMatch,
  ValueMatch,
} from '../../model/routes.ts';

export { encodedPath as pathText, oneSpelling } from '../../base/one-spelling.ts';

/** The first `digits` hexadecimal digits of a hash of the text. */
export function digest(text: string, digits: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, digits);
}

/** A host as in a request. Characters that no host has are encoded, and then match no request. */
export function hostText(host: string): string {
  return /^[a-z0-9.-]*$/.test(host) ? host : encoded(host.toLowerCase(), /[^a-z0-9.-]/gu);
}

/** A hostname in the name of a table: no two patterns have the same text. */
export function patternText({ kind, suffix }: HostPattern): string {
  const host = hostText(suffix);
  switch (kind) {
    case 'exact':
      return host;
    case 'one-label':
      return `*.${host}`;
    case 'labels':
      return `**.${host}`;
    case 'any':
      return '*';
  }
}

/** A URL with variables, as clients get it. */
export function locationText(location: string): string {
  return encoded(location, /[^A-Za-z0-9._~!$&'()*+,;=:@/%?#[\]-]/gu);
}

/** A text that Lua decodes. */
export function token(text: string): string {
  return encoded(text, /[^A-Za-z0-9._~/:*+-]/gu);
}

/** `TARGET@HTTPRoute/default/api#0`, from the rule's name `HTTPRoute default/api#0`. */
export function namedTarget(target: string, rule: string): string {
  return `${target}@${rule.replace(' ', '/').replace(/[^A-Za-z0-9./#-]/g, '_')}`;
}

/** Without the rule's name. */
export function plainTarget(target: string): string {
  return target.split('@', 1)[0] ?? '';
}

/** The value of a header: characters that none may have are left out. */
export function headerText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these end a header, and would begin another one.
  return text.replace(/[\u0000-\u001f\u007f]/g, '').trim();
}

/** The name of a header or a method: characters that none may have are left out. */
export function nameText(text: string): string {
  return text.replace(/[^!#$%&'*+.^_`|~0-9A-Za-z-]/g, '');
}

/**
 * The conditions of a candidate besides a path that leads to it; '' for none. A letter tells what each is about, in upper case
 * if it has the id of an expression instead of a value. `idOf`: of its row.
 */
export function conditionsText(
  match: RouteMatch,
  idOf: (pattern: string, anchoring: Anchoring) => string = expressionId,
): string {
  const { path, method, headers, query } = match;
  const conditionText = (kind: 'h' | 'q', { name, kind: how, value }: ValueMatch): string =>
    how === 'regex'
      ? `${kind.toUpperCase()}${token(name)}=${idOf(value, 'whole')}`
      : `${kind}${token(name)}=${token(value)}`;
  return [
    ...(method === '' ? [] : [`m${token(method)}`]),
    ...headers.map((each) => conditionText('h', each)),
    ...query.map((each) => conditionText('q', each)),
    ...(path.kind === 'regex' ? [`P${idOf(path.value, 'start')}`] : []),
  ].join('&');
}

/** `table`: rows of different tables have different keys. */
export function expressionId(pattern: string, anchoring: Anchoring, table = ''): string {
  return `x:${digest(`${table} ${anchoring} ${pattern}`, 24)}`;
}

/** Without the text of what it is about. */
export function isConditional({ path, method, headers, query }: RouteMatch): boolean {
  return path.kind === 'regex' || method !== '' || headers.length > 0 || query.length > 0;
}

/** `sNAME=VALUE&aNAME=VALUE&rNAME`; '' for no change. */
export function headerChangesText(changes: HeaderChanges | undefined): string {
  if (changes === undefined) return '';
  const valued = (kind: string, { name, value }: Header): string =>
    `${kind}${token(nameText(name))}=${token(headerText(value))}`;
  return [
    ...changes.set.map((header) => valued('s', header)),
    ...changes.add.map((header) => valued('a', header)),
    ...changes.remove.map((name) => `r${token(nameText(name))}`),
  ].join('&');
}

/** No service is asked: HAProxy answers 503. */
const NO_POOL = 'none';

/**
 * `POOL mMETHOD&hHOST&…`, as templates/haproxy/external-auth.lua reads it. An answer that is kept counts
 * for the rule alone.
 */
export function externalAuthText({ pool, refusal, cache, ...asked }: ExternalAuth, rule: string): string {
  const { method, host, path, isPrefix, letsIn, requestHeaders, responseHeaders } = asked;
  const namesText = (names: readonly string[] | undefined): string =>
    names === undefined ? '*' : names.map((name) => token(nameText(name))).join(',');
  const fields = {
    m: method === 'of-request' ? '*' : method,
    h: token(headerText(host)),
    u: token(locationText(isPrefix ? path.replaceAll('$', '%24') : path)),
    p: isPrefix ? '1' : '',
    l: letsIn,
    q: namesText(requestHeaders),
    a: namesText(responseHeaders),
    s: token(locationText(refusal.signIn)),
    x: token(locationText(refusal.redirect)),
    r: refusal.passesRedirects ? '1' : '',
    c: refusal.alwaysSetsCookies ? '1' : '',
    ...(cache && {
      k: cache.variables.map((name) => (cache.credentials.includes(name) ? '!' : '') + name).join(','),
      d: cache.seconds.map(([status, seconds]) => `${status}:${seconds}`).join(','),
      i: digest(rule, 12),
    }),
  };
  return `${pool || NO_POOL} ${Object.entries(fields)
    .map(([name, value]) => name + value)
    .join('&')}`;
}

/** `CODES POOL NAMESPACE INGRESS SERVICE PORT`, as templates/haproxy/custom-errors.lua reads it; `none`: the class has the pages. */
export function customErrorsText({ fallback, customErrors }: ForwardAction): string {
  if (customErrors === undefined) return '';
  const { codes, namespace, ingress, service, port } = customErrors;
  const names = [namespace, ingress, service].map((name) => name.replace(/[^A-Za-z0-9.-]/g, '') || '-');
  return [codes.map(Number).join(',') || '-', fallback ?? NO_POOL, ...names, Number(port)].join(' ');
}

/** `SET|iISSUER&uAUDIENCE,…&fPLACE&lSECONDS&rCLAIM=VALUE,…&hHEADER=CLAIM&x`, as templates/haproxy/jwt.lua reads it. */
export function jwtText(
  { issuer, audiences, from, leeway, required, headers, isRemoved }: RouteJwt,
  set: string,
): string {
  const list = (texts: readonly string[]): string => texts.map(token).join(',');
  return [
    `${set}|i${token(issuer)}`,
    `u${list(audiences)}`,
    `f${from.kind}:${token(from.name)}`,
    `l${leeway}`,
    ...required.map(({ claim, values }) => `r${token(claim)}=${list(values)}`),
    ...headers.map(({ name, claim }) => `h${token(nameText(name))}=${token(claim)}`),
    ...(isRemoved === true ? ['x'] : []),
  ].join('&');
}

function encoded(text: string, unsafe: RegExp): string {
  return text.replace(unsafe, percent);
}

/** The bytes of UTF-8. */
function percent(character: string): string {
  return [...Buffer.from(character)]
    .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`)
    .join('');
}
