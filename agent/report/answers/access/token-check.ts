// Whether a client's token lets it in: as templates/haproxy/jwt.lua judges, by the keys that the listener has. Says what a token lacks,
// and never what it has. Pure.

import { quote } from '../../../base/quote.ts';
import { type VerifyingKey, verifiedClaims } from '../../../base/token.ts';
import { DEFAULT_LEEWAY_S, type RouteJwt, type TokenPlace } from '../../../model/routes.ts';
import { asked, type CheckResult, passed, refused, type Way } from './check.ts';

type Claims = Readonly<Record<string, unknown>>;

export function token({ listener, request, client: { headers, now = 0 } }: Way): CheckResult | undefined {
  const jwt = request?.rule?.jwt;
  if (jwt === undefined) return undefined;
  const set = listener.tokenKeys?.find(({ name }) => jwt.keys !== '' && name === jwt.keys);
  if (set === undefined) return refused('no keys of tokens can be used', 'status 403');
  const what = `with a token of ${tokenInWords(jwt)}, by key ${keysInWords(set.keys)} of ${jwt.keys}`;
  const given = tokenIn(headers ?? new Map(), jwt.from);
  if (given === '') return asked(what, 'status 401');
  const why = faultOf(given, jwt, set.keys, now);
  return why === '' ? passed(what) : refused(`the token ${why}`, 'status 401');
}

/** All of it, because `plan` compares these words. */
function tokenInWords({ issuer, audiences, required, from, leeway }: RouteJwt): string {
  const claims = required.map(({ claim, values }) =>
    values.length === 0 ? quote(claim) : `${quote(claim)} ${values.map(quote).join(' or ')}`,
  );
  return [
    quote(issuer),
    ...(audiences.length === 0 ? [] : [`for ${audiences.map(quote).join(' or ')}`]),
    ...(claims.length === 0 ? [] : [`with claim ${claims.join(' and ')}`]),
    ...(from.kind === 'bearer' ? [] : [`in ${from.kind} ${quote(from.name)}`]),
    ...(leeway === DEFAULT_LEEWAY_S ? [] : [`within ${leeway} s`]),
  ].join(' ');
}

function keysInWords(keys: readonly VerifyingKey[]): string {
  return keys.map(({ kid, algorithm }) => `${quote(kid)} (${algorithm})`).join(' or ');
}

/** '' without one. */
function tokenIn(headers: ReadonlyMap<string, string>, { kind, name }: TokenPlace): string {
  if (kind === 'header') return headers.get(name) ?? '';
  if (kind === 'bearer') return /^bearer +(\S+)\s*$/i.exec(headers.get(name) ?? '')?.[1] ?? '';
  const cookies = (headers.get('cookie') ?? '').split(';').map((each) => each.trim());
  const own = cookies.find((each) => each.startsWith(`${name}=`));
  return own?.slice(name.length + 1).replace(/^"(.*)"$/, '$1') ?? '';
}

/** '' if it lets in. `now`: milliseconds since the epoch. */
function faultOf(given: string, jwt: RouteJwt, keys: readonly VerifyingKey[], now: number): string {
  const verified = verifiedClaims(given, keys);
  if (typeof verified === 'string') return verified;
  const { claims } = verified;
  const seconds = Math.floor(now / 1000);
  const { exp, nbf } = claims;
  if (typeof exp !== 'number') return 'does not say when it ends ("exp")';
  if (seconds >= exp + jwt.leeway) return 'has ended ("exp")';
  if (nbf !== undefined && !(typeof nbf === 'number' && seconds + jwt.leeway >= nbf))
    return 'has not begun ("nbf")';
  if (claims.iss !== jwt.issuer) return 'is of another issuer ("iss")';
  if (jwt.audiences.length > 0 && !hasOneOf(claims.aud, jwt.audiences, false))
    return 'is for another audience ("aud")';
  const missing = jwt.required.find(
    ({ claim, values }) => !hasOneOf(claimAt(claims, claim), values, claim === 'scope'),
  );
  if (missing !== undefined) return `lacks what the route wants of claim ${quote(missing.claim)}`;
  const unfit = jwt.headers.find(({ claim }) => !isHeaderText(claimAt(claims, claim)));
  return unfit === undefined ? '' : `has a claim ${quote(unfit.claim)} that a header cannot have`;
}

/** A name, or a JSON pointer (RFC 6901). */
function claimAt(claims: Claims, claim: string): unknown {
  const pointer = claim.split('/').slice(1);
  const steps = claim.startsWith('/')
    ? pointer.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    : [claim];
  return steps.reduce<unknown>(
    (value, step) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, step)
        ? (value as Claims)[step]
        : undefined,
    claims,
  );
}

/** `values`: empty for any. */
function hasOneOf(value: unknown, values: readonly string[], isScope: boolean): boolean {
  if (value === undefined || value === null) return false;
  if (values.length === 0) return true;
  const given = Array.isArray(value) ? value : [value];
  const words = isScope && typeof value === 'string' ? value.split(/\s+/) : [];
  return [...given.filter(isScalar).map(String), ...words].some((each) => values.includes(each));
}

function isScalar(value: unknown): boolean {
  return ['string', 'number', 'boolean'].includes(typeof value);
}

function isHeaderText(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (!Array.isArray(value)) return isScalar(value) && !/\p{Cc}/u.test(String(value));
  return value.every((each) => isScalar(each) && !/[\p{Cc},]/u.test(String(each)));
}
