// Whether a client's token lets it in: as templates/haproxy/jwt.lua judges, by the keys that the listener has. Says what a token lacks,
// and never what it has. Pure.

import { quote } from '../../../base/quote.ts';
import type { StrictJson } from '../../../base/strict-json.ts';
import { type Claims, type VerifyingKey, verifiedClaims } from '../../../base/token.ts';
import type { TokenKey } from '../../../model/load-balancer.ts';
import { DEFAULT_LEEWAY_S, type RouteJwt, type TokenPlace } from '../../../model/routes.ts';
import { asked, type CheckResult, passed, refused, type Way } from './check.ts';
import type { Client } from './client.ts';
import { cookiesIn } from './cookies.ts';

/** As templates/haproxy/jwt.lua. */
export const MOST_ADDED_BYTES = 8000;
/** Digits of a key's hash: enough to see that it is another one. */
const SHOWN_DIGITS = 12;

export function token({ listener, request, client: { headers, now = 0 } }: Way): CheckResult | undefined {
  const jwt = request?.rule?.jwt;
  if (jwt === undefined) return undefined;
  const set = listener.tokenKeys?.find(({ name }) => jwt.keys !== '' && name === jwt.keys);
  if (set === undefined) return refused('no keys of tokens can be used', 'status 403');
  const by = set.keys.length === 0 ? 'keys, which are not read here,' : `key ${keysInWords(set.keys)}`;
  const what = `with a token of ${tokenInWords(jwt)}, by ${by} of ${jwt.keys}`;
  if (set.keys.length === 0) return asked(what, 'status 401');
  const given = tokenIn(headers, jwt.from);
  if (given === undefined) return refused('the request has several tokens', 'status 401');
  if (given === '') return asked(what, 'status 401');
  const why = faultOf(given, jwt, set.keys, now);
  return why === '' ? passed(what) : refused(`the token ${why}`, 'status 401');
}

/** All of it, because `plan` compares these words. */
function tokenInWords({ issuer, audiences, required, from, leeway, headers, isRemoved }: RouteJwt): string {
  const claims = required.map(({ claim, values }) =>
    values.length === 0 ? quote(claim) : `${quote(claim)} ${values.map(quote).join(' or ')}`,
  );
  return [
    quote(issuer),
    ...(audiences.length === 0 ? [] : [`for ${audiences.map(quote).join(' or ')}`]),
    ...(claims.length === 0 ? [] : [`with claim ${claims.join(' and ')}`]),
    ...(from.kind === 'bearer' ? [] : [`in ${from.kind} ${quote(from.name)}`]),
    ...(leeway === DEFAULT_LEEWAY_S ? [] : [`within ${leeway} s`]),
    ...headers.map(({ name, claim }) => `giving ${name} claim ${quote(claim)}`),
    ...(isRemoved === true ? ['which members do not get'] : []),
  ].join(' ');
}

function keysInWords(keys: readonly TokenKey[]): string {
  return keys
    .map(({ kid, algorithm, id }) => `${quote(kid)} (${algorithm}, ${id.slice(1, 1 + SHOWN_DIGITS)})`)
    .join(' or ');
}

/** '' without one; undefined if there are several, of which members could believe another one. */
function tokenIn(headers: Client['headers'], { kind, name }: TokenPlace): string | undefined {
  const [value = '', ...others] =
    kind === 'cookie' ? cookiesIn(headers?.get('cookie') ?? [], name) : (headers?.get(name) ?? []);
  if (others.length > 0) return undefined;
  return kind === 'bearer' ? (/^bearer +(\S+)\s*$/i.exec(value)?.[1] ?? '') : value;
}

/** '' if it lets in. `now`: milliseconds since the epoch. */
function faultOf(given: string, jwt: RouteJwt, keys: readonly VerifyingKey[], now: number): string {
  const verified = verifiedClaims(given, keys);
  if (typeof verified === 'string') return verified;
  const { claims } = verified;
  const seconds = Math.floor(now / 1000);
  const ends = timeOf(claims.get('exp'));
  if (ends === undefined) return 'does not say when it ends ("exp")';
  if (seconds >= ends + jwt.leeway) return 'has ended ("exp")';
  const begins = timeOf(claims.get('nbf'));
  if (claims.has('nbf') && !(begins !== undefined && seconds + jwt.leeway >= begins))
    return 'has not begun ("nbf")';
  const issuer = claims.get('iss');
  if (issuer?.kind !== 'text' || issuer.text !== jwt.issuer) return 'is of another issuer ("iss")';
  if (jwt.audiences.length > 0 && !hasOneOf(claims.get('aud'), jwt.audiences, false))
    return 'is for another audience ("aud")';
  const missing = jwt.required.find(
    ({ claim, values }) => !hasOneOf(claimAt(claims, claim), values, claim === 'scope'),
  );
  if (missing !== undefined) return `lacks what the route wants of claim ${quote(missing.claim)}`;
  return faultOfHeaders(claims, jwt.headers);
}

function faultOfHeaders(claims: Claims, headers: RouteJwt['headers']): string {
  let bytes = 0;
  for (const { name, claim } of headers) {
    const value = claimAt(claims, claim);
    if (value === undefined) continue;
    const text = headerText(value);
    if (text === undefined) return `has a claim ${quote(claim)} that a header cannot have`;
    bytes += name.length + Buffer.byteLength(text) + 4;
  }
  return bytes > MOST_ADDED_BYTES ? `has claims of more than ${MOST_ADDED_BYTES} bytes for headers` : '';
}

/** A name, or a JSON pointer (RFC 6901). */
function claimAt(claims: Claims, claim: string): StrictJson | undefined {
  const pointer = claim.split('/').slice(1);
  const steps = claim.startsWith('/')
    ? pointer.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    : [claim];
  let value: StrictJson | undefined = { kind: 'object', names: claims };
  for (const step of steps) value = memberOf(value, step);
  return value?.kind === 'null' ? undefined : value;
}

function memberOf(value: StrictJson | undefined, step: string): StrictJson | undefined {
  if (value?.kind === 'object') return value.names.get(step);
  return value?.kind === 'list' && /^[0-9]+$/.test(step) ? value.items[Number(step)] : undefined;
}

/** `values`: empty for any. */
function hasOneOf(value: StrictJson | undefined, values: readonly string[], isScope: boolean): boolean {
  if (value === undefined || value.kind === 'null') return false;
  if (values.length === 0) return true;
  const given = (value.kind === 'list' ? value.items : [value]).flatMap((each) => textOf(each) ?? []);
  const words = isScope && value.kind === 'text' ? value.text.split(/[ \t\n\v\f\r]+/) : [];
  return [...given, ...words].some((each) => values.includes(each));
}

function timeOf(value: StrictJson | undefined): number | undefined {
  return value?.kind === 'number' ? Number(value.text) : undefined;
}

function textOf(value: StrictJson): string | undefined {
  return 'text' in value ? value.text : undefined;
}

/** undefined if it has none that everybody reads as the same: members leave out blanks at the ends. */
function headerText(value: StrictJson): string | undefined {
  const isList = value.kind === 'list';
  const texts = (isList ? value.items : [value]).map(textOf);
  const isFit = (text: string | undefined): boolean =>
    text !== undefined && !HAS_CONTROL.test(text) && !/^ | $/.test(text) && !(isList && text.includes(','));
  return texts.every(isFit) ? texts.join(',') : undefined;
}

/** Only characters of ASCII. */
const HAS_CONTROL = /[\p{Cc}--[\u0080-\u009f]]/v;
