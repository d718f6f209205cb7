// JSON (RFC 8259) of tokens, with the bounds of templates/haproxy/jwt.lua: no name twice in an object, 16 levels, no text with half a
// surrogate pair. Numbers keep the text that they have. Pure.

export type StrictJson =
  | { readonly kind: 'object'; readonly names: ReadonlyMap<string, StrictJson> }
  | { readonly kind: 'list'; readonly items: readonly StrictJson[] }
  | { readonly kind: 'text' | 'number' | 'literal'; readonly text: string }
  | { readonly kind: 'null' };

const MOST_DEPTH = 16;
const BLANKS = /[ \t\r\n]*/y;
const TEXT = /"(?:[^"\\\p{Cc}]|[\u0080-\u009f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const WORD = /true|false|null/y;

/** undefined if it is none. Bytes that are not UTF-8 are none. */
export function strictJson(bytes: Buffer): StrictJson | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return new Reader(text).whole();
  } catch {
    return undefined;
  }
}

/** Its methods throw if they find something else. */
class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): StrictJson {
    const value = this.#value(0);
    this.#found(BLANKS);
    if (this.#at < this.#text.length) throw this.#fault();
    return value;
  }

  #value(depth: number): StrictJson {
    if (depth > MOST_DEPTH) throw this.#fault();
    this.#found(BLANKS);
    switch (this.#text[this.#at]) {
      case '{':
        return this.#object(depth + 1);
      case '[':
        return this.#list(depth + 1);
      case '"':
        return { kind: 'text', text: this.#string() };
    }
    const word = this.#found(WORD);
    if (word === 'null') return { kind: 'null' };
    if (word !== undefined) return { kind: 'literal', text: word };
    return { kind: 'number', text: this.#needed(NUMBER) };
  }

  #object(depth: number): StrictJson {
    const names = new Map<string, StrictJson>();
    this.#members('}', () => {
      this.#found(BLANKS);
      const name = this.#string();
      if (names.has(name)) throw this.#fault();
      this.#found(BLANKS);
      this.#needed(/:/y);
      names.set(name, this.#value(depth));
    });
    return { kind: 'object', names };
  }

  #list(depth: number): StrictJson {
    const items: StrictJson[] = [];
    this.#members(']', () => items.push(this.#value(depth)));
    return { kind: 'list', items };
  }

  #members(end: string, member: () => void): void {
    this.#at++;
    this.#found(BLANKS);
    if (this.#text[this.#at] === end) {
      this.#at++;
      return;
    }
    for (;;) {
      member();
      this.#found(BLANKS);
      const next = this.#needed(/[,\]}]/y);
      if (next === end) return;
      if (next !== ',') throw this.#fault();
    }
  }

  #string(): string {
    const text: string = JSON.parse(this.#needed(TEXT));
    if (!text.isWellFormed()) throw this.#fault();
    return text;
  }

  #needed(pattern: RegExp): string {
    const found = this.#found(pattern);
    if (found === undefined) throw this.#fault();
    return found;
  }

  #found(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.#text) ?? [];
    this.#at += found?.length ?? 0;
    return found;
  }

  #fault(): Error {
    return new Error(`Not JSON at ${this.#at}`);
  }
}
