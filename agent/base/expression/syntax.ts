// Reads a regular expression of an author: the syntax of RE2, which is what every kind of expression has that can be matched
// in time proportional to the text. Bytes, not characters: a text that is not ASCII is its UTF-8. Pure.

/** What an expression is made of. `set` has 256 numbers, 1 for each byte that matches. */
export type Part =
  | { readonly kind: 'set'; readonly set: Uint8Array }
  | { readonly kind: 'sequence' | 'alternatives'; readonly parts: readonly Part[] }
  /** `most` undefined: any number. */
  | {
      readonly kind: 'repeat';
      readonly part: Part;
      readonly least: number;
      readonly most: number | undefined;
      /** Takes as little as it can, which only makes a difference to what groups take. */
      readonly isLazy: boolean;
    }
  /** Counted from 1 by their opening parentheses. */
  | { readonly kind: 'group'; readonly number: number; readonly part: Part }
  | { readonly kind: 'start' | 'end' | 'boundary' | 'no-boundary' };

/** Why a text is no expression: the end of a sentence that begins with the expression. */
export class RefusedSyntax extends Error {}

const BYTES = 256;
const MAX_COUNT = 1_000;
const MAX_DEPTH = 50;
const DIGIT = setOf([0x30, 0x39]);
export const WORD = setOf([0x30, 0x39], [0x41, 0x5a], [0x5f, 0x5f], [0x61, 0x7a]);
const SPACE = setOf([0x09, 0x0d], [0x20, 0x20]);
const ANY = setOf([0, 255]);
const CLASSES: Readonly<Record<string, Uint8Array>> = { d: DIGIT, w: WORD, s: SPACE };
const POSIX: Readonly<Record<string, Uint8Array>> = {
  alnum: setOf([0x30, 0x39], [0x41, 0x5a], [0x61, 0x7a]),
  alpha: setOf([0x41, 0x5a], [0x61, 0x7a]),
  ascii: setOf([0, 127]),
  blank: setOf([0x09, 0x09], [0x20, 0x20]),
  cntrl: setOf([0, 31], [127, 127]),
  digit: DIGIT,
  graph: setOf([33, 126]),
  lower: setOf([0x61, 0x7a]),
  print: setOf([32, 126]),
  punct: setOf([33, 47], [58, 64], [91, 96], [123, 126]),
  space: SPACE,
  upper: setOf([0x41, 0x5a]),
  word: WORD,
  xdigit: setOf([0x30, 0x39], [0x41, 0x46], [0x61, 0x66]),
};
const CONTROLS: Readonly<Record<string, number>> = { a: 7, f: 12, n: 10, r: 13, t: 9, v: 11 };
const EMPTY: Part = { kind: 'sequence', parts: [] };

