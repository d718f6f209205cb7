// Compares two values of plain data in depth. Pure.

/** undefined and an absent field differ; the parser always writes all fields. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, at) => sameValue(item, b[at]));
  }
  // Not with Object.keys(): this runs for every event, and lists of keys double its time and memory.
  let more = 0;
  for (const key in a) {
    if (!Object.hasOwn(b, key) || !sameValue(a[key as keyof typeof a], b[key as keyof typeof b]))
      return false;
    more++;
  }
  for (const _ in b) more--;
  return more === 0;
}
