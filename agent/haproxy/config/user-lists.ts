// The users of a listener's routes in HAProxy's file, each Secret a `userlist` with a name of the listener's own. Only a reload
// changes them. Pure.
// Why: docs/design/decisions/0056-users-reload.md

import type { View } from '../../base/template.ts';
import type { Listener, UserList } from '../../model/load-balancer.ts';
import { userListId } from '../routes/user-list-id.ts';

/** The lines `NAME:HASH` of a list; undefined if they are not known. */
export type UsersText = (name: string, fingerprint: string) => string | undefined;

export const NO_USERS: UsersText = () => undefined;

/** A list whose users are not known lets no client in. */
export function userListViews({ name, userLists = [] }: Listener, users: UsersText): readonly View[] {
  return userLists.map((list: UserList) => ({
    name: `${userListId(list.name.replace(/^secret /, ''))}:${name}`,
    users: (users(list.name, list.fingerprint) ?? '')
      .split('\n')
      .filter(Boolean)
      .map((line) => {
        const colon = line.indexOf(':');
        return { user: line.slice(0, colon), hash: line.slice(colon + 1) };
      }),
  }));
}
