// Cuts a stream of bytes into lines; the cost does not depend on the size of the chunks.

import { HeadgateError } from './errors.ts';

const NEWLINE = 0x0a;
/** An object has at most 1.5 MB in etcd. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

export class Lines {
  /** The parts of a line whose end has not arrived. */
  #parts: Uint8Array[] = [];
  #length = 0;

  /** The lines that end in this chunk, without newlines and without empty lines. Errors: API_UNREACHABLE. */
  *push(chunk: Uint8Array): Generator<string, void, void> {
    let from = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, from);
      if (end < 0) break;
      const line = this.#take(chunk.subarray(from, end));
      if (line !== '') yield line;
      from = end + 1;
    }
    if (from < chunk.length) this.#keep(chunk.subarray(from));
  }

  /** The text after the last newline, at the end of the stream. */
  rest(): string {
    return this.#take(new Uint8Array());
  }

  #keep(part: Uint8Array): void {
    this.#length += part.length;
    if (this.#length > MAX_LINE_BYTES) {
      throw new HeadgateError(
        'API_UNREACHABLE',
        `The API server sent a line of more than ${MAX_LINE_BYTES} bytes`,
      );
    }
    this.#parts.push(part);
  }

  #take(last: Uint8Array): string {
    if (this.#parts.length === 0) return textOf(last);
    this.#parts.push(last);
    const line = textOf(Buffer.concat(this.#parts));
    this.#parts = [];
    this.#length = 0;
    return line;
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}
