// What the groups of an author's regular expression take of a text, as a program of instructions that are all tried at once for
// each byte: in time proportional to the text, whatever the expression is. templates/haproxy/groups.lua runs the same programs.
// Pure. Why: docs/design/decisions/0072-expressions-as-tables.md

import { type Part, parseExpression, RefusedSyntax, WORD } from './syntax.ts';

/**
 * `cRANGES` takes a byte, `sONE,OTHER` tries both and prefers the first, `jTO` continues there, `gSLOT` notes the place, `a` takes
 * all the rest, `^`, `$`, `b` and `B` ask where the text is, and `m` is the end. Places of instructions begin with 1; a group has
 * the slots `2 * NUMBER` and `2 * NUMBER + 1`.
 */
export type GroupProgram = readonly string[];

const MAX_INSTRUCTIONS = 300;
const BYTES = 256;

/** `$1` to `$9`. */
const REFERENCES = /\$(\d)/g;

class TooLarge extends Error {}

/** The numbers of groups in a text such as `/base/$2`. */
export function referencesIn(template: string): readonly number[] {
  return [...template.matchAll(REFERENCES)].map(([, number]) => Number(number));
}

/** For the groups of the template; a text: why there is none, the end of a sentence that begins with the expression. */
export function groupProgram(pattern: string, template: string): GroupProgram | string {
  const used = new Set(referencesIn(template));
  const compiler = new Compiler(used);
  try {
    compiler.whole(parseExpression(pattern));
  } catch (error) {
    if (error instanceof TooLarge) return 'is too large for its groups; repeat less';
    if (error instanceof RefusedSyntax) return `is not a regular expression of RE2: it ${error.message}`;
    throw error;
  }
  const missing = [...used].find((number) => number === 0 || number > compiler.groups);
  return missing === undefined ? compiler.code : `has no group $${missing}`;
}

/** The template with what its groups take of the text, which begins as the expression; undefined if it does not. */
export function withGroups(pattern: string, template: string, text: string): string | undefined {
  const program = groupProgram(pattern, template);
  if (typeof program === 'string') return undefined;
  const bytes = Buffer.from(text);
  const slots = run(program, bytes);
  return slots && template.replace(REFERENCES, (_, number: string) => partOf(bytes, slots, Number(number)));
}

/** A group that took no part in the match is empty. */
function partOf(bytes: Buffer, slots: Slots, group: number): string {
  const [from, to] = [slots.get(2 * group), slots.get(2 * group + 1)];
  return from === undefined || to === undefined ? '' : bytes.subarray(from, to).toString();
}

class Compiler {
  readonly code: string[] = [];
  groups = 0;
  readonly #used: ReadonlySet<number>;

  constructor(used: ReadonlySet<number>) {
    this.#used = used;
  }

  whole(part: Part): void {
    this.#part(part, true);
    this.#add('m');
  }

  /** `isLast`: nothing follows. */
  #part(part: Part, isLast: boolean): void {
    switch (part.kind) {
      case 'set':
        this.#add(`c${rangesText(part.set)}`);
        break;
      case 'sequence':
        for (const [at, each] of part.parts.entries())
          this.#part(each, isLast && at === part.parts.length - 1);
        break;
      case 'alternatives':
        this.#alternatives(part.parts, isLast);
        break;
      case 'repeat':
        this.#repeated(part, isLast);
        break;
      case 'group':
        this.#group(part.number, part.part, isLast);
        break;
      default:
        this.#add({ start: '^', end: '$', boundary: 'b', 'no-boundary': 'B' }[part.kind]);
    }
  }

  #alternatives(parts: readonly Part[], isLast: boolean): void {
    const jumps: number[] = [];
    for (const [at, each] of parts.entries()) {
      if (at === parts.length - 1) this.#part(each, isLast);
      else {
        const split = this.#add('s');
        this.#part(each, isLast);
        jumps.push(this.#add('j'));
        this.#set(split, `s${split + 1},${this.#next}`);
      }
    }
    for (const jump of jumps) this.#set(jump, `j${this.#next}`);
  }

  #group(number: number, part: Part, isLast: boolean): void {
    this.groups = Math.max(this.groups, number);
    const isUsed = this.#used.has(number);
    if (isUsed) this.#add(`g${2 * number}`);
    this.#part(part, isLast);
    if (isUsed) this.#add(`g${2 * number + 1}`);
  }

  #repeated({ part, least, most, isLazy }: Part & { readonly kind: 'repeat' }, isLast: boolean): void {
    for (let at = 0; at < least; at++) this.#part(part, false);
    const ways = (one: number, other: number): string => (isLazy ? `s${other},${one}` : `s${one},${other}`);
    if (most !== undefined) {
      const splits: number[] = [];
      for (let at = least; at < most; at++) {
        splits.push(this.#add('s'));
        this.#part(part, false);
      }
      for (const split of splits) this.#set(split, ways(split + 1, this.#next));
    } else if (isLast && !isLazy && part.kind === 'set' && part.set.every((is) => is === 1)) this.#add('a');
    else {
      const split = this.#add('s');
      this.#part(part, false);
      this.#add(`j${split}`);
      this.#set(split, ways(split + 1, this.#next));
    }
  }

  /** The place of the instruction. */
  #add(instruction: string): number {
    if (this.code.length >= MAX_INSTRUCTIONS) throw new TooLarge();
    return this.code.push(instruction);
  }

  #set(place: number, instruction: string): void {
    this.code[place - 1] = instruction;
  }

  get #next(): number {
    return this.code.length + 1;
  }
}

