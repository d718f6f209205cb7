// Mustache templates: parsed at their first use by the mustache package (imported only here) and filled here, because a cold
// start fills one for each load balancer. Values are not escaped: the model has validated them.

import { readFileSync } from 'node:fs';
import Mustache from 'mustache';

/** A section is shown if its value is true, a text or a number, but not '' or 0; a list repeats it. */
export interface View {
  readonly [name: string]: string | number | boolean | readonly string[] | readonly View[];
}

export type Template = (view: View) => string;

/** `name`: path below templates/, without `.mustache`. */
export function loadTemplate(name: string): Template & { readonly text: string } {
  const text = readFileSync(new URL(`../../templates/${name}.mustache`, import.meta.url), 'utf8');
  let tokens: readonly Token[] | undefined;
  const render = (view: View): string => {
    tokens ??= Mustache.parse(text) as readonly Token[];
    return fill(tokens, view, name);
  };
  return Object.assign(render, { text });
}

/** As mustache parses it; `!` is a comment; `inside`: the tokens of a section. */
type Token = readonly [
  kind: 'text' | 'name' | '&' | '#' | '^' | '!',
  value: string,
  begin: number,
  end: number,
  inside?: readonly Token[],
];

function fill(tokens: readonly Token[], view: View, name: string): string {
  let text = '';
  for (const [kind, key, , , inside = []] of tokens) {
    if (kind === 'text') text += key;
    else if (kind === '#') for (const row of rowsOf(view, key, name)) text += fill(inside, row, name);
    else if (kind === '^') text += rowsOf(view, key, name).length === 0 ? fill(inside, view, name) : '';
    else if (kind !== '!') text += String(found(view, key, name));
  }
  return text;
}

/** The views of a section: one for each row of a list (a text has the key `.`), or the view around it. */
function rowsOf(view: View, key: string, name: string): readonly View[] {
  const value = found(view, key, name);
  if (typeof value !== 'object') return value ? [view] : [];
  return value.map((row) => (typeof row === 'string' ? { '.': row } : row));
}

/** Throws for an unknown key; Mustache itself would hide the mistake and render nothing, or the key of an outer view. */
function found(view: View, key: string, name: string): View[string] {
  const value = Object.hasOwn(view, key) ? view[key] : undefined;
  if (value === undefined) throw new Error(`Template "${name}" needs "${key}", which its view does not have`);
  return value;
}
