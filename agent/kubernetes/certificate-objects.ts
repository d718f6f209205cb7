// Reads Secrets and ConfigMaps with certificates: `tls.crt` and `tls.key`, `ca.crt` and `ca.crl`; with public keys of tokens; Secrets with
// users, and ConfigMaps with error pages. The schema checks only names, so that no message shows what an object holds; all else of it is dropped. Pure.

import { intern } from '../base/compact.ts';
import { label, subdomain } from '../base/name-forms.ts';
import { isMapping, object, Rule, type Valid } from '../base/validate.ts';
import { type Authority, checkAuthority, MAX_AUTHORITY_BYTES } from '../certificates/authority.ts';
import { type Crl, checkCrl } from '../certificates/crl.ts';
import { checkErrorPages, type ErrorPages, hasErrorPages } from '../certificates/error-pages.ts';
import { checkKeyPair, type KeyPair } from '../certificates/key-pair.ts';
import type { Found } from '../certificates/last-good.ts';
import {
  checkTokenFields,
  JWKS_FIELD,
  PEM_FIELD,
  type TokenKeys,
} from '../certificates/token-keys/token-keys.ts';
import { checkUserLines, checkUsers, USERS_FIELD, type Users } from '../certificates/users.ts';
import { named, uid } from './object-names.ts';

interface ObjectWithAuthority {
  /** `namespace/name`. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** The authorities in `ca.crt`. */
  readonly authority: Found<Authority>;
  /** The revocation lists in `ca.crl`. */
  readonly crl: Found<Crl>;
  /** The public keys in `jwks.json`, or in fields that end with `.pem`. */
  readonly tokenKeys: Found<TokenKeys>;
}

export interface Secret extends ObjectWithAuthority {
  readonly kind: 'Secret';
  /** The certificate with its chain and key. */
  readonly pair: Found<KeyPair>;
  /** With hashes of their passwords. */
  readonly users: Found<Users>;
}

export interface ConfigMap extends ObjectWithAuthority {
  readonly kind: 'ConfigMap';
  /** What clients get instead of HAProxy's own pages, by status. */
  readonly pages: Found<ErrorPages>;
}

/** The type of Secrets with a certificate and its key. */
export const TLS_TYPE = 'kubernetes.io/tls';

const texts = () =>
  new Rule((value): Readonly<Record<string, unknown>> => (isMapping(value) ? value : {}), {}, true);

export const certificateSchema = object({
  metadata: object({
    name: named(subdomain),
    namespace: named(label).nullish(),
    uid: uid().nullish(),
  }),
  data: texts(),
  stringData: texts(),
});

type Checked = Valid<typeof certificateSchema>;

/** True for a Secret or ConfigMap that may have certificates, users or error pages; others are ignored. */
export function hasCertificates({
  kind,
  type,
  data,
  stringData,
}: Readonly<Record<string, unknown>>): boolean {
  if (kind === 'Secret' && type === TLS_TYPE) return true;
  const isAny = [data, stringData].some(
    (fields) =>
      isMapping(fields) && ('ca.crt' in fields || 'ca.crl' in fields || Object.keys(fields).some(isOfTokens)),
  );
  return isAny || (kind === 'Secret' ? hasUsers(data, stringData) : hasErrorPages(data));
}

function isOfTokens(field: string): boolean {
  return field === JWKS_FIELD || PEM_FIELD.test(field);
}

/** Hashes begin with a dollar sign, in base64 with J and one of A to P. */
function hasUsers(data: unknown, stringData: unknown): boolean {
  const begins = (fields: unknown, pattern: RegExp): boolean =>
    isMapping(fields) &&
    (USERS_FIELD in fields ||
      Object.values(fields).some((value) => typeof value === 'string' && pattern.test(value)));
  return begins(data, /^J[A-P]/) || begins(stringData, /^\$/);
}

