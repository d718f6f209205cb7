// What is wrong with what others wrote, as values and as a text for people.
// A message that begins with "is not" reads on from the value: `70000 is not a whole number ...`. Pure.

import { quote } from './quote.ts';

export interface ValidationFault {
  /** From the outermost value inwards: names of fields, and places in lists from 0. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** One line for people: `spec.ports[0].port: 70000 is not a whole number from 1 to 65535; ...`, the first three faults. */
export function faultsOf(faults: readonly ValidationFault[], input: unknown): string {
  const shown = faults.slice(0, 3).map((fault) => faultOf(fault, input));
  const more = faults.length - shown.length;
  return `${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}

function faultOf({ path, message }: ValidationFault, input: unknown): string {
  const place = path.length === 0 ? '' : `${pathText(path)}: `;
  if (!message.startsWith('is not ')) return `${place}${message}`;
  const value = valueAt(input, path);
  if (value === undefined) return `${place}missing, has to be ${message.slice('is not '.length)}`;
  return `${place}${shownValue(value)} ${message}`;
}

function pathText(path: ValidationFault['path']): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else if (/^[A-Za-z][A-Za-z0-9]{0,59}$/.test(step)) text += `${text === '' ? '' : '.'}${step}`;
    else text += `[${quote(step)}]`;
  }
  return text;
}

function valueAt(input: unknown, path: ValidationFault['path']): unknown {
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
