// Bounds the number of values in a text of YAML or JSON without parsing it, because a parser takes memory and time for
// each value. Pure.

/** At least the number of entries in lists and mappings, and of documents; a key and its value are one entry. */
export function countEntries(text: Uint8Array): number {
  let count = 1;
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      // `,`, `[`, `{`: in flow collections and JSON.
      case 0x2c:
      case 0x5b:
      case 0x7b:
        count++;
        break;
      // `-`, `:`, `?`: in block collections, before a blank. The last dash of `---` begins a document.
      case 0x2d:
      case 0x3a:
      case 0x3f:
        if (isBlank(text[at + 1])) count++;
        break;
      // `...` ends a document.
      case 0x2e:
        if (text[at + 1] === 0x2e && text[at + 2] === 0x2e && isLineEnd(text[at - 1])) count++;
        break;
      default:
    }
  }
  return count;
}

function isBlank(byte: number | undefined): boolean {
  return byte === undefined || byte === 0x20 || byte === 0x09 || isLineEnd(byte);
}

function isLineEnd(byte: number | undefined): boolean {
  return byte === 0x0a || byte === 0x0d;
}
