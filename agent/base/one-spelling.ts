// The one spelling of a path by which requests are looked up: "/%61" is "/a" (RFC 3986, section 6.2.2). Pure.

/** A path as clients send it: all that RFC 3986 does not allow in a path is percent-encoded, byte by byte of UTF-8. */
export function encodedPath(path: string): string {
  return path.replace(/[^A-Za-z0-9._~!$&'()*+,;=:@/%-]/gu, (character) =>
    Array.from(Buffer.from(character), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(
      '',
    ),
  );
}

/** An author's path in the spelling that requests are looked up by: authors of the same one have one path. */
export function plainPath(path: string): string {
  return oneSpelling(encodedPath(path));
}

/** What needs no encoding is decoded, the digits of the rest are in upper case. */
export function oneSpelling(path: string): string {
  return path.replace(/%[0-9a-f]{2}/gi, (digits) => {
    const character = String.fromCharCode(Number.parseInt(digits.slice(1), 16));
    return /[A-Za-z0-9._~-]/.test(character) ? character : digits.toUpperCase();
  });
}
