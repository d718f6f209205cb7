// Suggests the known word that a mistyped word most likely means. Pure.

/** Longer words get no suggestion, because the work grows with the length and users choose the words. */
const MAX_CHARACTERS = 64;

/**
 * The word of `known` with the fewest letters to add, drop or replace; case and separators count little. undefined if
 * these are more than a third of the letters of the longer word, and more than one, or more than `mostLetters`.
 */
export function nearest(
  word: string,
  known: readonly string[],
  mostLetters = Number.POSITIVE_INFINITY,
): string | undefined {
  if (word.length > MAX_CHARACTERS) return undefined;
  const a = plain(word);
  let best: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const b = plain(candidate);
    if (Math.abs(a.length - b.length) > mostLetters) continue;
    const letters = editDistance(a, b);
    const allowed = Math.max(1, Math.floor(Math.max(a.length, b.length) / 3));
    if (letters > Math.min(allowed, mostLetters)) continue;
    const distance = 10 * letters + editDistance(word, candidate);
    if (distance >= least) continue;
    best = candidate;
    least = distance;
  }
  return best;
}

/** The end of a message that refuses `word`: `, the nearest is "PREFIX..."`, or ''. */
export function nearestHint(word: string, known: readonly string[], prefix = ''): string {
  const meant = nearest(word, known);
  return meant === undefined ? '' : `, the nearest is "${prefix}${meant}"`;
}

/** A fault for each key that is not known. `place` is in front of it: `instances[0].`. */
export function unknownKeys(
  mapping: Readonly<Record<string, unknown>>,
  known: readonly string[],
  place = '',
): readonly string[] {
  return Object.keys(mapping)
    .filter((key) => !known.includes(key))
    .map((key) => `${place}${key}: Unknown key${nearestHint(key, known)}`);
}

function plain(word: string): string {
  return word.toLowerCase().replaceAll(/[-_. ]/g, '');
}

/** The Levenshtein distance, row by row; two neighbours that change places count as one letter. */
function editDistance(a: string, b: string): number {
  let above: readonly number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = isSwap ? (above[j - 2] ?? 0) + 1 : replace;
      next.push(Math.min(replace, swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    above = row;
    row = next;
  }
  return row[b.length] ?? 0;
}
