// Finds the passwords of peers, in files or in Secrets. One that cannot be used costs only its own peer.

import { open } from 'node:fs/promises';
import type { SecretText } from '../../base/secret-text.ts';
import type { BgpPeer, SecretField } from '../bgp.ts';

/** `why`: a sentence's end without the password. */
export type Password = { readonly text: string } | { readonly why: string };
/** What a Secret has. */
export type ReadSecret = (field: SecretField) => { readonly text: SecretText } | { readonly why: string };

/** BIRD has no escapes in a text, and the kernel takes 80 bytes (TCP_MD5SIG_MAXKEYLEN). */
const ALLOWED = /^[\x20-\x21\x23-\x7e]{1,80}$/;
const FORM = 'must have one line of 1 to 80 printable ASCII characters without quotation marks';
const OTHERS_MAY_READ = 0o007;

export type HasPassword = Pick<BgpPeer, 'passwordFile' | 'object'>;

/** The place of a peer's password, in words; '' if it has none. */
export function placeOfPassword({ passwordFile, object }: HasPassword): string {
  const secret = object?.secret;
  if (secret !== undefined) return `the key "${secret.key}" of the Secret "${secret.name}"`;
  return passwordFile === '' ? '' : `"passwordFile" ("${passwordFile}")`;
}

/** undefined if the peer has none. Never rejects. */
export async function passwordOf(peer: HasPassword, readSecret: ReadSecret): Promise<Password | undefined> {
  const secret = peer.object?.secret;
  if (secret !== undefined) {
    const found = readSecret(secret);
    if ('why' in found) return { why: `${placeOfPassword(peer)}: ${found.why}` };
    // Secrets are often made with a line feed at their end.
    const text = found.text.reveal().replace(/\r?\n$/, '');
    return ALLOWED.test(text) ? { text } : { why: `${placeOfPassword(peer)} ${FORM}` };
  }
  return peer.passwordFile === '' ? undefined : ofFile(peer.passwordFile);
}

async function ofFile(path: string): Promise<Password> {
  const why = (fault: string): Password => ({ why: `the password file "${path}" ${fault}` });
  const file = await open(path, 'r').catch(() => undefined);
  if (file === undefined) return why('cannot be read');
  try {
    if (((await file.stat()).mode & OTHERS_MAY_READ) !== 0)
      return why('can be read by every user: set its mode to 0640 or less');
    const text = (await file.readFile('utf8')).replace(/\r?\n$/, '');
    return ALLOWED.test(text) ? { text } : why(FORM);
  } catch {
    return why('cannot be read');
  } finally {
    await file.close();
  }
}
