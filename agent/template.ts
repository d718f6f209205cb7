// Mustache templates: read once, filled with a view whose every key must exist.
// The only user of the mustache package. Values are placed as they are: the model has validated them.

import { readFileSync } from 'node:fs';
import Mustache from 'mustache';

/** Plain data; a section is shown by a boolean or repeated by a list, never by a number or a text. */
export interface View {
  readonly [name: string]: string | number | boolean | readonly string[] | readonly View[];
}

export type Template = (view: View) => string;

/** `name` is a path below templates/, without its ending. */
export function loadTemplate(name: string): Template & { readonly text: string } {
  const text = readFileSync(new URL(`../templates/${name}.mustache`, import.meta.url), 'utf8');
  Mustache.parse(text);
  const fill = (view: View): string =>
    Mustache.render(text, strict(view, name), undefined, { escape: String });
  return Object.assign(fill, { text });
}

/**
 * Mustache shows nothing for a key that is missing and looks further out for one that an inner view lacks; both
 * would hide a mistake in a configuration file, so every look-up of an unknown key throws.
 */
function strict(view: View, name: string): View {
  return new Proxy(view, {
    has: () => true,
    get(target, key) {
      if (typeof key !== 'string') return undefined;
      if (!Object.hasOwn(target, key))
        throw new Error(`Template "${name}" asks for "${key}", which its view lacks`);
      const value = target[key];
      if (!Array.isArray(value)) return value;
      return value.map((each) => (typeof each === 'object' ? strict(each, name) : each));
    },
  });
}
