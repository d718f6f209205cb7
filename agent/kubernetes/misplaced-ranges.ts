// Finds the ranges of a Service's clients where they would have no effect: with another spelling, or beside `spec`. In a folder
// nobody else looks at the fields of an object, and without its ranges a Service is open to all. Pure.

import { nearest } from '../base/nearest.ts';
import { isMapping, pathText } from '../base/validate.ts';

/** The field of a Service that restricts its clients. */
export const RANGES = 'loadBalancerSourceRanges';
const MOST_LETTERS = 2;

/** The place of a field of a Service that means the ranges of its clients and is not that field; '' for none. */
export function misplacedRanges(json: Readonly<Record<string, unknown>>): string {
  for (const [place, mapping] of [
    ['spec', json.spec],
    ['metadata', json.metadata],
    ['', json],
  ] as const) {
    if (!isMapping(mapping)) continue;
    const name = Object.keys(mapping).find(
      (each) => !(each === RANGES && place === 'spec') && nearest(each, [RANGES], MOST_LETTERS) !== undefined,
    );
    if (name !== undefined) return pathText(place === '' ? [name] : [place, name]);
  }
  return '';
}
