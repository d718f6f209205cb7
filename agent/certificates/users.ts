// Checks users and the hashes of their passwords before HAProxy sees them, because HAProxy refuses its whole file for a hash that
// the system's crypt(3) cannot verify, and because a slow hash delays all connections of a thread. No message shows a hash. Pure.

import { createHash } from 'node:crypto';
import { quote } from '../base/quote.ts';
import { SecretText } from '../base/secret-text.ts';
import type { Unusable } from './key-pair.ts';

export interface Users {
  /** A line `NAME:HASH` for each user that can be used. */
  readonly pem: SecretText;
  /** A hash of `pem`. */
  readonly fingerprint: string;
  readonly expires: number;
  /** A sentence's end for each user that cannot. */
  readonly faults: readonly string[];
}

/** The field of a Secret with lines as htpasswd writes them; without it each field is a user. */
export const USERS_FIELD = 'auth';
const MOST_USERS = 200;
const MOST_FAULTS = 5;
const MAX_USERS_BYTES = 64 * 1024;

const NAME = /^[A-Za-z0-9._@+-]{1,64}$/;
/** A hash of a cost above 8, or of more than 20,000 rounds, takes HAProxy longer than 20 ms. */
const MOST_ROUNDS = 20_000;
const BCRYPT = /^\$2[aby]\$0[4-8]\$[./A-Za-z0-9]{53}$/;
const SHA = /^\$(5|6)\$(?:rounds=(\d{4,5})\$)?[./A-Za-z0-9]{1,16}\$([./A-Za-z0-9]+)$/;
const ALLOWED =
  '$2y$ (bcrypt) with a cost from 4 to 8, and $5$ and $6$ (SHA-crypt) with at most 20000 rounds, are allowed';

/** `text`: of `auth`. */
export function checkUserLines(text: string): Users | Unusable {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '' && !line.startsWith('#'));
  return checkUsers(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return colon < 0 ? [line.trim(), ''] : [line.slice(0, colon), line.slice(colon + 1).trim()];
    }),
  );
}

export function checkUsers(users: readonly (readonly [name: string, hash: string])[]): Users | Unusable {
  if (users.length > MOST_USERS) return `it has ${users.length} users, and at most ${MOST_USERS} are allowed`;
  const lines = new Map<string, string>();
  const faults: string[] = [];
  for (const [name, hash] of users) {
    const fault = faultOf(name, hash) ?? (lines.has(name) ? `user ${quote(name)} is there twice` : undefined);
    if (fault === undefined) lines.set(name, `${name}:${hash}\n`);
    else faults.push(fault);
  }
  const text = [...lines.values()].sort().join('');
  if (text.length > MAX_USERS_BYTES) return `its users have more than ${MAX_USERS_BYTES} bytes`;
  if (lines.size === 0) return faults[0] ?? 'it has no user';
  return {
    pem: new SecretText(text),
    fingerprint: createHash('sha256').update(text).digest('hex').slice(0, 32),
    expires: Number.POSITIVE_INFINITY,
    faults: faults.slice(0, MOST_FAULTS),
  };
}

/** A name that is none could be a hash without a name: it is not shown. */
function faultOf(name: string, hash: string): string | undefined {
  if (!NAME.test(name)) return 'a name of a user is not 1 to 64 letters, digits and characters of . _ @ + -';
  return isUsable(hash) ? undefined : `HAProxy cannot verify the password of user ${quote(name)}: ${ALLOWED}`;
}

function isUsable(hash: string): boolean {
  if (BCRYPT.test(hash)) return true;
  const [, kind, rounds = '5000', digest = ''] = SHA.exec(hash) ?? [];
  if (kind === undefined || Number(rounds) < 1_000 || Number(rounds) > MOST_ROUNDS) return false;
  return digest.length === (kind === '5' ? 43 : 86);
}
