// Finds the known word that a mistyped one was most likely meant to be.
// Pure.

/** The one of `known` (not empty) with the fewest letters to add, drop or replace; case and separators count little. */
export function nearest(word: string, known: readonly string[]): string {
  let best = known[0] ?? '';
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const distance = 10 * editDistance(plain(word), plain(candidate)) + editDistance(word, candidate);
    if (distance < least) {
      best = candidate;
      least = distance;
    }
  }
  return best;
}

const LONGEST = 64;

/** As nearest(), but undefined where nothing is near enough for a slip of the pen: a quarter of the letters, or 2. */
export function near(word: string, known: readonly string[]): string | undefined {
  if (word.length > LONGEST) return undefined;
  const best = nearest(word, known);
  const most = Math.max(word.length < 4 ? 1 : 2, Math.floor(word.length / 4));
  return editDistance(plain(word), plain(best)) <= most ? best : undefined;
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
