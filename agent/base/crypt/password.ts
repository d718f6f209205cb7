// Whether a password is that of a hash, by the kinds of hashes that users may have (certificates/users.ts). Pure.

import { isBcryptOf } from './bcrypt.ts';
import { isShaCryptOf } from './sha-crypt.ts';

export function isPasswordOf(password: string, hash: string): boolean {
  return isShaCryptOf(password, hash) ?? isBcryptOf(password, hash) ?? false;
}
