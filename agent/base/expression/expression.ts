// A regular expression of an author as the agent and HAProxy's Lua match it: by an automaton, in one step for each byte, so
// that no text of a client and no expression of an author can hold a thread. Pure, with a cache.
// Why: docs/design/decisions/0072-expressions-as-tables.md

import { type Anchoring, type Automaton, automatonOf, MAX_WORK, matches } from './automaton.ts';

export interface Expression {
  /** For a row of a map (templates/haproxy/routes.lua): digits and `.,|+-` only. */
  readonly text: string;
}

const MAX_CHARACTERS = 512;
/** HAProxy's buffer has 16 KB for a command, and for a line of a file. */
const MAX_TEXT = 8_000;
/** In all that are known, by which they are emptied. */
const MAX_KNOWN_TEXT = 8_000_000;

interface Known {
  /** A text: why there is none, the end of a sentence that begins with the expression. */
  readonly result: Expression | string;
  readonly work: number;
}

/** By anchoring and pattern; emptied when it is full, because routes come and go. */
const known = new Map<string, Known>();
let knownText = 0;

/** The expressions of one object. What it takes to read them is limited, because all other objects wait. */
export class Expressions {
  /** Why the expressions that were too much are refused. */
  static readonly TOO_MUCH = 'is too much together with the other regular expressions of the object';
  #work = 0;

  /** `whole`: of the whole text; `start`: from its start on. A text: why there is none. */
  of(pattern: string, anchoring: Anchoring): Expression | string {
    if (this.#work > MAX_WORK) return Expressions.TOO_MUCH;
    const { result, work } = read(pattern, anchoring);
    this.#work += work;
    return result;
  }
}

/** The expression of an object's text. */
export function expressionOf(pattern: string, anchoring: Anchoring): Expression | string {
  return read(pattern, anchoring).result;
}

export function isMatch(pattern: string, anchoring: Anchoring, text: string): boolean {
  const { result } = automatonOf(pattern, anchoring);
  return typeof result !== 'string' && matches(result, text);
}

function read(pattern: string, anchoring: Anchoring): Known {
  const key = `${anchoring} ${pattern}`;
  const before = known.get(key);
  if (before !== undefined) return before;
  const outcome = make(pattern, anchoring);
  if (knownText > MAX_KNOWN_TEXT) {
    known.clear();
    knownText = 0;
  }
  known.set(key, outcome);
  knownText +=
    key.length + (typeof outcome.result === 'string' ? outcome.result : outcome.result.text).length;
  return outcome;
}

const ANY_CASE = '(?i)';

/** The expression without regard to upper and lower case. */
export function inAnyCase(pattern: string): string {
  return ANY_CASE + pattern;
}

/** The characters that its author wrote. */
export function lengthOf(pattern: string): number {
  return pattern.startsWith(ANY_CASE) ? pattern.length - ANY_CASE.length : pattern.length;
}

/** An expression for the start of all paths that an expression could match that cannot be read. */
export function literalStart(pattern: string): string {
  if (hasAlternatives(pattern)) return '';
  const [, text = '', next = ''] = /^\^?([A-Za-z0-9/_~%-]*)(.?)/su.exec(pattern) ?? [];
  return '*?{'.includes(next) && next !== '' ? text.slice(0, -1) : text;
}

/** Outside groups and classes. */
function hasAlternatives(pattern: string): boolean {
  let depth = 0;
  let isInClass = false;
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at];
    if (character === '\\') at++;
    else if (isInClass) isInClass = character !== ']';
    else if (character === '[') isInClass = true;
    else if (character === '(') depth++;
    else if (character === ')') depth--;
    else if (character === '|' && depth === 0) return true;
  }
  return false;
}

function make(pattern: string, anchoring: Anchoring): Known {
  if (lengthOf(pattern) > MAX_CHARACTERS)
    return {
      result: `is longer than ${MAX_CHARACTERS} characters, the most of a regular expression`,
      work: 0,
    };
  const { result, work } = automatonOf(pattern, anchoring);
  if (typeof result === 'string') return { result, work };
  const text = automatonText(result);
  return text.length > MAX_TEXT
    ? { result: 'is too large; repeat less, or have fewer alternatives', work }
    : { result: { text }, work };
}

/**
 * `CLASSES|STATE|STATE...`: of the classes `COUNT.CLASS,...` for as many bytes after one another, of a state `+` if the text
 * may end there, otherwise `-`, then the next state of most classes and of the others as `CLASS.STATE`; none: no text matches.
 */
function automatonText({ classes, next, accepting }: Automaton): string {
  const runs: [count: number, byteClass: number][] = [];
  for (const each of classes) {
    const last = runs.at(-1);
    if (last?.[1] === each) last[0]++;
    else runs.push([1, each]);
  }
  const states = next.map((row, state) => {
    const usual = mostOf(row);
    const others = row.flatMap((to, byteClass) => (to === usual ? [] : [`${byteClass}.${nameOf(to)}`]));
    return `${accepting[state] ? '+' : '-'}${[nameOf(usual), ...others].join()}`;
  });
  return [runs.map((run) => run.join('.')).join(), ...states].join('|');
}

function nameOf(state: number): string {
  return state < 0 ? '' : String(state);
}

function mostOf(row: readonly number[]): number {
  const counts = new Map<number, number>();
  for (const to of row) counts.set(to, (counts.get(to) ?? 0) + 1);
  const [[most] = [-1]] = [...counts].sort(([, a], [, b]) => b - a);
  return most;
}