/** `47,97-122`. */
function rangesText(set: Uint8Array): string {
  const ranges: string[] = [];
  for (let from = 0; from < BYTES; from++) {
    if (set[from] !== 1) continue;
    let to = from;
    while (to < BYTES - 1 && set[to + 1] === 1) to++;
    ranges.push(from === to ? `${from}` : `${from}-${to}`);
    from = to;
  }
  return ranges.join();
}

/** Slot → place in the text. */
type Slots = ReadonlyMap<number, number>;

/** What is tried at one place of the text, the preferred first. */
interface Tries {
  readonly threads: { readonly place: number; readonly slots: Slots }[];
  readonly seen: Set<number>;
  matched: Slots | undefined;
}

function run(program: GroupProgram, bytes: Buffer): Slots | undefined {
  let tries: Tries = { threads: [], seen: new Set(), matched: undefined };
  follow(program, tries, { place: 1, slots: new Map() }, bytes, 0);
  let { matched } = tries;
  for (let at = 0; at < bytes.length && tries.threads.length > 0; at++) {
    const next: Tries = { threads: [], seen: new Set(), matched: undefined };
    for (const { place, slots } of tries.threads) {
      if (next.matched !== undefined) break;
      if (takes(program[place - 1] ?? '', bytes[at] ?? 0))
        follow(program, next, { place: place + 1, slots }, bytes, at + 1);
    }
    matched = next.matched ?? matched;
    tries = next;
  }
  return matched;
}

/** To the instructions that take a byte. What comes after a match is preferred less, and left out. */
function follow(
  program: GroupProgram,
  tries: Tries,
  { place, slots }: Tries['threads'][number],
  bytes: Buffer,
  at: number,
): void {
  if (tries.matched !== undefined || tries.seen.has(place)) return;
  tries.seen.add(place);
  const instruction = program[place - 1] ?? '';
  const to = (next: number, noted = slots, place = at): void =>
    follow(program, tries, { place: next, slots: noted }, bytes, place);
  const numbers = instruction.slice(1).split(',').map(Number);
  switch (instruction[0]) {
    case 'c':
      tries.threads.push({ place, slots });
      break;
    case 's':
      for (const each of numbers) to(each);
      break;
    case 'j':
      to(numbers[0] ?? 0);
      break;
    case 'g':
      to(place + 1, new Map([...slots, [numbers[0] ?? 0, at]]));
      break;
    case 'a':
      to(place + 1, slots, bytes.length);
      break;
    case 'm':
      tries.matched = slots;
      break;
    default:
      if (isThere(instruction, bytes, at)) to(place + 1);
  }
}

function isThere(instruction: string, bytes: Buffer, at: number): boolean {
  const isWord = (place: number): boolean => WORD[bytes[place] ?? 0] === 1;
  switch (instruction) {
    case '^':
      return at === 0;
    case '$':
      return at === bytes.length;
    case 'b':
      return isWord(at - 1) !== isWord(at);
    default:
      return isWord(at - 1) === isWord(at);
  }
}

function takes(instruction: string, byte: number): boolean {
  return instruction
    .slice(1)
    .split(',')
    .some((range) => {
      const [from = Number.NaN, to = from] = range.split('-').map(Number);
      return byte >= from && byte <= to;
    });
}
