// What HAProxy runs otherwise than was believed of a listener, for the log. Pure.

import type { RunningListener, RunningServer } from '../running.ts';

/** What is named of many. */
const MOST = 3;

type Servers = ReadonlyMap<string, RunningServer>;

export function serversInWords(now: Servers, believed: Servers): string {
  const words = [...new Set([...now.keys(), ...believed.keys()])].flatMap((name) => {
    const [is, was] = [now.get(name), believed.get(name)];
    if (is === undefined) return `server ${name} is missing`;
    if (was === undefined) return `server ${name} is not ours`;
    if (is.isMoved) return `server ${name} has another address`;
    const other = (['state', 'weight', 'check', 'id'] as const).find((field) => is[field] !== was[field]);
    return other === undefined ? [] : `server ${name} has ${other} ${is[other]}, not ${was[other]}`;
  });
  return shortened(words);
}

export function clientsInWords(
  now: RunningListener['allowed'],
  believed: RunningListener['allowed'],
): string {
  const [is, was] = [now, believed].map((lines) => new Set(lines.flatMap(({ cidrs }) => [...cidrs])));
  const only = (some: ReadonlySet<string> = new Set(), others: ReadonlySet<string> = new Set()) =>
    [...some].filter((cidr) => !others.has(cidr));
  return shortened([
    ...only(is, was).map((cidr) => `${cidr} is let in`),
    ...only(was, is).map((cidr) => `${cidr} is not let in`),
  ]);
}

function shortened(words: readonly string[]): string {
  const more = words.length - MOST;
  return [...words.slice(0, MOST), ...(more > 0 ? [`${more} more`] : [])].join(', ');
}
