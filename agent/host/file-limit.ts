// The limit of open files of this process, which the daemons that it starts inherit.

import { readFileSync } from 'node:fs';

/** What the kernel allows if it sets no limit of its own (fs.nr_open). */
const UNLIMITED = 1_048_576;

/** The hard limit. `read` reads a file of /proc; a system without it has no limit. */
export function fileLimit(read: (path: string) => string = (path) => readFileSync(path, 'utf8')): number {
  const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(limits(read))?.[1];
  return hard === 'unlimited' || hard === undefined ? UNLIMITED : Number(hard);
}

function limits(read: (path: string) => string): string {
  try {
    return read('/proc/self/limits');
  } catch {
    return '';
  }
}
