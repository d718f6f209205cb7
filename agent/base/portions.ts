// Cuts a long list into portions, each of which is the same value as before while its items are: what is made of a portion is
// kept by its identity. Pure.

const SIZE = 64;

/** `before`: the portions of the list as it was. Items are compared by identity. */
export function portionsOf<T>(
  list: readonly T[],
  before: readonly (readonly T[])[],
): readonly (readonly T[])[] {
  const portions: (readonly T[])[] = [];
  for (let from = 0; from < list.length; from += SIZE) {
    const known = before[from / SIZE];
    portions.push(known !== undefined && isAt(known, list, from) ? known : list.slice(from, from + SIZE));
  }
  return portions;
}

function isAt<T>(portion: readonly T[], list: readonly T[], from: number): boolean {
  if (portion.length !== Math.min(SIZE, list.length - from)) return false;
  for (let at = 0; at < portion.length; at++) if (portion[at] !== list[from + at]) return false;
  return true;
}
