// Validates the shape of what users write: rules for texts, numbers, lists and mappings are combined to schemas, which give
// the valid value or every mistake with its path. Fast for valid input, because every object of the cluster passes through
// it at the start. Pure. The message of a rule begins with "is not", so that it follows the value: `70000 is not a whole
// number ...`.

import { quote } from './quote.ts';

export interface ValidationProblem {
  /** From the outermost value inwards: names of fields, and indexes of lists from 0. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** Adds its faults, each with the path from `value`; the result is meaningless if there are any. */
type Read<T> = (value: unknown, faults: ValidationProblem[]) => T;

/** Adds a fault; `path` starts from the value that the function got. */
type Refuse = (path: ValidationProblem['path'], message: string) => void;

/** The schema of a rule in a CustomResourceDefinition (OpenAPI 3.0). */
type OpenApi = Readonly<Record<string, unknown>>;

export type Judgement<T> =
  | { readonly success: true; readonly data: T }
  | { readonly success: false; readonly faults: readonly ValidationProblem[] };

/** The type of the values that a rule gives. */
export type Valid<R> = R extends Rule<infer T> ? T : never;

export class Rule<T> {
  readonly read: Read<T>;
  readonly openApi: OpenApi;
  readonly isOptional: boolean;

  constructor(read: Read<T>, openApi: OpenApi = {}, isOptional = false) {
    this.read = read;
    this.openApi = openApi;
    this.isOptional = isOptional;
  }

  judge(value: unknown): Judgement<T> {
    const faults: ValidationProblem[] = [];
    const data = this.read(value, faults);
    return faults.length === 0 ? { success: true, data } : { success: false, faults };
  }

  /** For the agent's own files, not for users' input. Throws a TypeError with the first fault. */
  parse(value: unknown): T {
    const judgement = this.judge(value);
    if (judgement.success) return judgement.data;
    const [{ path, message } = { path: [], message: '' }] = judgement.faults;
    throw new TypeError(`${path.join('.')} ${message}`);
  }

  /** Accepts undefined and null, too, and gives undefined for them. */
  nullish(): Rule<T | undefined> {
    return new Rule(
      (value, faults) => (value === undefined || value === null ? undefined : this.read(value, faults)),
      this.openApi,
      true,
    );
  }

  /** Accepts undefined and null, too, and gives `value` for them. */
  or(value: T): Rule<T> {
    return this.nullish().transform((given) => given ?? value);
  }

  /** Gives `value` for undefined. */
  default(value: T): Rule<T> {
    return new Rule(
      (given, faults) => (given === undefined ? value : this.read(given, faults)),
      this.openApi,
      true,
    );
  }

  /** Converts a valid value, or refuses it. */
  transform<U>(make: (value: T, refuse: Refuse) => U): Rule<U> {
    const read: Read<U> = (value, faults) => {
      const before = faults.length;
      const right = this.read(value, faults);
      if (faults.length > before) return right as unknown as U;
      return make(right, (path, message) => faults.push({ path, message }));
    };
    return new Rule(read, this.openApi, this.isOptional);
  }

  /** Checks a valid value further. */
  refine(check: (value: T, refuse: Refuse) => void): Rule<T> {
    return this.transform((value, refuse) => {
      check(value, refuse);
      return value;
    });
  }

