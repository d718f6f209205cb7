// The subject of a client's certificate as rules of routes see it: its text in RFC 2253, and the expression that one of its names meets. Pure.

/** From the start of a subject: a name begins behind a comma without a backslash before it. */
export function subjectExpression(certificateName: string): string {
  return `(?:.*[^\\\\],)?(?:${certificateName})`;
}

/** `multiline`: as X509Certificate has it, a line for each name. undefined: it has one whose value only OpenSSL can write. */
export function subjectInRfc2253(multiline: string): string | undefined {
  const names = multiline.split('\n').flatMap((line) => line.split(' + '));
  // A kind without a short name, whose value is written as DER.
  if (names.some((name) => /^\d+(\.\d+)+=/.test(name))) return undefined;
  return names.reverse().map(asciiOf).join(',');
}

function asciiOf(text: string): string {
  return text.replace(/[^\0-\x7f]/gu, (character) =>
    [...Buffer.from(character)].map((byte) => `\\${byte.toString(16).toUpperCase()}`).join(''),
  );
}
