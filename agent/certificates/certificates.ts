// All certificates, authorities, revocation lists, users and error pages that load balancers ask for: certificates by the key of their
// Secret, the others by their object, as translation names what it reads.
// Why: docs/design/decisions/0067-certificates-keep-identity.md

import type { Authority } from './authority.ts';
import type { Crl } from './crl.ts';
import type { ErrorPages } from './error-pages.ts';
import type { KeyPair } from './key-pair.ts';
import { type Access, type Answer, type Found, LastGood } from './last-good.ts';
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

/** What an object has for the verification of others. */
interface TrustedLists {
  readonly authority: Found<Authority>;
  readonly crl: Found<Crl>;
}

export interface CertificatesOptions {
  readonly secret: (
    key: string,
  ) => (TrustedLists & { readonly pair: Found<KeyPair>; readonly users: Found<Users> }) | undefined;
  readonly configMap: (key: string) => (TrustedLists & { readonly pages: Found<ErrorPages> }) | undefined;
  /** A longer key is refused, because each handshake with it takes a thread of HAProxy for long. */
  readonly maxRsaBits: number;
  /** Whether an object can be read for its certificate, or for its authorities or revocation lists; reads it from now on. */
  readonly accessToPair: (object: `secret ${string}`) => Access;
  readonly accessToAuthority: (object: ObjectName) => Access;
  /** True if a load balancer asks for it. */
  readonly isRead: (object: ObjectName) => boolean;
  /** The answers for these have changed. */
  readonly onChanged: (objects: readonly ObjectName[]) => void;
}

/** The file of a HAProxy that keeps a listener as it was has the users of then, which may have changed several times since. */
const USERS_KEPT = 8;

export class Certificates {
  readonly #maxRsaBits: number;
  readonly #pairs: LastGood<KeyPair>;
  readonly #authorities: LastGood<Authority>;
  readonly #crls: LastGood<Crl>;
  readonly #users: LastGood<Users>;
  readonly #errorPages: LastGood<ErrorPages>;
  /** The texts, for HAProxy's files. */
  readonly pems: {
    readonly certificate: LastGood<KeyPair>['pem'];
    readonly authority: LastGood<Authority>['pem'];
    readonly crl: LastGood<Crl>['pem'];
    readonly users: LastGood<Users>['pem'];
    readonly pages: LastGood<ErrorPages>['pem'];
  };

  constructor(options: CertificatesOptions) {
    const { secret, configMap, accessToPair, accessToAuthority, isRead, onChanged } = options;
    this.#maxRsaBits = options.maxRsaBits;
    this.#pairs = new LastGood({
      find: (key) => this.#bounded(secret(key)?.pair),
      missing: 'there is no Secret of this name and of type kubernetes.io/tls',
      access: (key) => accessToPair(`secret ${key}`),
      isRead: (key) => isRead(`secret ${key}`),
      onChanged: (keys) => onChanged(keys.map((key) => `secret ${key}` as const)),
    });
    const lists = (name: string): TrustedLists | undefined => {
      const [kind, key = ''] = name.split(' ', 2);
      return kind === 'secret' ? secret(key) : configMap(key);
    };
    const ofLists = {
      access: (name: string) => accessToAuthority(name as ObjectName),
      isRead: (name: string) => isRead(name as ObjectName),
      onChanged: (names: readonly string[]) => onChanged(names as readonly ObjectName[]),
    };
    this.#authorities = new LastGood({
      find: (name) => lists(name)?.authority,
      missing: 'it does not exist, or has no ca.crt',
      ...ofLists,
    });
    this.#crls = new LastGood({
      find: (name) => lists(name)?.crl,
      missing: 'it does not exist, or has no ca.crl',
      ...ofLists,
    });
    this.#users = new LastGood({
      keeps: USERS_KEPT,
      find: (name) => secret(name.slice('secret '.length))?.users,
      missing: 'it does not exist, or has no users',
      ...ofLists,
    });
    this.#errorPages = new LastGood({
      find: (name) => configMap(name.slice('configmap '.length))?.pages,
      missing: 'it does not exist, or has no page',
      ...ofLists,
    });
    this.pems = {
      certificate: this.#pairs.pem,
      authority: this.#authorities.pem,
      crl: this.#crls.pem,
      users: this.#users.pem,
      pages: this.#errorPages.pem,
    };
  }

  /** Takes over what an earlier agent has written into a folder of HAProxy, unless another folder had it. */
  restore(folder: string): void {
    for (const [key, pair] of writtenCertificates(folder)) {
      if (pair.rsaBits <= this.#maxRsaBits) this.#pairs.restore(key, pair);
    }
    for (const [name, authority] of writtenAuthorities(folder)) this.#authorities.restore(name, authority);
    for (const [name, crl] of writtenCrls(folder)) this.#crls.restore(name, crl);
    for (const [name, users] of writtenUsers(folder)) this.#users.restore(name, users);
  }

  /** Likewise, of the folder of pages. */
  restorePages(folder: string): void {
    for (const [name, pages] of writtenErrorPages(folder)) this.#errorPages.restore(name, pages);
  }

  #bounded(found: Found<KeyPair> | undefined): Found<KeyPair> | undefined {
    const bits = found?.content?.rsaBits ?? 0;
    if (bits <= this.#maxRsaBits) return found;
    const fault = `the key is rsa ${bits}: at most ${this.#maxRsaBits} bits are allowed (setting maxRsaBits)`;
    return { content: undefined, fault };
  }

  start(): void {
    this.#pairs.start();
    this.#authorities.start();
    this.#crls.start();
    this.#users.start();
    this.#errorPages.start();
  }

  close(): void {
    this.#pairs.close();
    this.#authorities.close();
    this.#crls.close();
    this.#users.close();
    this.#errorPages.close();
  }

  /** `key`: `default/shop-tls`. */
  pair(key: string): Answer<KeyPair> {
    return this.#pairs.answer(key);
  }

  authority(name: string): Answer<Authority> {
    return this.#authorities.answer(name);
  }

  crl(name: string): Answer<Crl> {
    return this.#crls.answer(name);
  }

  users(name: string): Answer<Users> {
    return this.#users.answer(name);
  }

  /** Of a ConfigMap: `configmap default/pages`. */
  errorPages(name: string): Answer<ErrorPages> {
    return this.#errorPages.answer(name);
  }

  /** When each certificate of a Secret expires, milliseconds since the epoch. */
  expiries(): ReturnType<LastGood<KeyPair>['expiries']> {
    return this.#pairs.expiries();
  }
}