export function secretOf({ metadata, data, stringData }: Checked): Secret {
  const read = (field: string) => secretField(data, stringData, field);
  return {
    kind: 'Secret',
    ...identityOf(metadata),
    pair: found(read('tls.crt'), (certificates) =>
      found(read('tls.key'), (key) => of(checkKeyPair(certificates, key))),
    ),
    authority: found(read('ca.crt'), (text) => of(checkAuthority(text))),
    crl: found(read('ca.crl'), (text) => of(checkCrl(text))),
    tokenKeys: tokenKeysOf([...Object.keys(data), ...Object.keys(stringData)], read),
    users: usersOf(data, stringData),
  };
}

function tokenKeysOf(names: readonly string[], read: (field: string) => Field): Found<TokenKeys> {
  const fields: Record<string, string> = {};
  for (const name of names.filter(isOfTokens)) {
    const field = read(name);
    if ('fault' in field) return { content: undefined, fault: field.fault };
    fields[name] = field.text;
  }
  return of(checkTokenFields(fields));
}

function usersOf(data: Checked['data'], stringData: Checked['stringData']): Found<Users> {
  const lines = secretField(data, stringData, USERS_FIELD);
  if ('text' in lines) return of(checkUserLines(lines.text));
  const names = [...new Set([...Object.keys(data), ...Object.keys(stringData)])];
  // Not of a Secret with certificates.
  if (names.some((name) => name.includes('.crt') || name.includes('.key')))
    return { content: undefined, fault: `it has no ${USERS_FIELD}` };
  return of(
    checkUsers(
      names.map((name) => {
        const field = secretField(data, stringData, name);
        return [name, 'text' in field ? field.text.trim() : ''];
      }),
    ),
  );
}

/** Made from a file instead of an object; `fault`: why it cannot be read. */
export function secretOfTexts(
  key: string,
  given: { readonly texts: Readonly<Record<string, string>> } | { readonly fault: string },
): Secret {
  const [namespace = '', name = ''] = key.split('/');
  const secret = secretOf({
    metadata: { name, namespace, uid: undefined },
    data: {},
    stringData: 'texts' in given ? given.texts : {},
  });
  if ('texts' in given) return secret;
  const none = { content: undefined, fault: given.fault };
  return { ...secret, pair: none, authority: none, crl: none, tokenKeys: none, users: none };
}

export function configMapOf({ metadata, data }: Checked): ConfigMap {
  const read = (field: string): Field => {
    const text = data[field];
    return typeof text === 'string' ? { text } : { fault: `it has no ${field}` };
  };
  return {
    kind: 'ConfigMap',
    ...identityOf(metadata),
    authority: found(read('ca.crt'), (text) => of(checkAuthority(text))),
    crl: found(read('ca.crl'), (text) => of(checkCrl(text))),
    tokenKeys: tokenKeysOf(Object.keys(data), read),
    pages: of(checkErrorPages(data)),
  };
}

type Field = { readonly text: string } | { readonly fault: string };

/** In `stringData` a manifest may have plain text, which has precedence, as in the API server. */
function secretField(data: Checked['data'], stringData: Checked['stringData'], field: string): Field {
  const plain = stringData[field];
  const encoded = data[field];
  if (typeof plain === 'string') return { text: plain };
  if (typeof encoded !== 'string' || encoded === '') return { fault: `it has no ${field}` };
  // Base64 has four characters for three bytes.
  if (encoded.length > MAX_AUTHORITY_BYTES * 2) return { fault: `${field} is too long` };
  return { text: Buffer.from(encoded, 'base64').toString('latin1') };
}

function found<T>(field: Field, read: (text: string) => Found<T>): Found<T> {
  return 'fault' in field ? { content: undefined, fault: field.fault } : read(field.text);
}

function of<T>(checked: T | string): Found<T> {
  return typeof checked === 'string'
    ? { content: undefined, fault: checked }
    : { content: checked, fault: '' };
}

function identityOf({ namespace = 'default', name, uid: id = '' }: Checked['metadata']) {
  return { key: `${namespace}/${name}`, namespace: intern(namespace), name, uid: id };
}
