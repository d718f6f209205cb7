// Slices of the scheduler, as the kernel shows them.

import { readFileSync } from 'node:fs';
import { release } from 'node:os';

/** Nanoseconds for which a process may keep its processor; undefined where the kernel does not show it. */
export function sliceOf(pid: number | 'self'): number | undefined {
  return sliceIn(readFileSync(`/proc/${pid}/sched`, 'latin1'));
}

/** The same of the text of that file. */
export function sliceIn(text: string): number | undefined {
  const slice = /^se\.slice\s*:\s*(\d+)$/m.exec(text)?.[1];
  return slice === undefined ? undefined : Number(slice);
}

/** What is to be expected of who asks for the shortest one: on a kernel that has no such thing, the slice of all. */
export function shortestSlice(): number | undefined {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  const own = sliceOf('self');
  return own !== undefined && (major > 6 || (major === 6 && minor >= 12)) ? 100_000 : own;
}
