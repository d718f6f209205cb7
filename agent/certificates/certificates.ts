// All certificates, authorities, revocation lists, users and error pages that load balancers ask for: certificates by the key of their
// Secret, the others by their object, as translation names what it reads.
// Why: docs/design/decisions/0067-certificates-keep-identity.md

import type { Authority } from './authority.ts';
import type { Crl } from './crl.ts';
import type { ErrorPages } from './error-pages.ts';
import type { KeyPair } from './key-pair.ts';
import { type Access, type Answer, type Found, LastGood, type LastGoodOptions } from './last-good.ts';
import { withDepth } from './limited-depth.ts';
import { isKeysName, type KeysName, type KeyUrls } from './token-keys/key-urls.ts';
import type { TokenKeys } from './token-keys/token-keys.ts';
import { writtenTokenKeys } from './token-keys/written-token-keys.ts';
import type { Users } from './users.ts';
import {
  writtenAuthorities,
  writtenCertificates,
  writtenCrls,
  writtenUsers,
} from './written-certificates.ts';
import { writtenErrorPages } from './written-error-pages.ts';

/** An object as translation names what it reads: `secret default/shop-tls`. */
export type ObjectName = `secret ${string}` | `configmap ${string}`;

/** The same, or a URL. */
export type SourceName = ObjectName | KeysName;

/** What an object has for the verification of others. */
interface TrustedLists {
  readonly authority: Found<Authority>;
  readonly crl: Found<Crl>;
}

interface WithKeys extends TrustedLists {
  readonly tokenKeys: Found<TokenKeys>;
}

export interface CertificatesOptions {
  readonly secret: (
    key: string,
  ) => (WithKeys & { readonly pair: Found<KeyPair>; readonly users: Found<Users> }) | undefined;
  readonly configMap: (key: string) => (WithKeys & { readonly pages: Found<ErrorPages> }) | undefined;
  /** Absent: no URL is read. */
  readonly keyUrls?: Pick<KeyUrls, 'find' | 'access' | 'start' | 'close'> | undefined;
  /** A longer key is refused, because each handshake with it takes a thread of HAProxy for long. */
  readonly maxRsaBits: number;
  /** Whether an object can be read for its certificate, or for its authorities or revocation lists; reads it from now on. */
  readonly accessToPair: (object: `secret ${string}`) => Access;
  readonly accessToAuthority: (object: ObjectName) => Access;
  /** True if a load balancer asks for it. */
  readonly isRead: (source: SourceName) => boolean;
  /** The answers for these have changed. */
  readonly onChanged: (sources: readonly SourceName[]) => void;
}

/** What load balancers ask for, by the name that translation gives it. */
interface Kinds {
  readonly certificate: LastGood<KeyPair>;
  readonly authority: LastGood<Authority>;
  readonly crl: LastGood<Crl>;
  readonly users: LastGood<Users>;
  readonly tokenKeys: LastGood<TokenKeys>;
  readonly pages: LastGood<ErrorPages>;
}

/** The file of a HAProxy that keeps a listener as it was has the users of then, which may have changed several times since. */
const USERS_KEPT = 8;

export class Certificates {
  readonly #maxRsaBits: number;
  readonly #keyUrls: CertificatesOptions['keyUrls'];
  readonly #kinds: Kinds;
  /** The texts, for HAProxy's files. */
  readonly pems: { readonly [kind in keyof Kinds]: Kinds[kind]['pem'] } & {
    readonly authority: (name: string, fingerprint: string, depth?: number) => string | undefined;
  };

  constructor(options: CertificatesOptions) {
    this.#maxRsaBits = options.maxRsaBits;
    this.#keyUrls = options.keyUrls;
    this.#kinds = kindsOf(options);
    const { certificate, authority, crl, users, tokenKeys, pages } = this.#kinds;
    this.pems = {
      certificate: certificate.pem,
      authority: (name: string, fingerprint: string, depth?: number) => {
        const pem = authority.pem(name, fingerprint);
        return pem === undefined || depth === undefined ? pem : withDepth(pem, depth);
      },
      crl: crl.pem,
      users: users.pem,
      tokenKeys: tokenKeys.pem,
      pages: pages.pem,
    };
  }

