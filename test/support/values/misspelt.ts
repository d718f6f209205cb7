// Misspelt names, as hurried authors write them.

import { NGINX_COMFORT } from '../../../agent/protection/nginx-names.ts';
import { ANNOTATIONS, FIELDS } from '../../../agent/translate/annotations/table.ts';
import { INGRESS_ANNOTATIONS } from '../../../agent/translate/ingress/nginx-annotations.ts';

const KNOWN = new Set([
  ...FIELDS.map((field) => ANNOTATIONS[field].name),
  ...Object.keys(INGRESS_ANNOTATIONS),
  ...NGINX_COMFORT,
]);

/** A letter is missing, doubled, replaced, changed in its case or moved, or a hyphen is one of those; undefined if that is another name. */
export function misspelt(name: string, seed: number): string | undefined {
  const at = Math.floor(seed / 6) % name.length;
  const before = name.slice(0, at);
  const [letter = '', next = ''] = name.slice(at);
  const after = name.slice(at + 1);
  const wrong = [
    before + after,
    before + letter + letter + after,
    `${before}q${after}`,
    before + letter.toUpperCase() + after,
    before + next + letter + after.slice(1),
    before + (letter === '-' ? '_' : `${letter}s`) + after,
  ][seed % 6];
  return wrong === undefined || wrong === name || wrong === '' || KNOWN.has(wrong) ? undefined : wrong;
}
