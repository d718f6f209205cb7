// The difference of two lists that mostly have the same items in the same order, such as a long list of which one item
// changed. Pure.

/** What only one of the lists has; items are compared by identity, and each is at most once in a list. */
export function differing<T>(
  before: readonly T[],
  now: readonly T[],
): { readonly gone: ReadonlySet<T>; readonly fresh: readonly T[] } {
  const gone = new Set<T>();
  const others: T[] = [];
  const length = Math.max(before.length, now.length);
  for (let at = 0; at < length; at++) {
    if (at < before.length && at < now.length && before[at] === now[at]) continue;
    if (at < before.length) gone.add(before[at] as T);
    if (at < now.length) others.push(now[at] as T);
  }
  const fresh = others.filter((item) => !gone.delete(item));
  return { gone, fresh };
}
