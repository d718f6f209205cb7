// Which regular expressions may match the body of a health check: those that HAProxy always matches fast, because the
// author of a Service controls both the pattern and, through the members, the text.
// An allowed pattern means the same to PCRE, PCRE2 and POSIX. Pure.

const MAX_CHARACTERS = 200;
const MAX_COUNT = 64;
/** The ways to match the counts and alternatives of a pattern at one position: the worst cost of backtracking there. */
const MAX_ALTERNATIVES = 256;

// Classes without backslash and opening bracket, which POSIX and PCRE read differently.
// After the bracket a ^ negates the class, so it needs another character behind it.
const CLASS = String.raw`\[(?:\^[ -&(-Z^-~]+|[ -&(-Z_-~][ -&(-Z^-~]*)\]`;
const ESCAPED = String.raw`\\[.^$*+?()[\]{}|/-]`;
const PLAIN = String.raw`[ -#%&,-Z_\x60a-z~](?<!\?)`;
const ATOM = new RegExp(`^(?:${ESCAPED}|${CLASS}|${PLAIN})`);
/** An empty alternative. */
const EMPTY = /^\||\|$|\(\)|\(\||\|\||\|\)/;
const COUNT = /^(?:\?|\{(\d{1,2})(?:,(\d{1,2}))?\})/;

/** Allows one level of groups, and limited counts after single characters and classes. */
export function isHarmlessPattern(pattern: string): boolean {
  if (pattern.length > MAX_CHARACTERS || !/^[ -&(-~]+$/.test(pattern) || EMPTY.test(pattern)) return false;
  let isInGroup = false;
  let alternatives = 1;
  for (let rest = pattern; rest !== ''; ) {
    const [first = ''] = rest;
    if ('()|^$'.includes(first)) {
      if (first === '(' || first === ')') {
        if (isInGroup === (first === '(')) return false;
        isInGroup = first === '(';
      }
      if (first === '|') alternatives *= 2;
      rest = rest.slice(1);
    } else {
      const [atom] = ATOM.exec(rest) ?? [];
      if (atom === undefined || !isValidClass(atom)) return false;
      rest = rest.slice(atom.length);
      const [count = '', min = '0', max = min] = COUNT.exec(rest) ?? [];
      const [from, to] = count === '?' ? [0, 1] : [Number(min), Number(max)];
      if (from > to || to > MAX_COUNT) return false;
      if (count !== '') alternatives *= to - from + 1;
      rest = rest.slice(count.length);
    }
    // Not allowed: a count after a group, an anchor or another count, and PCRE's extensions `(?`.
    if (/^[?*+{]/.test(rest)) return false;
  }
  return !isInGroup && alternatives <= MAX_ALTERNATIVES;
}

/**
 * False for a class that some libraries refuse: a reversed range, such as `[z-a]`, a range whose end begins another one, such
 * as `[a-c-e]`, and POSIX's collating elements and classes, such as `[.a.]`.
 */
function isValidClass(atom: string): boolean {
  if (!atom.startsWith('[')) return true;
  if (/^\[([.:=]).*\1\]$/.test(atom)) return false;
  const inner = atom.slice(atom.startsWith('[^') ? 2 : 1, -1);
  for (let at = 0; at < inner.length; at++) {
    if (inner[at + 1] !== '-' || at + 2 >= inner.length) continue;
    if ((inner[at] ?? '') > (inner[at + 2] ?? '')) return false;
    at += 2;
    if (inner[at + 1] === '-' && at + 2 < inner.length) return false;
  }
  return true;
}
