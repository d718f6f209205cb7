// Members that are ready and fail clients, on a real HAProxy: they rest after some errors in a row over all routes, and come
// back when a probe passes; never too many of a pool, and over reloads.

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import type { Ejection, Listener } from '../../agent/model/load-balancer.ts';
import { eventually } from '../support/basics/eventually.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { ModelHost } from '../support/haproxy/model-host.ts';
import {
  FAULTS,
  type FaultyMember,
  startFaultyMembers,
  statusOf,
} from '../support/traffic/faulty-members.ts';
import type { Place } from '../support/traffic/traffic.ts';
import { entryOf, gatewayOf, POOL, poolName, poolOf, sectionOf } from '../support/values/routes.ts';
import { makeCredentials } from '../support/vrrp/pair-credentials.ts';

const test = requires(ava, { haproxy: true });
const withOpenssl = requires(ava, { haproxy: true, programs: ['openssl'] });

const HOST = 'shop.example';
const EJECTION: Ejection = { after: 3, statuses: '500,502-504', share: 34 };
const PATHS = Array.from({ length: 10 }, (_, at) => `/route${at}`);

function poolFor(members: readonly FaultyMember[], changes: Partial<Listener['pool']> = {}) {
  const timeouts = { ...POOL.timeouts, server: 1_000 };
  const pool = { ...POOL, timeouts, ejection: EJECTION, ...changes };
  return poolOf(
    'web',
    members.map(({ place }) => place),
    { pool },
  );
}

interface Served {
  readonly model: ModelHost;
  readonly place: Place;
  readonly members: readonly FaultyMember[];
}

/** Ten routes to one pool. */
async function serve(
  t: ExecutionContext<unknown>,
  count: number,
  changes: Partial<Listener['pool']> = {},
): Promise<Served> {
  const members = await startFaultyMembers(t, count);
  const place = { address: '127.0.0.1', port: await freePort('127.0.0.1') };
  const entries = PATHS.map((path) => entryOf(path, 'web'));
  const gateway = gatewayOf(place, [sectionOf('one', '*', { [HOST]: entries })]);
  const model = await ModelHost.start(t, [gateway, poolFor(members, changes)]);
  return { model, place, members };
}

/** One request after the other over all routes; how many of them failed. */
async function failures(place: Place, count: number): Promise<number> {
  let failed = 0;
  for (let at = 0; at < count; at++)
    if ((await statusOf(place, PATHS[at % PATHS.length] as string, HOST)) !== 200) failed++;
  return failed;
}

/** Milliseconds until the member gets a request again. */
async function untilUsed(place: Place, member: FaultyMember): Promise<number> {
  const before = member.requests;
  const began = performance.now();
  while (member.requests === before && performance.now() - began < 10_000) await failures(place, 1);
  return performance.now() - began;
}

const restsIn = (model: ModelHost, { place }: FaultyMember): string => {
  const fact = model.dataplane.members(poolName('web')).get(place);
  return fact?.isDown === true ? fact.cause : '';
};

for (const fault of FAULTS)
  test(`One of five members that ${fault} fails at most three requests over ten routes, and gets requests within a second after it is well`, async (t) => {
    const { model, place, members } = await serve(t, 5);
    const [bad] = members as [FaultyMember];
    t.is(await failures(place, 50), 0);
    bad.fault = fault;
    const failed = await failures(place, 300);
    t.true(failed >= 1 && failed <= 3, `${failed} requests failed`);
    t.regex(restsIn(model, bad), /^it rests, because of 3 errors in a row: it /);
    t.is(await failures(place, 300), 0);
    bad.fault = undefined;
    const took = await untilUsed(place, bad);
    t.log(`${failed} failed; requests again after ${took.toFixed(0)} ms`);
    t.true(took <= 1_000, `${took} ms`);
    t.is(restsIn(model, bad), '');
    t.is(await failures(place, 100), 0);
    t.is(model.reloads, 0);
  });

test('Errors that are not in a row let no member rest', async (t) => {
  const { model, place, members } = await serve(t, 2);
  const [bad] = members as [FaultyMember];
  for (let round = 0; round < 6; round++) {
    bad.fault = 'answers 500';
    await failures(place, 4);
    bad.fault = undefined;
    await failures(place, 4);
  }
  t.is(restsIn(model, bad), '');
});

