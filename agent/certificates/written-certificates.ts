// The certificates, authorities, revocation lists and users that an earlier agent has written for HAProxy. Reads files only.

import { type Authority, checkAuthority } from './authority.ts';
import { type Crl, checkCrl } from './crl.ts';
import { checkKeyPair, type KeyPair, type Unusable } from './key-pair.ts';
import { checkUserLines, type Users } from './users.ts';
import { writtenFiles } from './written-files.ts';

// The names are those of haproxy/config/tls-config.ts.
/** Behind a plus is what tells the sections of a listener apart that have the same certificate. */
const CERTIFICATE = /^([a-z0-9-]+)_([a-z0-9.-]+)(?:\+[0-9a-f]+)?\.pem$/;
const AUTHORITY = /^ca_(secret|configmap)_([a-z0-9-]+)_([a-z0-9.-]+)_[0-9a-f]{32}\.crt$/;
const CRL = /^crl_(secret|configmap)_([a-z0-9-]+)_([a-z0-9.-]+)_[0-9a-f]{32}\.crl$/;
const USERS = /^users_(secret)_([a-z0-9-]+)_([a-z0-9.-]+)_[0-9a-f]{32}\.users$/;

/** By the key of the Secret. A file that cannot be used is left out. */
export function writtenCertificates(folder: string): ReadonlyMap<string, KeyPair> {
  const kept = new Map<string, KeyPair>();
  for (const { groups, text } of writtenFiles(folder, CERTIFICATE)) {
    const [namespace, name] = groups;
    const pair = checkKeyPair(text, text);
    if (typeof pair !== 'string') kept.set(`${namespace}/${name}`, pair);
  }
  return kept;
}

/** By the object: `configmap default/clients`. */
export function writtenAuthorities(folder: string): ReadonlyMap<string, Authority> {
  return keptLists(folder, AUTHORITY, checkAuthority);
}

/** By the object. */
export function writtenCrls(folder: string): ReadonlyMap<string, Crl> {
  return keptLists(folder, CRL, checkCrl);
}

/** By the object. */
export function writtenUsers(folder: string): ReadonlyMap<string, Users> {
  return keptLists(folder, USERS, checkUserLines);
}

/** The last one of several contents of an object counts. */
function keptLists<T extends object>(
  folder: string,
  name: RegExp,
  check: (text: string) => T | Unusable,
): ReadonlyMap<string, T> {
  const kept = new Map<string, T>();
  for (const { groups, text } of writtenFiles(folder, name)) {
    const [kind, namespace, object] = groups;
    const content = check(text);
    if (typeof content !== 'string') kept.set(`${kind} ${namespace}/${object}`, content);
  }
  return kept;
}
