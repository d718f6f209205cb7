// What is kept of each object of the cluster, in no more memory than it takes: an agent with thousands of Services holds
// little else than many small lists, mappings and texts. Pure but for its memory.

const NO_ITEMS: readonly never[] = Object.freeze([]);
const NO_FIELDS: Readonly<Record<string, never>> = Object.freeze({});
/** By themselves, so that equal ones are the same. */
const texts = new Map<string, string>();
const MOST_TEXTS = 20_000;

/**
 * The same items without room for more, and one list for all that are empty: V8 gives a list that was filtered, or
 * pushed to, room for 17 items, 128 bytes more than one item takes.
 */
export function compactList<T>(list: readonly T[] | undefined): readonly T[] {
  return list === undefined || list.length === 0 ? NO_ITEMS : list.slice();
}

/** The same mapping, and one for all that are empty. */
export function compactMapping<T>(
  mapping: Readonly<Record<string, T>> | undefined,
): Readonly<Record<string, T>> {
  return mapping === undefined || Object.keys(mapping).length === 0 ? NO_FIELDS : mapping;
}

/** One copy of equal texts, for the few that stand in very many objects. */
export function shared(text: string): string {
  const known = texts.get(text);
  if (known !== undefined) return known;
  if (texts.size >= MOST_TEXTS) texts.clear();
  texts.set(text, text);
  return text;
}