  /** Adds to the schema. */
  meta(openApi: OpenApi): Rule<T> {
    return new Rule(this.read, { ...this.openApi, ...openApi }, this.isOptional);
  }
}

/** A rule for a scalar; `read` gives undefined to refuse a value. */
function leaf<T>(read: (value: unknown) => T | undefined, not: string, openApi?: OpenApi): Rule<T> {
  return new Rule((value, faults) => {
    const right = read(value);
    if (right === undefined) faults.push({ path: [], message: not });
    return right as T;
  }, openApi);
}

/** A text that `check` accepts; `not` is the fault of all others: `is not a DNS label`. */
export function textRule(check: (text: string) => boolean, not: string): Rule<string> {
  return leaf((value) => (typeof value === 'string' && check(value) ? value : undefined), not, {
    type: 'string',
  });
}

/** A text that `read` converts; undefined from `read` refuses it. */
export function textReader<T>(read: (text: string) => T | undefined, not: string): Rule<T> {
  return leaf((value) => (typeof value === 'string' ? read(value) : undefined), not);
}

export function string(): Rule<string> {
  return textRule(() => true, 'is not a text');
}

export function number(): Rule<number> {
  return leaf((value) => (Number.isFinite(value) ? (value as number) : undefined), 'is not a number');
}

export function wholeNumber(from: number, to: number): Rule<number> {
  const not = `is not a whole number from ${from} to ${to}`;
  const isRight = (value: unknown): value is number =>
    Number.isInteger(value) && (value as number) >= from && (value as number) <= to;
  const openApi = { type: 'integer', minimum: from, maximum: to };
  return leaf((value) => (isRight(value) ? value : undefined), not, openApi);
}

export function boolean(): Rule<boolean> {
  return leaf((value) => (typeof value === 'boolean' ? value : undefined), 'is not true or false', {
    type: 'boolean',
  });
}

export function oneOf<const T extends string>(...words: readonly T[]): Rule<T> {
  const not = `is not one of ${words.join(', ')}`;
  // The rule's own string, not the equal one that was read, so that thousands of objects share it.
  return leaf((value) => words.find((word) => word === value), not, { type: 'string', enum: words });
}

export function listOf<T>(item: Rule<T>): Rule<T[]> {
  const read: Read<T[]> = (value, faults) => {
    if (!Array.isArray(value)) {
      faults.push({ path: [], message: 'is not a list' });
      return [];
    }
    // Exact length, because V8 gives a list that is pushed to room for 17 items.
    const list = new Array<T>(value.length);
    for (let at = 0; at < value.length; at++) {
      const before = faults.length;
      list[at] = item.read(value[at], faults);
      if (faults.length > before) prefixPaths(faults, before, at);
    }
    return list;
  };
  return new Rule(read, { type: 'array', items: item.openApi });
}

/** A list of at least one item; `what` names an item. */
export function someOf<T>(item: Rule<T>, what: string): Rule<T[]> {
  return listOf(item).refine((list, refuse) => {
    if (list.length === 0) refuse([], `is not a list of at least one ${what}`);
  });
}

type Shape = Readonly<Record<string, Rule<unknown>>>;

/** Ignores fields that the shape does not have. */
export function object<S extends Shape>(
  shape: S,
): Rule<{ [K in keyof S]: Valid<S[K]> }> & { readonly keys: readonly string[] } {
  const fields = Object.entries(shape);
  const read: Read<{ [K in keyof S]: Valid<S[K]> }> = (value, faults) => {
    const mapping: Record<string, unknown> = {};
    if (isMapping(value)) {
      for (const [name, rule] of fields) {
        const before = faults.length;
        mapping[name] = rule.read(value[name], faults);
        if (faults.length > before) prefixPaths(faults, before, name);
      }
    } else faults.push({ path: [], message: 'is not a mapping' });
    return mapping as { [K in keyof S]: Valid<S[K]> };
  };
  const required = fields.filter(([, { isOptional }]) => !isOptional).map(([name]) => name);
  const openApi = {
    type: 'object',
    properties: Object.fromEntries(fields.map(([name, rule]) => [name, rule.openApi])),
    ...(required.length === 0 ? {} : { required }),
  };
  return Object.assign(new Rule(read, openApi), { keys: fields.map(([name]) => name) });
}

/** A mapping from names to texts, such as labels and annotations; null is '', as in Go. */
export function textsByName(
  name: { readonly check: (text: string) => boolean; readonly not: string },
  value: { readonly check: (text: string) => boolean; readonly not: string },
): Rule<Readonly<Record<string, string>>> {
  const read: Read<Readonly<Record<string, string>>> = (input, faults) => {
    const texts: Record<string, string> = {};
    if (!isMapping(input)) faults.push({ path: [], message: 'is not a mapping' });
    else
      for (const [key, given] of Object.entries(input)) {
        const one = given ?? '';
        if (!name.check(key)) faults.push({ path: [], message: `${quote(key)} ${name.not}` });
        else if (typeof one !== 'string' || !value.check(one))
          faults.push({ path: [key], message: value.not });
        else texts[key] = one;
      }
    return texts;
  };
  return new Rule(read, { type: 'object', additionalProperties: { type: 'string' } });
}

/** True for a mapping of YAML or JSON. */
export function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Puts `step` in front of the paths of the faults from `first` on. */
function prefixPaths(faults: ValidationProblem[], first: number, step: string | number): void {
  for (let at = first; at < faults.length; at++) {
    const { path, message } = faults[at] as ValidationProblem;
    faults[at] = { path: [step, ...path], message };
  }
}

/** The first three faults in one line: `spec.ports[0].port: 70000 is not a whole number from 1 to 65535; ...`. */
export function faultsOf(faults: readonly ValidationProblem[], input: unknown): string {
  const shown = faults.slice(0, 3).map((fault) => faultOf(fault, input));
  const more = faults.length - shown.length;
  return `${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}

function faultOf({ path, message }: ValidationProblem, input: unknown): string {
  const place = path.length === 0 ? '' : `${pathText(path)}: `;
  if (!message.startsWith('is not ')) return `${place}${message}`;
  const value = valueAt(input, path);
  if (value === undefined) return `${place}missing, must be ${message.slice('is not '.length)}`;
  return `${place}${shownValue(value)} ${message}`;
}

/** `spec.ports[0].port`. */
export function pathText(path: ValidationProblem['path']): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[A-Za-z][A-Za-z0-9]{0,59}$/.test(step)) text += `${text === '' ? '' : '.'}${step}`;
    else text += `[${quote(step)}]`;
  }
  return text;
}

function valueAt(input: unknown, path: ValidationProblem['path']): unknown {
  let value = input;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[step];
  }
  return value;
}

/** A user's value, short enough for a message. */
export function shownValue(value: unknown): string {
  if (typeof value === 'string') return quote(value);
  if (Array.isArray(value)) return value.length === 0 ? '[]' : 'a list';
  if (typeof value === 'object' && value !== null) return 'a mapping';
  return String(value).slice(0, 60);
}
