// Reduces the memory of stored objects: lists of exact size, one shared empty list, interned texts. Most of the memory of
// an agent with thousands of Services is their lists and texts.
// Why: docs/design/decisions/0032-memory-of-objects.md

const NO_ITEMS: readonly never[] = Object.freeze([]);
/** Interned texts; the key is the text. */
const texts = new Map<string, string>();
const MAX_TEXTS = 20_000;

/** Copies a list to its exact size, because V8 leaves room in a list that was pushed to or filtered. */
export function compactList<T>(list: readonly T[] | undefined): readonly T[] {
  return list === undefined || list.length === 0 ? NO_ITEMS : list.slice();
}

/** One copy for equal texts, such as names of nodes and zones, that are in many objects. */
export function intern(text: string): string {
  const known = texts.get(text);
  if (known !== undefined) return known;
  if (texts.size >= MAX_TEXTS) texts.clear();
  texts.set(text, text);
  return text;
}
