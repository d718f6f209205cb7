// The values of a cookie in a request's headers (RFC 6265, section 4.2.1). Pure.

/** `headers`: the values of `Cookie`. */
export function cookiesIn(headers: readonly string[], name: string): readonly string[] {
  return headers
    .flatMap((header) => header.split(';').map((each) => each.trim()))
    .filter((each) => each.startsWith(`${name}=`))
    .map((each) => each.slice(name.length + 1).replace(/^"(.*)"$/, '$1'));
}
