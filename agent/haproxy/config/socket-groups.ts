// Listening sockets in groups, by the `id` of their `bind` lines: asked for one group, HAProxy tells what its sockets have
// counted in a fraction of a millisecond, in which the connections of that thread wait, and no longer.

import { hash } from 'node:crypto';

/** Of a thousand listeners each has some thirty. */
export const SOCKET_GROUPS = 32;

/**
 * The group of a listener's `at`-th address, from 1 on: each in another one, because HAProxy takes an id once in a
 * listener. Addresses beyond the last group have none of their own (`hasGroups`). The same on both hosts of a pair.
 */
export function socketGroup(listener: string, at: number): number {
  const first = Number.parseInt(hash('sha256', listener).slice(0, 4), 16);
  return 1 + ((first + at) % SOCKET_GROUPS);
}

/** Whether each of so many addresses of one listener is in a group. */
export function hasGroups(addresses: number): boolean {
  return addresses <= SOCKET_GROUPS;
}
