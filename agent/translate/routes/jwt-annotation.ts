// Reads the annotation `jwt` of a route, a mapping in YAML: which tokens its clients need. Every text passes an allow-list. A field that
// is not known is a fault, because it could have been meant to protect. Pure.

import { quote } from '../../base/quote.ts';
import { isMapping } from '../../base/validate.ts';
import { parseYamlDocuments } from '../../base/yaml.ts';
import { DEFAULT_LEEWAY_S, type RouteJwt, type TokenPlace } from '../../model/routes.ts';

/** `source`: `configmap NAME`, `secret NAME` or `jwks URL`. */
export type ReadJwt = { readonly jwt: Omit<RouteJwt, 'keys'>; readonly source: string } | JwtFault;

export interface JwtFault {
  /** The end of a sentence. */
  readonly fault: string;
}

const MAX_LEEWAY_S = 300;
/** As an audience: `aud` is not looked at. */
const ANY = '*';

const FIELDS = new Set(['issuer', 'audiences', 'keys', 'from', 'forward', 'leeway', 'claims', 'headers']);
const TEXT = /^[^\p{Cc}\s]{1,512}$/u;
const VALUE = /^[^\p{Cc}]{1,256}$/u;
/** A name, or a JSON pointer. */
const CLAIM = /^[^\p{Cc}\s]{1,256}$/u;
const OBJECT = /^(configmap|secret)\/([a-z0-9.-]{1,253})$/;
const URL_TEXT = /^https:\/\/[!-~]{1,1000}$/;
const HEADER = /^[A-Za-z0-9][A-Za-z0-9-]{0,127}$/;
const COOKIE = /^[A-Za-z0-9._-]{1,128}$/;
const MOST = 20;
/** A row of a map has one line of HAProxy's socket. */
const MAX_BYTES = 3000;

/** They have a meaning of their own to HAProxy or to members. */
const RESERVED =
  /^(?:host|authorization|cookie|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|range|forwarded|via|proxy-.*|content-.*|if-.*|x-forwarded-.*|x-headgate-.*|x-real-ip|http2-settings)$/;

export function readJwt(text: string): ReadJwt {
  if (Buffer.byteLength(text) > MAX_BYTES) return fault(`it has more than ${MAX_BYTES} bytes`);
  const { documents, errors } = parseYamlDocuments(text);
  const value = documents[0]?.value;
  if (errors.length > 0 || documents.length !== 1 || !isMapping(value))
    return fault('it is not a mapping in YAML');
  const unknown = Object.keys(value).find((name) => !FIELDS.has(name));
  if (unknown !== undefined)
    return fault(`it has a field ${quote(unknown)}; ${[...FIELDS].join(', ')} are allowed`);
  const { issuer, keys, leeway = DEFAULT_LEEWAY_S, forward = true } = value;
  if (!isText(issuer, TEXT))
    return fault('"issuer" must be a text without blanks, such as https://id.example.org');
  const audiences = textsOf(value.audiences, TEXT);
  if (audiences === undefined || audiences.length === 0)
    return fault(`"audiences" must have 1 to ${MOST} texts; "${ANY}" lets any in`);
  const source = sourceOf(keys);
  if (source === undefined)
    return fault('"keys" must be configmap/NAME or secret/NAME of the same namespace, or a URL of https');
  const from = placeOf(value.from ?? 'authorization');
  if (from === undefined) return fault('"from" must be authorization, header:NAME or cookie:NAME');
  if (!Number.isInteger(leeway) || Number(leeway) < 0 || Number(leeway) > MAX_LEEWAY_S)
    return fault(`"leeway" must be a number of seconds up to ${MAX_LEEWAY_S}`);
  if (typeof forward !== 'boolean')
    return fault('"forward" must be true, or false for members that must not get the token');
  const required = requiredOf(value.claims ?? {});
  if (required === undefined)
    return fault(`"claims" must be a mapping of at most ${MOST} claims, each to a value or a list of them`);
  const headers = headersOf(value.headers ?? {});
  if (typeof headers === 'string') return fault(headers);
  const accepted = audiences.includes(ANY) ? [] : audiences;
  const jwt = { issuer, audiences: accepted, from, leeway: Number(leeway), required, headers };
  return { source, jwt: forward ? jwt : { ...jwt, isRemoved: true } };
}

function fault(why: string): JwtFault {
  return { fault: why };
}

function isText(value: unknown, pattern: RegExp): value is string {
  return typeof value === 'string' && pattern.test(value);
}

/** One text, or a list of them. */
function textsOf(value: unknown, pattern: RegExp): readonly string[] | undefined {
  const all = Array.isArray(value) ? value : [value];
  const texts = all.map((each) => (['number', 'boolean'].includes(typeof each) ? String(each) : each));
  return texts.length <= MOST && texts.every((each) => isText(each, pattern)) ? texts : undefined;
}

function sourceOf(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const [, kind, name] = OBJECT.exec(value) ?? [];
  if (kind !== undefined) return `${kind} ${name}`;
  const url = URL_TEXT.test(value) ? URL.parse(value) : null;
  return url === null || url.username !== '' || url.password !== '' || url.hash !== ''
    ? undefined
    : `jwks ${url.href}`;
}

function placeOf(value: unknown): TokenPlace | undefined {
  if (typeof value !== 'string') return undefined;
  const [kind = '', name = '', ...others] = value.split(':');
  if (others.length > 0) return undefined;
  if (kind === 'authorization' && name === '') return { kind: 'bearer', name: 'authorization' };
  if (kind === 'cookie' && COOKIE.test(name)) return { kind, name };
  if (kind !== 'header' || !HEADER.test(name)) return undefined;
  const header = name.toLowerCase();
  return header === 'authorization' ? { kind: 'bearer', name: header } : { kind, name: header };
}

function requiredOf(value: unknown): RouteJwt['required'] | undefined {
  if (!isMapping(value) || Object.keys(value).length > MOST) return undefined;
  const all = Object.entries(value).map(([claim, given]) => ({
    claim,
    values: given === null ? [] : textsOf(given, VALUE),
  }));
  const isGood = all.every(
    ({ claim, values }) =>
      isClaim(claim) && values !== undefined && (values.length > 0 || value[claim] === null),
  );
  return isGood ? all.map(({ claim, values = [] }) => ({ claim, values })) : undefined;
}

function isClaim(claim: string): boolean {
  return CLAIM.test(claim) && !(claim.startsWith('/') && /~(?![01])/.test(claim));
}

/** A sentence's end if it cannot be used. */
function headersOf(value: unknown): RouteJwt['headers'] | string {
  const wrong = `"headers" must be a mapping of at most ${MOST} names of headers, each to a claim`;
  if (!isMapping(value) || Object.keys(value).length > MOST) return wrong;
  const names = new Set<string>();
  const headers: { readonly name: string; readonly claim: string }[] = [];
  for (const [given, claim] of Object.entries(value)) {
    const name = given.toLowerCase();
    if (!HEADER.test(given) || typeof claim !== 'string' || !isClaim(claim)) return wrong;
    if (RESERVED.test(name)) return `"headers" names ${quote(given)}, which a claim cannot be`;
    if (names.has(name)) return `"headers" names ${quote(given)} twice`;
    names.add(name);
    headers.push({ name: given, claim });
  }
  return headers;
}
