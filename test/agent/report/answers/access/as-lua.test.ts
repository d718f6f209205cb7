// What `why` and HAProxy must have alike, and each has for itself: lists and bounds of the Lua files.

import { readFileSync } from 'node:fs';
import test from 'ava';
import {
  NEVER_ASKED,
  OF_CONNECTIONS,
} from '../../../../../agent/report/answers/access/authorization-check.ts';
import { MOST_ADDED_BYTES } from '../../../../../agent/report/answers/access/token-check.ts';

const textOf = (name: string): string =>
  readFileSync(new URL(`../../../../../templates/haproxy/${name}.lua`, import.meta.url), 'utf8');

function setIn(text: string, name: string): readonly string[] {
  const [, words = ''] = new RegExp(`local ${name} = setOf\\(\\[\\[([^\\]]*)`).exec(text) ?? [];
  return words.split(/\s+/).filter(Boolean).sort();
}

test('`why` leaves the headers out of a question that HAProxy leaves out', (t) => {
  const text = textOf('external-auth');
  t.deepEqual([...OF_CONNECTIONS].sort(), setIn(text, 'OF_CONNECTIONS'));
  t.deepEqual([...NEVER_ASKED].sort(), setIn(text, 'NEVER_ASKED'));
});

test('The bound of added headers is the same everywhere', (t) => {
  for (const name of ['external-auth', 'jwt', 'custom-errors'])
    t.is(/local MOST_ADDED_BYTES = (\d+)/.exec(textOf(name))?.[1], String(MOST_ADDED_BYTES), name);
});
