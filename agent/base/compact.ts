// Keeps stored objects small: an agent with thousands of Services holds little else than their lists and texts.
// Pure but for the texts that it remembers.

const NO_ITEMS: readonly never[] = Object.freeze([]);
/** Each by itself. */
const texts = new Map<string, string>();
const MAX_TEXTS = 20_000;

/** The same items without room for more, which V8 gives a list that was filtered or pushed to; one list for all that are empty. */
export function compactList<T>(list: readonly T[] | undefined): readonly T[] {
  return list === undefined || list.length === 0 ? NO_ITEMS : list.slice();
}

/** One copy of equal texts, for the few that stand in very many objects. */
export function intern(text: string): string {
  const known = texts.get(text);
  if (known !== undefined) return known;
  if (texts.size >= MAX_TEXTS) texts.clear();
  texts.set(text, text);
  return text;
}
