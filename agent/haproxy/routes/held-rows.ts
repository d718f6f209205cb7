// A path whose rule guards it, and whose pool the worker does not have yet: until then it answers 503, because requests without
// the path would get the rule of a wider one. Pure.

import { plainTarget } from './encode.ts';
import { isPath, type MapName, type MapRow, rowId } from './maps.ts';
import { leadingTo } from './needs.ts';
import type { RowsById } from './running-rows.ts';

/** What a rule restricts its clients by; the key is the rule. */
export const GUARDS_OF_RULES: ReadonlySet<MapName> = new Set<MapName>([
  'clients',
  'rate',
  'minute-rate',
  'at-once',
  'body',
  'certificate-name',
  'auth',
  'external-auth',
]);
/** What a whole section or host restricts by. */
export const GUARDS_OF_HOSTS: ReadonlySet<MapName> = new Set<MapName>(['guarded', 'strict']);
const UNAVAILABLE = 'e503';

/**
 * `waiting`: the ids of the wanted rows that wait for a pool. A path that is served stays as it is, unless all of its requests
 * are guarded from now on, and were not before.
 */
export function heldRows(
  wanted: readonly MapRow[],
  waiting: ReadonlySet<string>,
  current: RowsById,
): readonly MapRow[] {
  if (waiting.size === 0) return NONE;
  const guards = guardsOf(wanted);
  if (guards.size === 0) return NONE;
  const before = guardsOf(current.values());
  const leading = leadingTo(wanted, guards);
  return wanted
    .filter((row) => {
      const id = rowId(row);
      if (!isPath(row) || !waiting.has(id) || !leading.has(id)) return false;
      const served = current.get(id);
      if (served === undefined) return true;
      return guards.has(plainTarget(row.value)) && !before.has(plainTarget(served.value));
    })
    .map((row) => ({ ...row, value: UNAVAILABLE }));
}

const NONE: readonly MapRow[] = [];

/** The targets that restrict who is served. */
function guardsOf(rows: Iterable<MapRow>): ReadonlySet<string> {
  const targets = new Set<string>();
  for (const { map, key } of rows) if (GUARDS_OF_RULES.has(map)) targets.add(key);
  return targets;
}
