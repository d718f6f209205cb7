// Makes a deterministic automaton of a regular expression: a table that gives the next state for each byte, so that to match
// takes one step for each byte of the text, whatever the expression and the text are. Expressions whose automaton is large are
// refused. Pure.

import { type Part, parseExpression, RefusedSyntax, WORD } from './syntax.ts';

export interface Automaton {
  /** Byte → class of bytes that no state tells apart; 256 numbers. */
  readonly classes: readonly number[];
  /** State → class → next state; -1: no text that continues like this matches. The first state is 0. */
  readonly next: readonly (readonly number[])[];
  /** States in which the text matches if it ends. */
  readonly accepting: readonly boolean[];
}

/** How the text must be the expression: wholly, or from its start on. */
export type Anchoring = 'whole' | 'start';

const MAX_STATES = 400;
/** The most nodes of an expression with its counts written out. */
const MAX_NODES = 2_000;
/** Nodes looked at while the table is made: some milliseconds. */
export const MAX_WORK = 30_000;
/** To see whether a node takes a byte is cheap. */
const NODES_PER_LOOK = 8;
const DEAD = -1;
const BYTES = 256;
const TOO_LARGE = `needs more than ${MAX_STATES} states, or much work; repeat less, or have fewer alternatives`;

/** `made`: the automaton, or why there is none, the end of a sentence that begins with the expression. `work`: what it took. */
export function automatonOf(
  text: string,
  anchoring: Anchoring,
): { readonly result: Automaton | string; readonly work: number } {
  const builder = new Builder();
  try {
    return { result: builder.build(parseExpression(text), anchoring), work: builder.work };
  } catch (error) {
    if (error instanceof TooLarge) return { result: error.message, work: builder.work };
    if (error instanceof RefusedSyntax)
      return { result: `is not a regular expression of RE2: it ${error.message}`, work: builder.work };
    throw error;
  }
}

export function matches({ classes, next, accepting }: Automaton, text: string): boolean {
  let state = 0;
  for (const byte of Buffer.from(text)) {
    state = next[state]?.[classes[byte] ?? 0] ?? DEAD;
    if (state === DEAD) return false;
  }
  return accepting[state] === true;
}

/** A node of the nondeterministic automaton. Those that match no byte lead on at once, some only at certain places. */
type Node =
  | { readonly kind: 'set'; readonly set: Uint8Array; readonly to: number }
  | { readonly kind: 'split'; readonly to: number[] }
  | { readonly kind: 'start' | 'end' | 'boundary' | 'no-boundary'; readonly to: number }
  | { readonly kind: 'accept' };

/** Between which bytes the text is: what anchors ask for. */
interface Between {
  readonly isStart: boolean;
  readonly isAfterWord: boolean;
  readonly isEnd: boolean;
  readonly isBeforeWord: boolean;
}

interface State {
  readonly nodes: readonly number[];
  readonly isStart: boolean;
  readonly isAfterWord: boolean;
}

class TooLarge extends Error {}

class Builder {
  /** Nodes looked at. */
  work = 0;
  readonly #nodes: Node[] = [];
  /** Nodes behind which any text matches. */
  readonly #sinks = new Set<number>();
  /** Node → the last look at a state that has reached it. */
  readonly #visited = new Int32Array(MAX_NODES);
  #turn = 0;
  #asksWords = false;

