// What a hostile author of routes and a hostile client can cost a thread of HAProxy: a limited number of steps for each
// request, whatever they write and send.

import { readFile } from 'node:fs/promises';
import ava, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { expressionOf, isMatch } from '../../agent/base/expression/expression.ts';
import type { RouteEntry } from '../../agent/model/routes.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { startRendered } from '../support/haproxy/rendered-haproxy.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { rawStatuses } from '../support/traffic/raw-http.ts';
import { patterns, texts } from '../support/values/expressions.ts';
import { entryOf, gatewayOf, matchOf, poolOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const host = 'a.example.org';

async function routed(
  t: ExecutionContext,
  hosts: Readonly<Record<string, readonly RouteEntry[]>>,
  options: Parameters<typeof startRendered>[2] = {},
) {
  const place = { address: '127.0.0.1', port: await freePort() };
  const pools = await Promise.all(
    ['guarded', 'open'].map(async (name) => poolOf(name, [await startEcho(t, name)])),
  );
  const { worker } = await startRendered(
    t,
    [gatewayOf(place, [sectionOf('http', '*', hosts)]), ...pools],
    options,
  );
  return {
    /** The member that answers, or the status. */
    ask: async (url: string, headers: Readonly<Record<string, string>> = {}) => {
      const { status, echo } = await request(place, url, { headers: { host, ...headers } });
      return echo?.member ?? status;
    },
    worker,
    place,
  };
}

const byHeader = (value: string) => matchOf('/', { headers: [{ name: 'x', kind: 'regex', value }] });

test('Expressions that look at a long header in many ways cost one step for each byte', async (t) => {
  const expressions = ['.*.*.*.*.*!x', '(?:(?:a+)+b|a+!)', '(?:a|a)*(?:a|a)*(?:a|a)*c', '(?:.*a){12}b'];
  const { ask } = await routed(t, {
    [host]: [...expressions.map((value) => entryOf(byHeader(value), 'guarded')), entryOf('/', 'open')],
  });
  t.is(await ask('/', { x: 'a'.repeat(4_000) }), 'open');
  t.is(await ask('/', { x: `${'a'.repeat(4_000)}!` }), 'guarded');
});

test('A request whose conditions take too many steps answers 500, and no wider route serves it', async (t) => {
  const many = Array.from({ length: 60 }, (_, at) => entryOf(byHeader(`.*a{${at + 1}}!`), 'guarded'));
  const { ask } = await routed(t, {
    [host]: [...many, entryOf('/', 'open')],
    '*.example.org': [entryOf('/', 'open')],
  });
  t.is(await ask('/', { x: 'a'.repeat(100) }), 'open');
  t.is(await ask('/', { x: 'aa!' }), 'guarded');
  // 60 times 4,000 bytes.
  t.is(await ask('/', { x: 'b'.repeat(4_000) }), 500);
  t.is(await ask('/'), 'open');
});

test('The steps of all hostnames that a request falls back to are counted together', async (t) => {
  const some = Array.from({ length: 15 }, (_, at) => entryOf(byHeader(`.*a{${at + 1}}!`), 'guarded'));
  const { ask } = await routed(t, {
    [host]: some,
    '*.example.org': some,
    '*': [...some, entryOf('/', 'open')],
  });
  t.is(await ask('/', { x: 'b'.repeat(1_000) }), 'open');
  t.is(await ask('/', { x: 'b'.repeat(3_000) }), 500);
});

test('HAProxy matches any expression as the agent does', async (t) => {
  const some = fc.sample(
    fc.record({ pattern: patterns, values: fc.array(texts, { minLength: 5, maxLength: 5 }) }),
    { numRuns: 60, seed: 7 },
  );
  const cases = some.filter(({ pattern }) => typeof expressionOf(pattern, 'whole') !== 'string');
  const { ask } = await routed(
    t,
    Object.fromEntries(
      cases.map(({ pattern }, at) => [`h${at}.example.org`, [entryOf(byHeader(pattern), 'guarded')]]),
    ),
  );
  for (const [at, { pattern, values }] of cases.entries())
    for (const value of values.map((each) => each.trim()))
      t.is(
        await ask('/', { host: `h${at}.example.org`, x: Buffer.from(value).toString('latin1') }),
        isMatch(pattern, 'whole', value) ? 'guarded' : 404,
        `${pattern} ${value}`,
      );
});

test('A long path with dot segments is normalized with one look at each character', async (t) => {
  const { ask, worker } = await routed(t, { [host]: [entryOf('/', 'open')] }, { dotSegments: 'normalize' });
  const before = await processorTicks(worker.runtime.worker.pid);
  for (const path of [
    `/../${';'.repeat(13_000)}/x`,
    `/${'../'.repeat(4_000)}x`,
    `/${'%2e%2e%2f'.repeat(1_400)}`,
  ])
    for (let at = 0; at < 3; at++) t.is(await ask(path), 'open');
  // To look at all that follow for each character takes seconds.
  t.true((await processorTicks(worker.runtime.worker.pid)) - before < 100);
});

test('A header Host that is not one name with at most a port is refused', async (t) => {
  const { ask, place } = await routed(t, { '*': [entryOf('/', 'open')] });
  for (const good of [
    host,
    `${host}:8080`,
    `${host}:`,
    `${host}.`,
    '127.0.0.1:80',
    '[2001:db8::1]:80',
    '[::1]',
  ])
    t.is(await ask('/', { host: good }), 'open', good);
  for (const bad of [
    `${host}:guarded.example.org`,
    `${host}:80:80`,
    `u@${host}`,
    `${host}/x`,
    `${host}\\x`,
    '[::1]x',
    '[x]:80',
    `${host}, b.example.org`,
    `${host}..`,
    `.${host}`,
    `${host} x`,
    `${host}\x0b`,
    'a%2eexample.org',
    ...[...'#?;%"\'<>|&=!*\x7f\x80'].map((each) => `${host}${each}x`),
  ])
    t.is(await ask('/', { host: bad }), 400, bad);
  t.is(await ask('/', { host: 'my_app.example.org' }), 'open');
  // Of a URL without the header, members would take the host.
  t.deepEqual(await rawStatuses(place, `GET http://${host}/ HTTP/1.1\r\nConnection: close\r\n\r\n`), ['400']);
  t.deepEqual(
    await rawStatuses(place, `GET http://${host}/ HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n`),
    ['400'],
  );
  t.deepEqual(await rawStatuses(place, `GET http://${host}/ HTTP/1.0\r\n\r\n`), ['400']);
  t.deepEqual(await rawStatuses(place, 'GET / HTTP/1.0\r\n\r\n'), ['200']);
});

/** Hundredths of a second. */
async function processorTicks(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? [];
  return Number(fields[11]) + Number(fields[12]);
}
