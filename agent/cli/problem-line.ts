// A problem of an object as one line for people. Pure.

import type { Problem } from '../model/load-balancer.ts';

/** Names the object once: what is wrong with a file's content says of itself where it stands. */
export function problemLine({ object, message }: Pick<Problem, 'object' | 'message'>): string {
  const isNamed =
    message.startsWith(object) || message.includes(`: ${object}: `) || message.includes(`: ${object} `);
  return isNamed ? message : `${object}: ${message}`;
}
