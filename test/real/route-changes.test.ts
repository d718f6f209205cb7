// Changes of routes in a HAProxy that serves: without reloads, without failed requests, and in the end exactly the rows that
// the routes need.

import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { MAPS } from '../../agent/haproxy/routes/maps.ts';
import { tablesOf } from '../../agent/haproxy/routes/tables.ts';
import type { RouteEntry, RouteSection } from '../../agent/model/routes.ts';
import { eventually } from '../support/basics/eventually.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { ModelHost } from '../support/haproxy/model-host.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { entryOf, forwardTo, gatewayOf, matchOf, POOL, poolOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const host = 'a.example.org';

/** A gateway with some routes of one host, and pools `a` and `b`. */
async function served(t: ExecutionContext, entries: readonly RouteEntry[], flags: readonly string[] = []) {
  const place = { address: '127.0.0.1', port: await freePort() };
  const gateway = (sections: readonly RouteSection[]) => gatewayOf(place, sections);
  const of = (some: readonly RouteEntry[]) => gateway([sectionOf('http', '*', { [host]: some })]);
  const pools = await Promise.all(['a', 'b'].map(async (name) => poolOf(name, [await startEcho(t, name)])));
  const model = await ModelHost.start(t, [of(entries), ...pools], { flags });
  const ask = async (url: string, headers: Readonly<Record<string, string>> = {}) => {
    const { status, echo } = await request(place, url, { headers: { host, ...headers } });
    return echo?.member ?? status;
  };
  return { place, gateway, of, model, ask };
}

/** The rows in HAProxy, and in the files, are those of the desired routes. */
async function hasOnly(t: ExecutionContext, model: ModelHost, { files = true } = {}): Promise<void> {
  const wanted = (map: string): readonly string[] =>
    [...model.desired.values()]
      .flatMap(({ listeners }) => listeners.flatMap((each) => [...tablesOf(each).values()].flat()))
      .filter((row) => row.map === map)
      .map(({ key, value }) => `${key} ${value}`)
      .sort();
  // One by one, because HAProxy's socket takes some 20 connections at once.
  const all = async (rowsOf: (map: string) => Promise<readonly string[]>) => {
    const rows: (readonly [string, readonly string[]])[] = [];
    for (const map of MAPS) rows.push([map, await rowsOf(map)]);
    return rows;
  };
  const expected = JSON.stringify(await all(async (map) => wanted(map)));
  const isExpected = (found: unknown): boolean => JSON.stringify(found) === expected;
  const inFile = async (map: string): Promise<readonly string[]> => {
    const text = await readFile(join(model.paths.routes, map), 'utf8').catch(() => '');
    return text.split('\n').filter(Boolean).sort();
  };
  await t.notThrowsAsync(eventually(() => all((map) => model.rows(map)), isExpected));
  if (files) await t.notThrowsAsync(eventually(() => all(inFile), isExpected));
}

test('Routes are added, changed and removed without a reload', async (t) => {
  const { of, model, ask } = await served(t, [entryOf('/', 'a')]);
  t.is(await ask('/x'), 'a');
  await model.serve(of([entryOf('/x', 'b'), entryOf('/', 'a')]));
  t.is(await ask('/x'), 'b');
  const put = matchOf('/x', { method: 'PUT' });
  await model.serve(of([entryOf(put, 'b'), entryOf('/y;z', { a: 1, b: 0 }), entryOf('/', 'a')]));
  t.is(await ask('/x'), 'a');
  t.is(await ask('/y;z'), 'a');
  await model.serve(of([entryOf('/y;z', 'b')]));
  t.is(await ask('/y;z'), 'b');
  t.is(await ask('/x'), 404);
  await model.serve(of([]));
  t.is(await ask('/y;z'), 404);
  await hasOnly(t, model);
  t.is(model.reloads, 0);
});

test('A route that is changed all the time under load fails no request', async (t) => {
  const { of, model, ask } = await served(t, [entryOf('/', 'a')]);
  const kinds: readonly (readonly RouteEntry[])[] = [
    [entryOf('/', 'a')],
    [entryOf('/', forwardTo('b', { rewrite: { hostname: '', path: { kind: 'prefix', value: '/b' } } }))],
    [
      entryOf(matchOf('/', { headers: [{ name: 'x-a', kind: 'exact', value: '1' }] }), 'a'),
      entryOf('/', 'b'),
    ],
    [entryOf('/', { a: 3, b: 1 })],
    [entryOf('=/x', 'a'), entryOf('/', { a: 1, b: 2 })],
  ];
  let isOver = false;
  const failures: unknown[] = [];
  let requests = 0;
  const load = async (): Promise<void> => {
    for (; !isOver; requests++) {
      const answer = await ask('/x').catch((error: unknown) => error);
      if (answer !== 'a' && answer !== 'b') failures.push(answer);
    }
  };
  const loads = [load(), load(), load()];
  for (let at = 0; at < 300; at++) {
    await model.serve(of(kinds[at % kinds.length] ?? []));
    if (at % 10 === 0) await delay(10);
  }
  isOver = true;
  await Promise.all(loads);
  t.deepEqual(failures, []);
  t.true(requests > 100, `${requests}`);
  await hasOnly(t, model);
  t.is(model.reloads, 0);
});

test('A route to a new pool waits for the reload, and the route of before serves meanwhile', async (t) => {
  const { of, model, ask } = await served(t, [entryOf('/', 'a')], ['--reload-interval', '1s']);
  await model.serve(of([entryOf('/b', 'b'), entryOf('/', 'c')]));
  t.is(await ask('/'), 'a');
  t.is(await ask('/b'), 'b', 'Other routes do not wait');
  const answers = new Set<unknown>();
  let isOver = false;
  const load = (async () => {
    while (!isOver) answers.add(await ask('/'));
  })();
  // Its clients keep their members by a table of its own, so that no spare backend is like it.
  await model.serve(poolOf('c', [await startEcho(t, 'c')], { pool: { ...POOL, persistence: 60 } }));
  await model.settled();
  await eventually(
    () => ask('/'),
    (member) => member === 'c',
  );
  isOver = true;
  await load;
  await t.notThrowsAsync(
    eventually(
      async () => model.reloads,
      (reloads) => reloads > 0,
    ),
  );
  t.true(
    [...answers].every((answer) => answer === 'a' || answer === 'c'),
    String([...answers]),
  );
  await hasOnly(t, model);
});

test('A new guarded path answers 503 until its pool is there, and never by a wider one', async (t) => {
  const { of, model, ask } = await served(t, [entryOf('/', 'a')], ['--reload-interval', '1s']);
  const limits = { allowedCidrs: ['127.0.0.0/8'], deniedCidrs: [], requestRate: 0, bodyBytes: 0 };
  await model.serve(of([entryOf('/admin', 'c', { limits }), entryOf('/open', 'c'), entryOf('/', 'a')]));
  t.is(await ask('/admin/x'), 503);
  t.is(await ask('/%61dmin'), 503);
  t.is(await ask('/open'), 'a', 'What is not guarded is served as before');
  t.is(await ask('/'), 'a');
  const answers = new Set<unknown>();
  let isOver = false;
  const load = (async () => {
    while (!isOver) answers.add(await ask('/admin/x'));
  })();
  await model.serve(poolOf('c', [await startEcho(t, 'c')], { pool: { ...POOL, persistence: 60 } }));
  await model.settled();
  await eventually(
    () => ask('/admin/x'),
    (member) => member === 'c',
  );
  isOver = true;
  await load;
  t.deepEqual(
    [...answers].filter((answer) => answer !== 503 && answer !== 'c'),
    [],
  );
  await hasOnly(t, model);
});

test('The next agent completes the change of rows of an agent that died between any two commands', async (t) => {
  const { of, model, ask } = await served(t, [entryOf('/', 'a')]);
  const before = [entryOf('/gone', { a: 1, b: 1 }), entryOf('/x', 'a'), entryOf('/', 'a')];
  const after = [
    entryOf('/new', { a: 2, b: 1 }),
    entryOf('/x', { a: 0, b: 1 }),
    entryOf(matchOf('/', { method: 'PUT' }), 'a'),
    entryOf('/', 'b'),
  ];
  for (let sent = 0; ; sent++) {
    await model.serve(of(before));
    await hasOnly(t, model, { files: false });
    model.desired.set(of(after).key, of(after));
    const [plan] = model.dataplane.plan([of(after).key]);
    const commands = plan?.commands ?? [];
    if (sent > commands.length) break;
    await model.dataplane.worker?.runtime.send(commands.slice(0, sent));
    await model.restartAgent();
    t.is(await ask('/'), 'b', `after ${sent} commands`);
    t.is(await ask('/gone'), 'b');
    await hasOnly(t, model, { files: false });
  }
  t.is(model.reloads, 0);
});

test('An audit repairs rows that another process changed, removed or added', async (t) => {
  const { model, ask } = await served(
    t,
    [entryOf('/x', { a: 1, b: 1 }), entryOf('/', 'a')],
    ['--audit-interval', '1s'],
  );
  const [hosts = ''] = await model.rows('hosts');
  const table = hosts.split(' ')[1];
  const { routes } = model.paths;
  await model.ask(`set map ${routes}/prefix ${table}/ pool:none`);
  await model.ask(`del map ${routes}/prefix ${table}/x/`);
  await model.ask(`clear map ${routes}/shares`);
  await model.ask(`add map ${routes}/exact ${table}/evil pool:none`);
  await model.ask(`add map ${routes}/hosts ${hosts}`);
  await hasOnly(t, model);
  t.is(await ask('/'), 'a');
  // The audit counts them when it has read everything.
  await eventually(
    async () => model.repairs,
    (repairs) => repairs > 0,
  );
  t.is(model.reloads, 0);
});

test('Files of routes that another process removed or changed are written again', async (t) => {
  const { model } = await served(t, [entryOf('/', 'a')]);
  await rm(join(model.paths.routes, 'hosts'));
  await writeFile(join(model.paths.routes, 'prefix'), 'x y\n');
  await hasOnly(t, model);
  await rename(model.paths.routes, `${model.paths.routes}.gone`);
  await hasOnly(t, model);
});

test('A HAProxy that restarts or is reloaded by another process has the routes', async (t) => {
  const { of, model, ask } = await served(t, [entryOf('/', 'a')]);
  await model.serve(of([entryOf('/x', { a: 1, b: 1 }), entryOf('/', 'b')]));
  await hasOnly(t, model);
  const pid = model.dataplane.worker?.runtime.worker.pid;
  process.kill(Number((await readFile(model.paths.pidFile, 'utf8')).trim()), 'SIGUSR2');
  await eventually(
    async () => model.dataplane.worker?.runtime.worker.pid,
    (now) => now !== undefined && now !== pid,
  );
  t.is(await ask('/'), 'b');
  await model.serve(of([entryOf('/', 'a')]));
  t.is(await ask('/'), 'a');
  await hasOnly(t, model);
});
