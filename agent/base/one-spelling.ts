// The one spelling of a path by which requests are looked up: "/%61" is "/a" (RFC 3986, section 6.2.2). Pure.

/** What needs no encoding is decoded, the digits of the rest are in upper case. */
export function oneSpelling(path: string): string {
  return path.replace(/%[0-9a-f]{2}/gi, (digits) => {
    const character = String.fromCharCode(Number.parseInt(digits.slice(1), 16));
    return /[A-Za-z0-9._~-]/.test(character) ? character : digits.toUpperCase();
  });
}