/** Throws a RefusedSyntax. */
export function parseExpression(text: string): Part {
  return new Parser(text).whole();
}

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;
  #groups = 0;
  #ignoresCase = false;
  #isUngreedy = false;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): Part {
    const part = this.#alternatives();
    if (this.#at < this.#text.length) throw new RefusedSyntax('has ")" without "("');
    return part;
  }

  #alternatives(): Part {
    const parts = [this.#sequence()];
    while (this.#takes('|')) parts.push(this.#sequence());
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : { kind: 'alternatives', parts };
  }

  #sequence(): Part {
    const parts: Part[] = [];
    for (let next = this.#next(); next !== '' && next !== '|' && next !== ')'; next = this.#next())
      parts.push(this.#repeated(this.#atom()));
    return { kind: 'sequence', parts };
  }

  #repeated(part: Part): Part {
    const [least, most] = this.#count() ?? [];
    if (least === undefined) return part;
    const isLazy = this.#takes('?') !== this.#isUngreedy;
    if (this.#next() === '+') throw new RefusedSyntax('has a possessive repetition, which RE2 does not have');
    if (this.#count() !== undefined) throw new RefusedSyntax('repeats a repetition; put it into a group');
    return { kind: 'repeat', part, least, most, isLazy };
  }

  /** undefined if no count is next. */
  #count(): readonly [least: number, most: number | undefined] | undefined {
    if (this.#takes('*')) return [0, undefined];
    if (this.#takes('+')) return [1, undefined];
    if (this.#takes('?')) return [0, 1];
    const [all, least, comma, most] =
      /^\{(\d+)(,?)(\d*)\}/.exec(this.#text.slice(this.#at, this.#at + 24)) ?? [];
    // As a text: `{` alone.
    if (all === undefined || least === undefined || (comma === '' && most !== '')) return undefined;
    this.#at += all.length;
    const [from, to] = [Number(least), comma === '' ? Number(least) : most === '' ? undefined : Number(most)];
    if (Math.max(from, to ?? 0) > MAX_COUNT) throw new RefusedSyntax(`repeats more than ${MAX_COUNT} times`);
    if (to !== undefined && to < from)
      throw new RefusedSyntax(`has "${all}", whose numbers are in the wrong order`);
    return [from, to];
  }

  #atom(): Part {
    const start = this.#at;
    const character = this.#character();
    switch (character) {
      case '(':
        return this.#group();
      case '[':
        return { kind: 'set', set: this.#class() };
      case '\\':
        return this.#escape();
      case '.':
        return { kind: 'set', set: ANY };
      case '^':
        return { kind: 'start' };
      case '$':
        return { kind: 'end' };
      case '*':
      case '+':
      case '?':
        throw new RefusedSyntax(`has "${character}" at ${start + 1} with nothing to repeat`);
      default:
        return this.#literal(character);
    }
  }

  #group(): Part {
    if (++this.#depth > MAX_DEPTH)
      throw new RefusedSyntax(`has more than ${MAX_DEPTH} groups in one another`);
    const [ignoredCase, wasUngreedy] = [this.#ignoresCase, this.#isUngreedy];
    let number = 0;
    if (this.#takes('?')) {
      const flags = /^([a-zA-Z]*)(-[a-zA-Z]*)?([:)])/.exec(this.#text.slice(this.#at, this.#at + 16));
      const named = /^(?:P?<)([A-Za-z_]\w*)>/.exec(this.#text.slice(this.#at));
      if (flags !== null) {
        const [all, on = '', off = '', end] = flags;
        const unknown = /[^imsU-]/.exec(on + off);
        if (unknown !== null)
          throw new RefusedSyntax(`has the flag "${unknown[0]}"; i, m, s and U are allowed`);
        this.#at += all.length;
        if (on.includes('i')) this.#ignoresCase = true;
        if (off.includes('i')) this.#ignoresCase = false;
        if (on.includes('U')) this.#isUngreedy = true;
        if (off.includes('U')) this.#isUngreedy = false;
        if (end === ')') {
          this.#depth--;
          return EMPTY;
        }
      } else if (named !== null) {
        this.#at += named[0].length;
        number = ++this.#groups;
      } else
        throw new RefusedSyntax(
          `has "(?${this.#next()}": look-around and other groups that RE2 does not have`,
        );
    } else number = ++this.#groups;
    const part = this.#alternatives();
    if (!this.#takes(')')) throw new RefusedSyntax('has "(" without ")"');
    this.#depth--;
    [this.#ignoresCase, this.#isUngreedy] = [ignoredCase, wasUngreedy];
    return number === 0 ? part : { kind: 'group', number, part };
  }

  #escape(): Part {
    const character = this.#character();
    if (character === 'b') return { kind: 'boundary' };
    if (character === 'B') return { kind: 'no-boundary' };
    if (character === 'A') return { kind: 'start' };
    if (character === 'z') return { kind: 'end' };
    return this.#cased(this.#escaped(character));
  }

  /** Behind a backslash, also in a class. */
  #escaped(character: string): Uint8Array {
    const known = CLASSES[character.toLowerCase()];
    if (known !== undefined) return character === character.toLowerCase() ? known : inverse(known);
    const control = CONTROLS[character];
    if (control !== undefined) return setOf([control, control]);
    if (character === 'x') return byteSet(this.#hexadecimal());
    if (/^[1-9]$/.test(character))
      throw new RefusedSyntax(`has "\\${character}", a reference to a group, which RE2 does not have`);
    if (character === '') throw new RefusedSyntax('ends with a backslash');
    if (/^[A-Za-z0-9]$/.test(character) || character > '\x7f')
      throw new RefusedSyntax(`has "\\${character}", which is not allowed`);
    return byteSet(character.charCodeAt(0));
  }

  #hexadecimal(): number {
    const [all, braced, plain] =
      /^(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{2}))/.exec(this.#text.slice(this.#at, this.#at + 8)) ?? [];
    const code = Number.parseInt(braced ?? plain ?? '', 16);
    if (all === undefined || code > 127)
      throw new RefusedSyntax('has "\\x" without the number of an ASCII character');
    this.#at += all.length;
    return code;
  }

  #class(): Uint8Array {
    const set = new Uint8Array(BYTES);
    const isInverse = this.#takes('^');
    for (let isFirst = true; isFirst || this.#next() !== ']'; isFirst = false) {
      if (this.#next() === '') throw new RefusedSyntax('has "[" without "]"');
      const item = this.#item();
      const isRange = this.#next() === '-' && !['', ']'].includes(this.#text[this.#at + 1] ?? '');
      if (typeof item !== 'number') add(set, item);
      else if (!isRange) set[item] = 1;
      else {
        this.#at++;
        const last = this.#item();
        if (typeof last !== 'number')
          throw new RefusedSyntax('has a range of a class that ends with another class');
        if (last < item) throw new RefusedSyntax('has a range of a class whose ends are in the wrong order');
        for (let byte = item; byte <= last; byte++) set[byte] = 1;
      }
    }
    this.#at++;
    if (this.#ignoresCase) addOtherCase(set);
    return isInverse ? inverse(set) : set;
  }

  /** A byte, or a class in the class. */
  #item(): number | Uint8Array {
    const [posix, sign, name] = /^\[:(\^?)([a-z]+):\]/.exec(this.#text.slice(this.#at, this.#at + 16)) ?? [];
    if (posix !== undefined) {
      const set = POSIX[name ?? ''];
      if (set === undefined) throw new RefusedSyntax(`has the class "${posix}", which RE2 does not have`);
      this.#at += posix.length;
      return sign === '^' ? inverse(set) : set;
    }
    const character = this.#character();
    if (character > '\x7f')
      throw new RefusedSyntax(`has "${character}" in a class: only ASCII is allowed there`);
    if (character !== '\\') return character.charCodeAt(0);
    const next = this.#character();
    if (next === 'b') throw new RefusedSyntax('has "\\b" in a class');
    const set = this.#escaped(next);
    const only = set.indexOf(1);
    return set.indexOf(1, only + 1) === -1 ? only : set;
  }

  #literal(character: string): Part {
    const parts = Array.from(Buffer.from(character), (byte): Part => this.#cased(byteSet(byte)));
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : { kind: 'sequence', parts };
  }

  #cased(set: Uint8Array): Part & { readonly kind: 'set' } {
    if (!this.#ignoresCase) return { kind: 'set', set };
    const both = Uint8Array.from(set);
    addOtherCase(both);
    return { kind: 'set', set: both };
  }

  #next(): string {
    return this.#text[this.#at] ?? '';
  }

  #takes(character: string): boolean {
    if (this.#next() !== character) return false;
    this.#at++;
    return true;
  }

  /** A whole character of Unicode; '' at the end. */
  #character(): string {
    const code = this.#text.codePointAt(this.#at);
    if (code === undefined) return '';
    const character = String.fromCodePoint(code);
    this.#at += character.length;
    return character;
  }
}

function setOf(...ranges: readonly (readonly [number, number])[]): Uint8Array {
  const set = new Uint8Array(BYTES);
  for (const [from, to] of ranges) set.fill(1, from, to + 1);
  return set;
}

function byteSet(byte: number): Uint8Array {
  return setOf([byte, byte]);
}

function inverse(set: Uint8Array): Uint8Array {
  return set.map((each) => 1 - each);
}

function add(set: Uint8Array, more: Uint8Array): void {
  for (const [byte, is] of more.entries()) if (is === 1) set[byte] = 1;
}

/** ASCII letters only. */
function addOtherCase(set: Uint8Array): void {
  for (let upper = 0x41; upper <= 0x5a; upper++)
    if (set[upper] === 1 || set[upper + 32] === 1) set[upper] = set[upper + 32] = 1;
}