  build(part: Part, anchoring: Anchoring): Automaton {
    const accept = this.#add({ kind: 'accept' });
    const rest: Part = { kind: 'repeat', part: ANY, least: 0, most: undefined, isLazy: false };
    const first = this.#nodeOf(part, anchoring === 'whole' ? accept : this.#nodeOf(rest, accept));
    this.#asksWords = this.#nodes.some(({ kind }) => kind === 'boundary' || kind === 'no-boundary');
    const { classes, samples } = this.#classes();
    const states: State[] = [];
    const ids = new Map<string, number>();
    const idOf = (state: State): number => {
      const key = `${state.isStart} ${state.isAfterWord} ${state.nodes.join()}`;
      let id = ids.get(key);
      if (id === undefined) {
        id = states.push(state) - 1;
        if (states.length > MAX_STATES) throw new TooLarge(TOO_LARGE);
        ids.set(key, id);
      }
      return id;
    };
    idOf({ nodes: [first], isStart: true, isAfterWord: false });
    const next: number[][] = [];
    const accepting: boolean[] = [];
    for (const state of states) {
      accepting.push(this.#reached(state, undefined).some((id) => this.#nodes[id]?.kind === 'accept'));
      let reached = this.#reached(state, samples[0]);
      next.push(
        samples.map((byte) => {
          if (this.#asksWords) reached = this.#reached(state, byte);
          const nodes = this.#step(reached, byte);
          const isAfterWord = this.#asksWords && WORD[byte] === 1;
          return nodes.length === 0 ? DEAD : idOf({ nodes, isStart: false, isAfterWord });
        }),
      );
    }
    return { classes, next, accepting };
  }

  /** Sorted and without doubles, so that equal states are the same. */
  #step(reached: readonly number[], byte: number): readonly number[] {
    this.work += reached.length / NODES_PER_LOOK;
    const to = new Set<number>();
    for (const id of reached) {
      const node = this.#nodes[id];
      if (node?.kind !== 'set' || node.set[byte] !== 1) continue;
      if (this.#sinks.has(node.to)) return [node.to];
      to.add(node.to);
    }
    return [...to].sort((a, b) => a - b);
  }

  /** The nodes that a state leads to before the next byte; undefined at the end of the text. */
  #reached({ nodes, isStart, isAfterWord }: State, byte: number | undefined): readonly number[] {
    const isBeforeWord = byte !== undefined && WORD[byte] === 1;
    const between = { isStart, isAfterWord, isEnd: byte === undefined, isBeforeWord };
    const turn = ++this.#turn;
    const reached: number[] = [];
    const reach = (id: number): void => {
      if (this.#visited[id] === turn) return;
      this.#visited[id] = turn;
      reached.push(id);
    };
    for (const id of nodes) reach(id);
    for (let at = 0; at < reached.length; at++) {
      const node = this.#nodes[reached[at] ?? 0];
      if (node === undefined || node.kind === 'set' || node.kind === 'accept') continue;
      if (node.kind === 'split') for (const to of node.to) reach(to);
      else if (isThere(node.kind, between)) reach(node.to);
    }
    this.work += reached.length;
    if (this.work > MAX_WORK) throw new TooLarge(TOO_LARGE);
    return reached;
  }

  /** The node that begins a part and leads to `to` behind it. */
  #nodeOf(part: Part, to: number): number {
    switch (part.kind) {
      case 'set':
        return this.#add({ kind: 'set', set: part.set, to });
      case 'sequence':
        return part.parts.reduceRight((next, each) => this.#nodeOf(each, next), to);
      case 'alternatives':
        return this.#add({ kind: 'split', to: part.parts.map((each) => this.#nodeOf(each, to)) });
      case 'repeat':
        return this.#repeated(part, to);
      case 'group':
        return this.#nodeOf(part.part, to);
      default:
        return this.#add({ kind: part.kind, to });
    }
  }

  #repeated({ part, least, most }: Part & { readonly kind: 'repeat' }, to: number): number {
    let next = to;
    if (most === undefined) {
      const again: number[] = [to];
      next = this.#add({ kind: 'split', to: again });
      again.push(this.#nodeOf(part, next));
      if (this.#nodes[to]?.kind === 'accept' && part.kind === 'set' && part.set.every((is) => is === 1))
        this.#sinks.add(next);
    } else
      for (let at = least; at < most; at++)
        next = this.#add({ kind: 'split', to: [to, this.#nodeOf(part, next)] });
    for (let at = 0; at < least; at++) next = this.#nodeOf(part, next);
    return next;
  }

  #add(node: Node): number {
    this.work++;
    if (this.#nodes.length >= MAX_NODES) throw new TooLarge(TOO_LARGE);
    return this.#nodes.push(node) - 1;
  }

  /** Bytes that all sets have alike are one class, with one of them as its sample. */
  #classes(): { readonly classes: readonly number[]; readonly samples: readonly number[] } {
    const sets = [...new Set(this.#nodes.flatMap((node) => (node.kind === 'set' ? [node.set] : [])))];
    if (this.#asksWords) sets.push(WORD);
    const ids = new Map<string, number>();
    const samples: number[] = [];
    const classes = Array.from({ length: BYTES }, (_, byte) => {
      const key = sets.map((set) => set[byte]).join('');
      const id = ids.get(key) ?? samples.push(byte) - 1;
      ids.set(key, id);
      return id;
    });
    return { classes, samples };
  }
}

const ANY: Part = { kind: 'set', set: new Uint8Array(BYTES).fill(1) };

function isThere(
  kind: 'start' | 'end' | 'boundary' | 'no-boundary',
  { isStart, isAfterWord, isEnd, isBeforeWord }: Between,
): boolean {
  switch (kind) {
    case 'start':
      return isStart;
    case 'end':
      return isEnd;
    case 'boundary':
      return isAfterWord !== isBeforeWord;
    case 'no-boundary':
      return isAfterWord === isBeforeWord;
  }
}
