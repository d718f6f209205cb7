// Finds the known word that a mistyped one was most likely meant to be.
// Pure.

/** Longer words are not looked at: the work grows with their length, and strangers write them. */
const LONGEST = 64;

/**
 * The one of `known` with the fewest letters to add, drop or replace, case and separators counting little; undefined
 * where that is more than a slip of the pen: a third of the letters of the longer word, but one at least.
 */
export function nearest(word: string, known: readonly string[]): string | undefined {
  if (word.length > LONGEST) return undefined;
  const a = plain(word);
  let best: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const b = plain(candidate);
    const letters = editDistance(a, b);
    const distance = 10 * letters + editDistance(word, candidate);
    if (letters > Math.max(1, Math.floor(Math.max(a.length, b.length) / 3)) || distance >= least) continue;
    best = candidate;
    least = distance;
  }
  return best;
}

/** What a message that refuses `word` ends with: `, the nearest is "PREFIX..."`, or nothing. `prefix` stands before each. */
export function nearestHint(word: string, known: readonly string[], prefix = ''): string {
  const meant = nearest(word, known);
  return meant === undefined ? '' : `, the nearest is "${prefix}${meant}"`;
}

function plain(word: string): string {
  return word.toLowerCase().replaceAll(/[-_. ]/g, '');
}

/** Levenshtein's distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replace, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
