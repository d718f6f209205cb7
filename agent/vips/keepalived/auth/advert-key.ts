// The key with which keepalived authenticates advertisements, read from a file of the operator's; its content is never logged.

import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { HeadgateError } from '../../../base/errors.ts';

export interface AdvertKey {
  /** 1 to 255, in each advertisement; it follows from the key, so that it is the same on both hosts. */
  readonly id: number;
  /** Eight hex digits, which reveal nothing about the key. */
  readonly name: string;
  /** The key itself. */
  readonly hex: string;
}

/** 32 to 64 bytes, as keepalived takes them. */
const ALLOWED = /^(?:[0-9a-f]{2}){32,64}$/;
const OTHERS_MAY_READ = 0o037;

/** Errors: KEEPALIVED_REJECTED, which never shows the key. */
export async function readAdvertKey(path: string): Promise<AdvertKey> {
  const fail = (fault: string, cause?: unknown): never => {
    const message = `The file "${path}" of the setting vrrpKey ${fault}`;
    throw new HeadgateError('KEEPALIVED_REJECTED', message, { retry: 'later', cause });
  };
  const file = await open(path, 'r').catch((cause) => fail('cannot be read', cause));
  try {
    if (((await file.stat()).mode & OTHERS_MAY_READ) !== 0)
      fail('can be read by others: set its mode to 0600');
    const hex = (await file.readFile('utf8')).trim().toLowerCase();
    if (ALLOWED.test(hex)) return advertKey(hex);
    return fail('must have one line of 64 to 128 hex digits (openssl rand -hex 32)');
  } finally {
    await file.close();
  }
}

export function advertKey(hex: string): AdvertKey {
  const digest = createHash('sha256').update(`headgate vrrp ${hex}`).digest();
  return { id: 1 + (digest.readUInt8(31) % 255), name: digest.toString('hex', 0, 4), hex };
}
