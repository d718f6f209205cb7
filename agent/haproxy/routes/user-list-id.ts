// The name of a list of users, for rows of maps and for HAProxy's file. Pure.

import { digest } from './encode.ts';

/** The part in front of the listener's name. `secret`: `default/users`. */
export function userListId(secret: string): string {
  return `u${digest(secret, 20)}`;
}
