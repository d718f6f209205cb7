// Cuts a YAML text into its documents, so that each can be read and remembered for itself. Pure.

export interface YamlPart {
  readonly bytes: Buffer;
  /** Offset in the whole text. */
  readonly begin: number;
}

/** A line of three dashes ends a document wherever it stands, even in a quoted text (YAML 1.2.2, 9.1.2). */
const SEPARATOR = /^---(?:[ \t]*|[ \t]+#.*)(?:\r?\n|$)/gm;
/** Directives and `...` bind documents together: a text with those stays whole. */
const BINDING = /^(?:%|\.\.\.)/m;
const BYTE_ORDER_MARK = Buffer.from('\uFEFF').toString('latin1');

/** Parts without their separators and byte-order marks; a document whose text begins behind the dashes is not cut off. */
export function splitYaml(text: Buffer): readonly YamlPart[] {
  // One character for each byte, so that an index is an offset.
  const characters = text.toString('latin1');
  const parts: YamlPart[] = [];
  const add = (from: number, to: number) => {
    const begin = characters.startsWith(BYTE_ORDER_MARK, from) ? from + BYTE_ORDER_MARK.length : from;
    if (begin < to) parts.push({ bytes: text.subarray(begin, to), begin });
  };
  let begin = 0;
  for (const { index, 0: line } of BINDING.test(characters) ? [] : characters.matchAll(SEPARATOR)) {
    add(begin, index);
    begin = index + line.length;
  }
  add(begin, text.length);
  return parts;
}
