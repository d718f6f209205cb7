// The names that HAProxy looks up for its connection log in a map: pods and nodes behind members, and words for how a
// connection ended. Pure.

import type { Listener } from '../../model/load-balancer.ts';

/** A map without a file of its own: a worker starts without entries, and gets them by commands. */
export const LOG_NAMES = '/dev/null';

export type LogName = readonly [key: string, name: string];

export const BEHIND_MEMBERS = ['pod', 'node'] as const;
const NAME = /^[A-Za-z0-9._-]{1,253}$/;

/** The pod or node behind each member that has one, of a listener with a log. */
export function memberNames({ log, name: listener, pool }: Listener): readonly LogName[] {
  if (log === 'none') return [];
  return pool.members.flatMap(({ name: member, target }): readonly LogName[] => {
    const [kind, name = ''] = target.split('/', 2);
    const key = member + memberSuffix(kind === 'Node' ? 'node' : 'pod', listener);
    return NAME.test(name) ? [[key, name]] : [];
  });
}

/** Follows the member in a key. With the listener, because an EndpointSlice can claim any pod for an address. */
export function memberSuffix(behind: (typeof BEHIND_MEMBERS)[number], listener: string): string {
  return `@${behind}@${listener}`;
}

/** Which side ended a connection: the first letter of HAProxy's termination state. */
const ENDED_BY = {
  '-': 'none',
  C: 'client',
  c: 'client-timeout',
  S: 'member',
  s: 'member-timeout',
  P: 'load-balancer',
  L: 'load-balancer',
  R: 'shortage',
  D: 'member-down',
  U: 'member-up',
  K: 'removal',
  I: 'internal-error',
} as const;

/** At what time: the second letter. */
const ENDED_IN = {
  '-': 'end',
  R: 'request',
  Q: 'queue',
  C: 'connect',
  H: 'response',
  D: 'data',
  L: 'last-data',
  T: 'delay',
} as const;

/** They follow the letter in a key. */
export const BY_SUFFIX = '@by';
export const IN_SUFFIX = '@in';

export const ENDINGS: readonly LogName[] = [
  ...Object.entries(ENDED_BY).map(([letter, word]): LogName => [letter + BY_SUFFIX, word]),
  ...Object.entries(ENDED_IN).map(([letter, word]): LogName => [letter + IN_SUFFIX, word]),
];
