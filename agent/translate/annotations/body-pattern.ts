// Which regular expressions may judge the body of a probe's answer: those that HAProxy can never spend long on. Pure.
// The author of a Service gives the pattern and, by the members, the text as well, so a pattern that backtracks would
// be a way to stop the load balancer for everybody. What is allowed means the same to PCRE, PCRE2 and POSIX.

const LONGEST = 200;
/** Of one count. */
const MOST = 64;
/** Ways in which the counts of one pattern can be shared out: what a match costs at most at one place of the text. */
const MOST_WAYS = 256;

// A class holds no backslash and no opening bracket, which POSIX and PCRE read differently.
const CLASS = String.raw`\[\^?[ -&(-Z^-~]+\]`;
const ESCAPED = String.raw`\\[.^$*+?()[\]{}|/-]`;
const PLAIN = String.raw`[ -#%&,-Z_\x60a-z~](?<!\?)`;
const ATOM = new RegExp(`^(?:${ESCAPED}|${CLASS}|${PLAIN})`);
/** An alternative without anything in it. */
const EMPTY = /^\||\|$|\(\)|\(\||\|\||\|\)/;
const COUNT = /^(?:\?|\{(\d{1,2})(?:,(\d{1,2}))?\})/;

/** One level of groups, counts behind single characters and classes only, none without a limit. */
export function isHarmlessPattern(pattern: string): boolean {
  if (pattern.length > LONGEST || !/^[ -&(-~]+$/.test(pattern) || EMPTY.test(pattern)) return false;
  let isInGroup = false;
  let ways = 1;
  for (let rest = pattern; rest !== ''; ) {
    const [first = ''] = rest;
    if ('()|^$'.includes(first)) {
      if (first === '(' || first === ')') {
        if (isInGroup === (first === '(')) return false;
        isInGroup = first === '(';
      }
      if (first === '|') ways *= 2;
      rest = rest.slice(1);
    } else {
      const [atom] = ATOM.exec(rest) ?? [];
      if (atom === undefined || !isOrdered(atom)) return false;
      rest = rest.slice(atom.length);
      const [count = '', least = '0', most = least] = COUNT.exec(rest) ?? [];
      const [from, to] = count === '?' ? [0, 1] : [Number(least), Number(most)];
      if (from > to || to > MOST) return false;
      if (count !== '') ways *= to - from + 1;
      rest = rest.slice(count.length);
    }
    // A count behind a group, an anchor or another count; `(?`, an extension of PCRE.
    if (/^[?*+{]/.test(rest)) return false;
  }
  return !isInGroup && ways <= MOST_WAYS;
}

/** A range that runs backwards, such as `[z-a]`, is no pattern; neither is a name of POSIX such as `[:alpha:]`. */
function isOrdered(atom: string): boolean {
  if (!atom.startsWith('[')) return true;
  const inner = atom.slice(atom.startsWith('[^') ? 2 : 1, -1);
  for (let at = 0; at < inner.length; at++) {
    if (inner[at + 1] !== '-' || at + 2 >= inner.length) continue;
    if ((inner[at] ?? '') > (inner[at + 2] ?? '')) return false;
    at += 2;
  }
  return true;
}
