// What rows lead to: other rows, and pools. A row that leads to a pool that a worker does not have waits for the worker that
// has it, because HAProxy answers 503 for the name of a missing backend. Pure.

import { memoByIdentity } from '../../base/memo.ts';
import { plainTarget } from './encode.ts';
import { type MapRow, rowId } from './maps.ts';

/** The names of the pools that these rows lead to. */
export const poolsOf = memoByIdentity((rows: readonly MapRow[]): readonly string[] => [
  ...new Set(rows.flatMap(targetsOf).filter(isPool)),
]);

/** The rows, by id, that lead to one of these pools, also through other rows. */
export function leadingTo(rows: readonly MapRow[], missing: ReadonlySet<string>): ReadonlySet<string> {
  const names = new Set(missing);
  const leading = new Set<string>();
  // Each row follows those that it leads to.
  for (const row of rows) {
    if (!targetsOf(row).some((target) => names.has(target))) continue;
    leading.add(rowId(row));
    names.add(nameOf(row));
  }
  return leading;
}

function isPool(target: string): boolean {
  return target.startsWith('pool:');
}

function targetsOf({ map, value }: MapRow): readonly string[] {
  switch (map) {
    case 'lists':
      return value.split('|').map((candidate) => plainTarget(candidate.split('&', 1)[0] ?? ''));
    case 'mirrors':
      return value.split('|').map((mirror) => mirror.split(' ', 1)[0] ?? '');
    case 'custom-errors':
      return [value.split(' ', 2)[1] ?? ''];
    case 'external-auth':
      return [value.slice(0, value.indexOf(' '))];
    case 'weights':
      return [value.slice(value.indexOf('|') + 1)];
    case 'exact':
    case 'prefix':
      return [plainTarget(value)];
    case 'backend':
    case 'shares':
    case 'hosts':
    case 'fallback':
      return [value];
    default:
      return [];
  }
}

/** By which other rows lead to it. */
function nameOf({ map, key }: MapRow): string {
  return map === 'shares' ? key.slice(0, key.indexOf('::') + 2) : key;
}
