import { readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import test from 'ava';
import { putV8ThreadsLast } from '../../../agent/host/v8-threads.ts';

test('putV8ThreadsLast() lowers the threads that compile and collect, and nobody else', (t) => {
  const own = getPriority();
  const before = priorities();
  putV8ThreadsLast();
  const after = priorities();
  const helpers = [...after.keys()].filter((id) => nameOf(id) === 'V8Worker');
  t.true(helpers.length > 0);
  for (const id of helpers) t.is(after.get(id), Math.min(own + 10, 19));
  for (const id of [...after.keys()].filter((id) => before.has(id) && !helpers.includes(id)))
    t.is(after.get(id), before.get(id));
  t.is(getPriority(), own);
});

function priorities(): Map<string, number> {
  return new Map(readdirSync('/proc/self/task').map((id) => [id, getPriority(Number(id))]));
}

function nameOf(id: string): string {
  return readFileSync(`/proc/self/task/${id}/comm`, 'utf8').trim();
}