  /** Takes over what an earlier agent has written into a folder of HAProxy, unless another folder had it. */
  restore(folder: string): void {
    const { certificate, authority, crl, users } = this.#kinds;
    for (const [key, pair] of writtenCertificates(folder))
      if (pair.rsaBits <= this.#maxRsaBits) certificate.restore(key, pair);
    for (const [name, found] of writtenAuthorities(folder)) authority.restore(name, found);
    for (const [name, found] of writtenCrls(folder)) crl.restore(name, found);
    for (const [name, found] of writtenUsers(folder)) users.restore(name, found);
  }

  /** Likewise, of the folder of pages. */
  restorePages(folder: string): void {
    for (const [name, pages] of writtenErrorPages(folder)) this.#kinds.pages.restore(name, pages);
  }

  /** Likewise, of the folder of public keys. */
  restoreTokenKeys(folder: string): void {
    for (const [name, keys] of writtenTokenKeys(folder)) this.#kinds.tokenKeys.restore(name, keys);
  }

  start(): void {
    this.#keyUrls?.start();
    for (const kind of Object.values(this.#kinds)) kind.start();
  }

  close(): void {
    this.#keyUrls?.close();
    for (const kind of Object.values(this.#kinds)) kind.close();
  }

  /** `key`: `default/shop-tls`. */
  pair(key: string): Answer<KeyPair> {
    return this.#kinds.certificate.answer(key);
  }

  authority(name: string): Answer<Authority> {
    return this.#kinds.authority.answer(name);
  }

  crl(name: string): Answer<Crl> {
    return this.#kinds.crl.answer(name);
  }

  users(name: string): Answer<Users> {
    return this.#kinds.users.answer(name);
  }

  /** `name`: a ConfigMap, a Secret or a URL. */
  tokenKeys(name: string): Answer<TokenKeys> {
    return this.#kinds.tokenKeys.answer(name);
  }

  /** `name`: a ConfigMap, `configmap default/pages`. */
  errorPages(name: string): Answer<ErrorPages> {
    return this.#kinds.pages.answer(name);
  }

  /** When each certificate of a Secret expires, milliseconds since the epoch. */
  expiries(): ReturnType<LastGood<KeyPair>['expiries']> {
    return this.#kinds.certificate.expiries();
  }
}

/** One entry for each kind: where it is found, and what is missing if it is not. */
function kindsOf(options: CertificatesOptions): Kinds {
  const { secret, configMap, maxRsaBits, accessToPair, accessToAuthority, isRead, onChanged } = options;
  const listsOf = (name: string): TrustedLists | undefined => {
    const [kind, key = ''] = name.split(' ', 2);
    return kind === 'secret' ? secret(key) : configMap(key);
  };
  const byName = {
    access: (name: string) => accessToAuthority(name as ObjectName),
    isRead: (name: string) => isRead(name as SourceName),
    onChanged: (names: readonly string[]) => onChanged(names as readonly SourceName[]),
  };
  return {
    certificate: new LastGood({
      find: (key) => bounded(secret(key)?.pair, maxRsaBits),
      missing: 'there is no Secret of this name and of type kubernetes.io/tls',
      access: (key) => accessToPair(`secret ${key}`),
      isRead: (key) => isRead(`secret ${key}`),
      onChanged: (keys) => onChanged(keys.map((key) => `secret ${key}` as const)),
    }),
    authority: new LastGood({
      find: (name) => listsOf(name)?.authority,
      missing: 'it does not exist, or has no ca.crt',
      ...byName,
    }),
    crl: new LastGood({
      find: (name) => listsOf(name)?.crl,
      missing: 'it does not exist, or has no ca.crl',
      ...byName,
    }),
    users: new LastGood({
      keeps: USERS_KEPT,
      find: (name) => secret(name.slice('secret '.length))?.users,
      missing: 'it does not exist, or has no users',
      ...byName,
    }),
    tokenKeys: tokenKeysOf(options, byName),
    pages: new LastGood({
      find: (name) => configMap(name.slice('configmap '.length))?.pages,
      missing: 'it does not exist, or has no page',
      ...byName,
    }),
  };
}

/** Keys are in objects, or behind a URL. */
function tokenKeysOf(
  { secret, configMap, keyUrls }: CertificatesOptions,
  byName: Pick<LastGoodOptions<TokenKeys>, 'access' | 'isRead' | 'onChanged'>,
): LastGood<TokenKeys> {
  return new LastGood({
    ...byName,
    find: (name) => {
      const [kind, key = ''] = name.split(' ', 2);
      if (kind === 'jwks') return keyUrls?.find(name as KeysName);
      return (kind === 'secret' ? secret(key) : configMap(key))?.tokenKeys;
    },
    missing: 'it does not exist, or has no keys',
    access: (name) => {
      if (!isKeysName(name)) return byName.access(name);
      return keyUrls?.access(name) ?? { kind: 'not here' };
    },
  });
}

function bounded(found: Found<KeyPair> | undefined, maxRsaBits: number): Found<KeyPair> | undefined {
  const bits = found?.content?.rsaBits ?? 0;
  if (bits <= maxRsaBits) return found;
  const fault = `the key is rsa ${bits}: at most ${maxRsaBits} bits are allowed (setting maxRsaBits)`;
  return { content: undefined, fault };
}
