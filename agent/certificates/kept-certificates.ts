// The certificates, authorities, revocation lists and users that an earlier agent has written for HAProxy, for a start before their
// objects are read, or while no API server answers: listeners that HAProxy serves must stay. Reads files only.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Authority, checkAuthority } from './authority.ts';
import { type Crl, checkCrl } from './crl.ts';
import { checkKeyPair, type Fault, type KeyPair } from './key-pair.ts';
import { checkUserLines, type Users } from './users.ts';

// The names are those of haproxy/config/tls-config.ts.
/** Behind a plus is what tells the sections of a listener apart that have the same certificate. */
const CERTIFICATE = /^([a-z0-9-]+)_([a-z0-9.-]+)(?:\+[0-9a-f]+)?\.pem$/;
const AUTHORITY = /^ca_(secret|configmap)_([a-z0-9-]+)_([a-z0-9.-]+)_[0-9a-f]{32}\.crt$/;
const CRL = /^crl_(secret|configmap)_([a-z0-9-]+)_([a-z0-9.-]+)_[0-9a-f]{32}\.crl$/;
const USERS = /^users_(secret)_([a-z0-9-]+)_([a-z0-9.-]+)_[0-9a-f]{32}\.users$/;

/** By the key of the Secret. A file that cannot be used is left out. */
export function keptCertificates(folder: string): ReadonlyMap<string, KeyPair> {
  const kept = new Map<string, KeyPair>();
  for (const file of filesIn(folder)) {
    const [, namespace, name] = CERTIFICATE.exec(file) ?? [];
    if (namespace === undefined) continue;
    const text = textOf(join(folder, file));
    const pair = checkKeyPair(text, text);
    if (typeof pair !== 'string') kept.set(`${namespace}/${name}`, pair);
  }
  return kept;
}

/** By the object: `configmap default/clients`. */
export function keptAuthorities(folder: string): ReadonlyMap<string, Authority> {
  return keptLists(folder, AUTHORITY, checkAuthority);
}

/** By the object. */
export function keptCrls(folder: string): ReadonlyMap<string, Crl> {
  return keptLists(folder, CRL, checkCrl);
}

/** By the object. */
export function keptUsers(folder: string): ReadonlyMap<string, Users> {
  return keptLists(folder, USERS, checkUserLines);
}

/** Of several contents of one object the last one counts. */
function keptLists<T extends object>(
  folder: string,
  name: RegExp,
  check: (text: string) => T | Fault,
): ReadonlyMap<string, T> {
  const kept = new Map<string, T>();
  const files = [...filesIn(folder)].filter((file) => name.test(file));
  const written = new Map(files.map((file) => [file, statSync(join(folder, file)).mtimeMs]));
  for (const file of files.sort((a, b) => (written.get(a) ?? 0) - (written.get(b) ?? 0))) {
    const [, kind, namespace, object] = name.exec(file) ?? [];
    const content = check(textOf(join(folder, file)));
    if (typeof content !== 'string') kept.set(`${kind} ${namespace}/${object}`, content);
  }
  return kept;
}

function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** '' if it cannot be read. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
