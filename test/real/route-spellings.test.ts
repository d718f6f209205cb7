// No spelling of a path leads past a guarded one: members decode what a client has percent-encoded, and take what should be.

import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import ava, { type ExecutionContext } from 'ava';
import { pathPattern } from '../../agent/base/one-spelling.ts';
import type { RouteEntry } from '../../agent/model/routes.ts';
import { requires } from '../support/basics/requirements.ts';
import { routed } from '../support/haproxy/routed-haproxy.ts';
import { request } from '../support/traffic/echo.ts';
import { entryOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const host = 'shop.example.org';
const CLOSED = { kind: 'answer', status: 403 } as const;
/** Other readings of these are refused, or begin something else. */
const SEPARATORS = '/?#;\\%';
const printed = Array.from({ length: 94 }, (_, at) => String.fromCharCode(33 + at));
const characters = [...printed.filter((each) => !SEPARATORS.includes(each)), ' ', 'é'];

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

/** A character as it is, if HTTP/1 has it, and encoded in both cases. */
function spellings(character: string): readonly string[] {
  const bytes = Array.from(Buffer.from(character), (byte) => `%${byte.toString(16).padStart(2, '0')}`);
  const encoded = bytes.join('');
  return [...(/^[!-~]$/.test(character) ? [character] : []), encoded, encoded.toUpperCase()];
}

const routedTo = (t: ExecutionContext, entries: readonly RouteEntry[]) =>
  routed(t, ['root'], [sectionOf('http', '*', { [host]: [...entries, entryOf('/', 'root')] })]);

for (const [kind, entriesOf] of [
  ['path', (each: string) => entryOf(`/a${each}b`, CLOSED)],
  ['exact path', (each: string) => entryOf(`=/a${each}b`, CLOSED)],
  ['regular expression', (each: string) => entryOf(`~${pathPattern(`/a${escaped(each)}b`)}`, CLOSED)],
] as const)
  test(`Each spelling of each character leads to its ${kind}`, async (t) => {
    const place = await routedTo(t, characters.map(entriesOf));
    for (const character of characters)
      for (const each of spellings(character))
        t.is((await request(place, `/a${each}b`, { headers: { host } })).status, 403, each);
    t.is((await request(place, '/ab', { headers: { host } })).status, 200);
  });

test('What is neither a path nor a URL is refused: members could take a part of it for a path', async (t) => {
  const place = await routedTo(t, [entryOf('/admin', CLOSED)]);
  for (const none of ['*/admin', '@/admin', '*://a/admin'])
    t.is((await request(place, none, { headers: { host } })).status, 400, none);
  t.is((await request(place, '*', { method: 'OPTIONS', headers: { host } })).status, 200);
  t.is((await request(place, `http://${host}/admin`, { headers: { host } })).status, 403);
});

test('In HTTP/2, where a path can have any byte, one that is not ASCII is its encoding', async (t) => {
  const place = await routedTo(t, [entryOf('/é', CLOSED)]);
  const session = connectHttp2(`http://${place.address}:${place.port}`);
  t.teardown(() => session.destroy());
  const statusOf = async (path: string) => {
    const [headers] = await once(session.request({ ':authority': host, ':path': path }), 'response');
    return headers[':status'];
  };
  for (const path of ['/\xc3\xa9', '/%c3\xa9', '/\xc3%A9', '/%C3%a9/x']) t.is(await statusOf(path), 403);
  t.is(await statusOf('/%c3%a8'), 200);
});
