// Cuts a stream of bytes into lines; the cost does not depend on the size of the chunks.

import { HeadgateError } from './errors.ts';

const NEWLINE = 0x0a;
/** Bytes of one line. An object has at most 1.5 MB in etcd. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

export class Lines {
  /** The parts of a line whose end has not arrived. */
  #parts: Uint8Array[] = [];
  #length = 0;
  readonly #maxBytes: number;
  readonly #tooLong: () => Error;

  /** `maxBytes` of one line; `tooLong` makes the error for a longer one. */
  constructor(maxBytes = MAX_LINE_BYTES, tooLong = () => apiLineTooLong(maxBytes)) {
    this.#maxBytes = maxBytes;
    this.#tooLong = tooLong;
  }

  /** The lines that end in this chunk, without their newlines; empty ones are left out. Errors: that of `tooLong`. */
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
    if (this.#length > this.#maxBytes) throw this.#tooLong();
    this.#parts.push(part);
  }

  #take(last: Uint8Array): string {
    if (this.#length + last.length > this.#maxBytes) throw this.#tooLong();
    if (this.#parts.length === 0) return textOf(last);
    this.#parts.push(last);
    const line = textOf(Buffer.concat(this.#parts));
    this.#parts = [];
    this.#length = 0;
    return line;
  }
}

function apiLineTooLong(maxBytes: number): Error {
  return new HeadgateError('API_UNREACHABLE', `The API server sent a line of more than ${maxBytes} bytes`);
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}
