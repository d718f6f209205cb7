// Who runs where: what is measured on one half of the processors, those that stand for other machines on the other.
// A client of higher priority alone is not enough: the kernel lets it push HAProxy from its processor beside one that
// has nothing to do, and leaves HAProxy there until the client is done. No other machine can do that.

import { readFileSync } from 'node:fs';

/** Commands that become what follows them; none where there is one processor. */
export interface Halves {
  readonly host: readonly string[];
  readonly others: readonly string[];
}

/** Of the processors that this process may use. */
export function halves(status = readFileSync('/proc/self/status', 'utf8')): Halves {
  const processors = listed(/^Cpus_allowed_list:\s*(\S+)/m.exec(status)?.[1] ?? '0');
  if (processors.length < 2) return { host: [], others: [] };
  const half = processors.length >> 1;
  const on = (some: readonly number[]): readonly string[] => ['taskset', '--cpu-list', some.join(',')];
  return { host: on(processors.slice(0, half)), others: on(processors.slice(half)) };
}

/** `0-2,5`: 0, 1, 2, 5. */
function listed(list: string): readonly number[] {
  return list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, at) => first + at);
  });
}
