// The one spelling of a path by which requests are looked up: "/%61%40" is "/a@", because members read both alike. Pure.

/** What RFC 3986 allows in a path, without what a member may take for the end of a name: that stays as the client has it. */
const PLAIN = /^[A-Za-z0-9._~!$&'()*+,=:@-]$/;
/** What an expression sees as itself besides. */
const PRINTED = /^[ "<>[\]^`{|}]$/;

/** A path as clients send it: all that RFC 3986 does not allow in a path is percent-encoded, byte by byte of UTF-8. */
export function encodedPath(path: string): string {
  return path.replace(/[^A-Za-z0-9._~!$&'()*+,;=:@/%-]/gu, encoded);
}

/** By which requests are looked up: authors of the same one have one path. */
export function oneSpelling(path: string): string {
  return path.replace(/%[0-9a-f]{2}|[^A-Za-z0-9._~!$&'()*+,;=:@/-]/giu, (text) => {
    if (text.length !== 3 || !text.startsWith('%')) return encoded(text);
    const character = characterOf(text);
    return PLAIN.test(character) ? character : text.toUpperCase();
  });
}

/** What regular expressions look at, of a path in its one spelling: authors write printable characters as they are. */
export function expressionText(path: string): string {
  return path.replace(/%[0-9A-F]{2}/g, (text) => {
    const character = characterOf(text);
    return PRINTED.test(character) ? character : text;
  });
}

/** An author's regular expression for such texts: of what is percent-encoded in it, and of what is not ASCII. */
export function pathPattern(pattern: string): string {
  return pattern.replace(
    /\\.|\[\^?\]?(?:\\.|\[:\^?[a-z]+:\]|[^\]\\])*\]|%[0-9a-f]{2}|[^\0-\x7f]/giu,
    (part) => {
      if (/^[\\[]/.test(part)) return part;
      const text = expressionText(oneSpelling(part));
      if (text.length > 3) return `(?:${text})`;
      return text.length === 1 ? text.replace(/[\\^$.*+?()[\]{}|]/, '\\$&') : text;
    },
  );
}

function encoded(text: string): string {
  return Array.from(Buffer.from(text), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(
    '',
  );
}

function characterOf(text: string): string {
  return String.fromCharCode(Number.parseInt(text.slice(1), 16));
}
