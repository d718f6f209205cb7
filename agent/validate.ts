// Checks the shape of what others wrote. The only file that imports the package zod: gives the few rules that our
// schemas are made of, and the text that a failed check has for people.
// Every message of a rule begins with "is not", so that it reads on from the value: `70000 is not a whole number ...`.

import { z } from 'zod';
import { quote } from './quote.ts';

export { z };

/** A text that `check` accepts; `not` says what it is otherwise: `is not a DNS label`. */
export function textRule(check: (text: string) => boolean, not: string) {
  return z.string(not).refine(check, not);
}

/** A text that `read` can make something of; undefined from `read` means that it cannot. */
export function textReader<T>(read: (text: string) => T | undefined, not: string) {
  return z.string(not).transform((text, context) => {
    const value = read(text);
    if (value !== undefined) return value;
    context.addIssue({ code: 'custom', message: not });
    return z.NEVER;
  });
}

export function wholeNumber(from: number, to: number) {
  const not = `is not a whole number from ${from} to ${to}`;
  return z.number(not).refine((value) => Number.isInteger(value) && value >= from && value <= to, not);
}

export function truth() {
  return z.boolean('is not true or false');
}

export function oneOf<const T extends string>(...words: readonly T[]) {
  return z.enum(words, `is not one of ${words.join(', ')}`);
}

export function listOf<T extends z.ZodType>(item: T) {
  return z.array(item, 'is not a list');
}

export function mappingOf<T extends z.ZodRawShape>(shape: T) {
  return z.object(shape, 'is not a mapping');
}

/** Names and texts, each of which has a rule; for labels and annotations. */
export function textsByName(
  name: { readonly check: (text: string) => boolean; readonly not: string },
  value: { readonly check: (text: string) => boolean; readonly not: string },
) {
  return z.unknown().transform((input, context): Readonly<Record<string, string>> => {
    if (!isMapping(input)) {
      context.addIssue({ code: 'custom', message: 'is not a mapping' });
      return z.NEVER;
    }
    const texts: Record<string, string> = {};
    for (const [key, text] of Object.entries(input)) {
      if (!name.check(key)) {
        context.addIssue({ code: 'custom', message: `${quote(key)} ${name.not}` });
      } else if (typeof text !== 'string' || !value.check(text)) {
        context.addIssue({ code: 'custom', path: [key], message: value.not });
      } else texts[key] = text;
    }
    return texts;
  });
}

/** What a mapping of YAML or JSON is, and nothing else. */
export function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** One line for people: `spec.ports[0].port: 70000 is not a whole number from 1 to 65535; ...`, the first three faults. */
export function faultsOf(error: z.ZodError, input: unknown): string {
  const shown = error.issues.slice(0, 3).map((issue) => faultOf(issue, input));
  const more = error.issues.length - shown.length;
  return `${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}

function faultOf({ path, message }: z.core.$ZodIssue, input: unknown): string {
  const place = path.length === 0 ? '' : `${pathText(path)}: `;
  if (!message.startsWith('is not ')) return `${place}${message}`;
  const value = valueAt(input, path);
  if (value === undefined) return `${place}missing, has to be ${message.slice('is not '.length)}`;
  return `${place}${shownValue(value)} ${message}`;
}

function pathText(path: readonly PropertyKey[]): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[A-Za-z][A-Za-z0-9]{0,59}$/.test(String(step)))
      text += `${text === '' ? '' : '.'}${String(step)}`;
    else text += `[${quote(String(step))}]`;
  }
  return text;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[step];
  }
  return value;
}

/** What a user wrote, short enough for a message. */
export function shownValue(value: unknown): string {
  if (typeof value === 'string') return quote(value);
  if (Array.isArray(value)) return value.length === 0 ? '[]' : 'a list';
  if (typeof value === 'object' && value !== null) return 'a mapping';
  return String(value).slice(0, 60);
}
