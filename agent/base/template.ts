// Mustache templates: read once, filled with a view whose every key must exist.
// The only user of the mustache package, which takes a template apart; it is filled here, because a cold start fills
// one for each load balancer. Values are placed as they are: the model has validated them.

import { readFileSync } from 'node:fs';
import Mustache from 'mustache';

/** Plain data; a section is shown by a boolean or repeated by a list, never by a number or a text. */
export interface View {
  readonly [name: string]: string | number | boolean | readonly string[] | readonly View[];
}

export type Template = (view: View) => string;

/** `name` is a path below templates/, without its ending. */
export function loadTemplate(name: string): Template & { readonly text: string } {
  const text = readFileSync(new URL(`../../templates/${name}.mustache`, import.meta.url), 'utf8');
  const tokens = Mustache.parse(text) as readonly Token[];
  return Object.assign((view: View): string => fill(tokens, view, name), { text });
}

/** As mustache gives it: what it is, its text or its key, where it begins and ends, and what stands in a section. */
type Token = readonly [
  kind: 'text' | 'name' | '&' | '#' | '^',
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
    else text += String(found(view, key, name));
  }
  return text;
}

/** What a section is shown with: each row of a list, a text under the key `.`; or the view that it stands in. */
function rowsOf(view: View, key: string, name: string): readonly View[] {
  const value = found(view, key, name);
  if (typeof value !== 'object') return value ? [view] : [];
  return value.map((row) => (typeof row === 'string' ? { '.': row } : row));
}

/**
 * Mustache itself shows nothing for a key that is missing and looks further out for one that an inner view lacks; both
 * would hide a mistake in a configuration file, so an unknown key throws.
 */
function found(view: View, key: string, name: string): View[string] {
  const value = Object.hasOwn(view, key) ? view[key] : undefined;
  if (value === undefined) throw new Error(`Template "${name}" asks for "${key}", which its view lacks`);
  return value;
}
