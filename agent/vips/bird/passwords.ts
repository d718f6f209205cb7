// Reads the passwords of peers from their files.

import { open } from 'node:fs/promises';
import { HeadgateError } from '../../base/errors.ts';
import type { BgpPeer } from '../bgp.ts';

/** BIRD has no escapes in a text, and the kernel takes 80 bytes (TCP_MD5SIG_MAXKEYLEN). */
const ALLOWED = /^[\x20-\x21\x23-\x7e]{1,80}$/;
const OTHERS_MAY_READ = 0o007;

/** By the name of the peer. Errors: BIRD_REJECTED, which never shows a password. */
export async function readPasswords(
  peers: readonly Pick<BgpPeer, 'name' | 'passwordFile'>[],
): Promise<ReadonlyMap<string, string>> {
  const passwords = new Map<string, string>();
  for (const { name, passwordFile: path } of peers)
    if (path !== '') passwords.set(name, await readPassword(name, path));
  return passwords;
}

async function readPassword(peer: string, path: string): Promise<string> {
  const fail = (fault: string, cause?: unknown): never => {
    const message = `The password file "${path}" of the peer ${peer} ${fault}`;
    throw new HeadgateError('BIRD_REJECTED', message, { retry: 'later', cause });
  };
  const file = await open(path, 'r').catch((cause) => fail('cannot be read', cause));
  try {
    if (((await file.stat()).mode & OTHERS_MAY_READ) !== 0)
      fail('can be read by every user: set its mode to 0640 or less');
    const text = (await file.readFile('utf8')).replace(/\r?\n$/, '');
    if (ALLOWED.test(text)) return text;
    return fail('must have one line of 1 to 80 printable ASCII characters without quotation marks');
  } finally {
    await file.close();
  }
}
