// Checks the shape of what others wrote: rules for texts, numbers, lists and mappings, put together to schemas, which
// give the value that is right or every fault with its place. Where nothing is wrong it costs next to nothing, because
// every object of the cluster passes through here when the agent starts. Pure.
// Every message of a rule begins with "is not", so that it reads on from the value: `70000 is not a whole number ...`.

import { quote } from './quote.ts';
import type { ValidationFault } from './validation-fault.ts';

/** Adds its faults, each with the path from `value`, and gives a value that is of no use where there are any. */
type Read<T> = (value: unknown, faults: ValidationFault[]) => T;

/** What is wrong, with the path from the value that was given. */
type Refuse = (path: ValidationFault['path'], message: string) => void;

/** What the API server is told of it in a definition (OpenAPI 3.0). */
type OpenApi = Readonly<Record<string, unknown>>;

export type Judgement<T> =
  | { readonly success: true; readonly data: T }
  | { readonly success: false; readonly faults: readonly ValidationFault[] };

/** What a rule gives. */
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
    const faults: ValidationFault[] = [];
    const data = this.read(value, faults);
    return faults.length === 0 ? { success: true, data } : { success: false, faults };
  }

  /** For what no user writes. Throws where there is any fault. */
  parse(value: unknown): T {
    const judgement = this.judge(value);
    if (judgement.success) return judgement.data;
    const [{ path, message } = { path: [], message: '' }] = judgement.faults;
    throw new TypeError(`${path.join('.')} ${message}`);
  }

  /** Nothing and null are right, too, and give undefined. */
  nullish(): Rule<T | undefined> {
    return new Rule(
      (value, faults) => (value === undefined || value === null ? undefined : this.read(value, faults)),
      this.openApi,
      true,
    );
  }

  /** Nothing gives `value`. */
  default(value: T): Rule<T> {
    return new Rule(
      (given, faults) => (given === undefined ? value : this.read(given, faults)),
      this.openApi,
      true,
    );
  }

  /** Makes something else of a value that is right, or refuses it. */
  transform<U>(make: (value: T, refuse: Refuse) => U): Rule<U> {
    const read: Read<U> = (value, faults) => {
      const before = faults.length;
      const right = this.read(value, faults);
      if (faults.length > before) return right as unknown as U;
      return make(right, (path, message) => faults.push({ path, message }));
    };
    return new Rule(read, this.openApi, this.isOptional);
  }

  /** Looks once more at a value that is right by itself. */
  refine(check: (value: T, refuse: Refuse) => void): Rule<T> {
    return this.transform((value, refuse) => {
      check(value, refuse);
      return value;
    });
  }

  /** Says more to the API server. */
  meta(openApi: OpenApi): Rule<T> {
    return new Rule(this.read, { ...this.openApi, ...openApi }, this.isOptional);
  }
}

/** Of a single value; `read` gives undefined for what it refuses. */
function leaf<T>(read: (value: unknown) => T | undefined, not: string, openApi?: OpenApi): Rule<T> {
  return new Rule((value, faults) => {
    const right = read(value);
    if (right === undefined) faults.push({ path: [], message: not });
    return right as T;
  }, openApi);
}

/** A text that `check` accepts; `not` says what it is otherwise: `is not a DNS label`. */
export function textRule(check: (text: string) => boolean, not: string): Rule<string> {
  return leaf((value) => (typeof value === 'string' && check(value) ? value : undefined), not, {
    type: 'string',
  });
}

/** A text that `read` can make something of; undefined from `read` means that it cannot. */
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
  return leaf((value) => (isRight(value) ? value : undefined), not);
}

export function boolean(): Rule<boolean> {
  return leaf((value) => (typeof value === 'boolean' ? value : undefined), 'is not true or false', {
    type: 'boolean',
  });
}

export function oneOf<const T extends string>(...words: readonly T[]): Rule<T> {
  const not = `is not one of ${words.join(', ')}`;
  // Its own word, not the equal text that was read: thousands of objects then share it.
  return leaf((value) => words.find((word) => word === value), not, { type: 'string', enum: words });
}

export function listOf<T>(item: Rule<T>): Rule<T[]> {
  const read: Read<T[]> = (value, faults) => {
    if (!Array.isArray(value)) {
      faults.push({ path: [], message: 'is not a list' });
      return [];
    }
    // Of just that length: V8 gives a list that is pushed to room for 17 items, and a start makes thousands with one.
    const list = new Array<T>(value.length);
    for (let at = 0; at < value.length; at++) {
      const before = faults.length;
      list[at] = item.read(value[at], faults);
      if (faults.length > before) place(faults, before, at);
    }
    return list;
  };
  return new Rule(read, { type: 'array', items: item.openApi });
}

/** `what`: of what there has to be one at least. */
export function someOf<T>(item: Rule<T>, what: string): Rule<T[]> {
  return listOf(item).refine((list, refuse) => {
    if (list.length === 0) refuse([], `is not a list of at least one ${what}`);
  });
}

type Shape = Readonly<Record<string, Rule<unknown>>>;

/** Fields that the shape does not name are passed over. */
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
        if (faults.length > before) place(faults, before, name);
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

/** Names and texts, each of which has a rule; for labels and annotations. */
export function textsByName(
  name: { readonly check: (text: string) => boolean; readonly not: string },
  value: { readonly check: (text: string) => boolean; readonly not: string },
): Rule<Readonly<Record<string, string>>> {
  return new Rule((input, faults) => {
    const texts: Record<string, string> = {};
    if (!isMapping(input)) faults.push({ path: [], message: 'is not a mapping' });
    else
      for (const [key, one] of Object.entries(input)) {
        if (!name.check(key)) faults.push({ path: [], message: `${quote(key)} ${name.not}` });
        else if (typeof one !== 'string' || !value.check(one))
          faults.push({ path: [key], message: value.not });
        else texts[key] = one;
      }
    return texts;
  });
}

/** What a mapping of YAML or JSON is, and nothing else. */
export function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The faults from `first` on were found at `step` of what is being read. */
function place(faults: ValidationFault[], first: number, step: string | number): void {
  for (let at = first; at < faults.length; at++) {
    const { path, message } = faults[at] as ValidationFault;
    faults[at] = { path: [step, ...path], message };
  }
}
