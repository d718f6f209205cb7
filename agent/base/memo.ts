// Caches the result of a pure function by the identity of its argument: values are immutable, so the same object has
// the same result. The cache keeps no argument alive.

export function memoByIdentity<K extends object, V>(make: (key: K) => V): (key: K) => V {
  const cache = new WeakMap<K, { readonly value: V }>();
  return (key) => {
    let entry = cache.get(key);
    if (entry === undefined) {
      entry = { value: make(key) };
      cache.set(key, entry);
    }
    return entry.value;
  };
}
