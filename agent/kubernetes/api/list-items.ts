// Cuts a list of the API into items while it arrives: gives the JSON text of each complete item, and the list's own
// fields at the end. So a list of any size needs neither its size in memory nor one long parse. Reads each byte once.

import { textOf } from '../../base/lines.ts';
import { isMapping } from '../../base/validate.ts';

/** `metadata` of a list. */
export interface ListMetadata {
  readonly resourceVersion: string;
  /** '' on the last page. */
  readonly continue: string;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

/** Without the items. */
const MAX_SHELL_BYTES = 1024 * 1024;

export class ListItems {
  /** Everything but the inside of `items`. */
  #shell: Uint8Array[] = [];
  #shellLength = 0;
  /** The begin of an item that is not complete. */
  #item: Uint8Array[] = [];
  /** How many braces and brackets are open. */
  #depth = 0;
  #inString = false;
  #escaped = false;
  #inItems = false;

  /** The items that end in this chunk; the caller must take all of them. Errors: SyntaxError if it is not a list. */
  *push(chunk: Uint8Array): Generator<string, void, void> {
    // The begin of the bytes to be kept: of an item, or of the shell.
    let from = 0;
    let at = 0;
    // Variables are faster than fields, and most of a list's time is spent here.
    let depth = this.#depth;
    let inString = this.#inString;
    let inItems = this.#inItems;
    while (at < chunk.length) {
      if (inString) {
        at = this.#stringFrom(chunk, at);
        inString = this.#inString;
        continue;
      }
      const byte = chunk[at] as number;
      if (byte === QUOTE) {
        inString = true;
        this.#inString = true;
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (depth === 1 && byte === OPEN_BRACKET && this.#isAtItems(chunk.subarray(from, at))) {
          inItems = true;
          this.#keep(chunk.subarray(from, at + 1));
        } else if (inItems && depth === 2) from = at;
        depth++;
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        depth--;
        if (inItems && depth === 2) yield this.#whole(chunk.subarray(from, at + 1));
        else if (inItems && depth === 1) {
          inItems = false;
          from = at;
        }
      }
      at++;
    }
    this.#depth = depth;
    this.#inItems = inItems;
    if (!inItems) this.#keep(chunk.subarray(from));
    else if (depth > 2) this.#item.push(chunk.subarray(from));
  }

  /** After the last chunk. Errors: SyntaxError if the list is not complete. */
  end(): ListMetadata {
    const list: unknown = JSON.parse(Buffer.concat(this.#shell).toString('utf8'));
    const metadata = isMapping(list) ? list.metadata : undefined;
    if (!isMapping(metadata) || typeof metadata.resourceVersion !== 'string') {
      throw new SyntaxError('The list has no resourceVersion');
    }
    const next = metadata.continue;
    return { resourceVersion: metadata.resourceVersion, continue: typeof next === 'string' ? next : '' };
  }

  /** Continues inside a string; gives the position after its end, or after the chunk's. */
  #stringFrom(chunk: Uint8Array, start: number): number {
    let escaped = this.#escaped;
    for (let at = start; at < chunk.length; at++) {
      const byte = chunk[at];
      if (escaped) escaped = false;
      else if (byte === BACKSLASH) escaped = true;
      else if (byte === QUOTE) {
        this.#inString = false;
        this.#escaped = false;
        return at + 1;
      }
    }
    this.#escaped = escaped;
    return chunk.length;
  }

  /** True before the value of the field `items`. A string cannot end like this, because its quotes are escaped. */
  #isAtItems(last: Uint8Array): boolean {
    return /[{,]\s*"items"\s*:\s*$/.test(textOf(Buffer.concat([...this.#shell, last])));
  }

  #whole(last: Uint8Array): string {
    if (this.#item.length === 0) return textOf(last);
    this.#item.push(last);
    const text = textOf(Buffer.concat(this.#item));
    this.#item = [];
    return text;
  }

  #keep(part: Uint8Array): void {
    this.#shellLength += part.length;
    if (this.#shellLength > MAX_SHELL_BYTES) throw new SyntaxError('The answer is not a list');
    this.#shell.push(part);
  }
}
