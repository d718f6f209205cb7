// Cuts a stream of bytes into lines as they come. Each byte is looked at once, however the chunks fall.

import { HeadgateError } from './errors.ts';

const NEWLINE = 0x0a;
/** Bytes of one line. An object has at most 1.5 MB in etcd. */
const LONGEST = 64 * 1024 * 1024;

export class Lines {
  /** What has come of a line without its end. */
  #parts: Uint8Array[] = [];
  #length = 0;

  /** The lines that end in this chunk, without their newlines; empty ones are left out. Errors: API_UNREACHABLE. */
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

  #keep(part: Uint8Array): void {
    this.#length += part.length;
    if (this.#length > LONGEST) {
      throw new HeadgateError('API_UNREACHABLE', `The API server sent a line of more than ${LONGEST} bytes`);
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