test('A third of the members rests at most, and the only member of a pool never does', async (t) => {
  const { model, place, members } = await serve(t, 5);
  for (const member of members) member.fault = 'answers 500';
  await failures(place, 200);
  t.is(members.filter((member) => restsIn(model, member) !== '').length, 1);
  const others = members.filter((member) => restsIn(model, member) === '');
  const before = others.map(({ requests }) => requests);
  await failures(place, 40);
  t.true(others.every(({ requests }, at) => requests > (before[at] as number)));

  const [first] = members as [FaultyMember];
  await model.serve(poolFor([first]));
  await eventually(
    async () => restsIn(model, first),
    (cause) => cause === '',
  );
  first.fault = 'answers 500';
  const requests = first.requests;
  await failures(place, 40);
  t.is(first.requests, requests + 40);
  t.is(restsIn(model, first), '');
  t.is(model.reloads, 0);
});

test('A member rests over a reload, comes back for an agent that ends, and leaves nothing when it is removed', async (t) => {
  const { model, place, members } = await serve(t, 5);
  const [bad] = members as [FaultyMember];
  bad.fault = 'answers 500';
  await failures(place, 60);
  t.not(restsIn(model, bad), '');
  const reloads = model.reloads;
  await model.serve(poolFor(members, { timeouts: { ...POOL.timeouts, server: 900 } }));
  await eventually(
    async () => model.reloads,
    (count) => count > reloads,
  );
  await model.settled();
  const requests = bad.requests;
  t.is(await failures(place, 100), 0);
  t.is(bad.requests, requests);
  t.not(restsIn(model, bad), '');

  await model.restartAgent();
  bad.fault = undefined;
  t.true((await untilUsed(place, bad)) <= 1_000);

  bad.fault = 'answers 500';
  await failures(place, 60);
  t.not(restsIn(model, bad), '');
  await model.serve(poolFor(members.slice(1), { timeouts: { ...POOL.timeouts, server: 900 } }));
  await eventually(
    () => model.ask('show servers state headgate:probes'),
    (answer) => !answer.includes(bad.place),
  );
  bad.fault = undefined;
  await model.serve(poolFor(members, { timeouts: { ...POOL.timeouts, server: 900 } }));
  t.true((await untilUsed(place, bad)) <= 1_000);
});

test('With slow start a new member, and one that comes back, gets few requests at first', async (t) => {
  const slow = { slowStart: 60_000 };
  const { model, place, members } = await serve(t, 5, slow);
  const [bad, ...others] = members as [FaultyMember, ...FaultyMember[]];
  t.is(await failures(place, 100), 0);
  t.is(bad.requests, 20, 'HAProxy has just started');
  bad.fault = 'answers 500';
  await failures(place, 60);
  bad.fault = undefined;
  await untilUsed(place, bad);
  const before = bad.requests;
  t.is(await failures(place, 100), 0);
  t.true(bad.requests - before < 10, `${bad.requests - before} of 100`);

  await model.serve(poolFor(others, slow));
  const [fresh] = (await startFaultyMembers(t, 1)) as [FaultyMember];
  await model.serve(poolFor([...others, fresh], slow));
  t.is(await failures(place, 100), 0);
  t.true(fresh.requests < 10, `${fresh.requests} of 100`);
  t.is(model.reloads, 0);
});

withOpenssl('A member with TLS is probed with TLS', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const pem = await readFile(await makeCredentials(folder), 'utf8');
  const members = await startFaultyMembers(t, 3, pem);
  const place = { address: '127.0.0.1', port: await freePort('127.0.0.1') };
  const gateway = gatewayOf(place, [sectionOf('one', '*', { [HOST]: [entryOf('/', 'web')] })]);
  const tls = { authority: undefined, serverName: '' };
  await ModelHost.start(t, [gateway, poolFor(members, { tls })]);
  const [bad] = members as [FaultyMember];
  bad.fault = 'answers 500';
  t.true((await failures(place, 60)) <= 3);
  bad.fault = undefined;
  t.true((await untilUsed(place, bad)) <= 1_000);
});
