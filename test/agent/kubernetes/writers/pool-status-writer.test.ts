import test from 'ava';
import { createLog } from '../../../../agent/host/log.ts';
import { PoolStatusWriter } from '../../../../agent/kubernetes/writers/pool-status-writer.ts';
import { FakeClock } from '../../../support/basics/fake-clock.ts';
import { answer, FakeApi, type Json, refusal } from '../../../support/kube/fake-api.ts';

const PATH = '/apis/headgate.io/v1alpha1/addresspools/public';

const status = (free: number) => ({ metadata: { name: 'public' }, status: { ipv4: { free: String(free) } } });

/** A writer that leads and is to write the pool `public`; the API server takes everything unless `fault` says more. */
function start({ leads = true } = {}) {
  const api = new FakeApi();
  const clock = new FakeClock();
  const log: string[] = [];
  const state = { leads, desired: status(10) as object | undefined };
  api.fault = () => answer(200, {});
  const writer = new PoolStatusWriter({
    api,
    clock,
    log: createLog({ level: 'info', format: 'json', destination: { write: (line) => log.push(line) } }),
    isLeader: () => state.leads,
    desired: () => state.desired,
    random: () => 0.5,
  });
  if (leads) writer.lead(true);
  const write = async (milliseconds = 0): Promise<void> => {
    writer.write(['public']);
    await clock.advance(milliseconds);
  };
  const written = () => api.requests.map(({ body }) => (body as Json).status.ipv4.free);
  return { api, clock, log, state, writer, write, written };
}

test('PoolStatusWriter applies the whole status to the status subresource, as its owner', async (t) => {
  const { api, write } = start();
  await write();
  t.is(api.requests.length, 1);
  t.like(api.requests[0], {
    method: 'PATCH',
    path: `${PATH}/status`,
    query: { fieldManager: 'headgate', force: 'true' },
    contentType: 'application/apply-patch+yaml',
    body: status(10),
  });
});

test('PoolStatusWriter writes only changes, and each pool at most once a second', async (t) => {
  const { clock, state, write, written } = start();
  for (let count = 0; count < 3; count++) await write(10_000);
  t.deepEqual(written(), ['10']);
  for (const free of [9, 8, 7]) {
    state.desired = status(free);
    await write();
  }
  t.deepEqual(written(), ['10', '9']);
  await clock.advance(999);
  t.deepEqual(written(), ['10', '9']);
  await clock.advance(1);
  t.deepEqual(written(), ['10', '9', '7']);
});

test('PoolStatusWriter writes nothing without the lead, and everything again with it', async (t) => {
  const { state, writer, clock, write, written } = start({ leads: false });
  await write(60_000);
  t.deepEqual(written(), []);
  state.leads = true;
  writer.lead(true);
  await clock.advance(0);
  t.deepEqual(written(), ['10']);
  state.leads = false;
  writer.lead(false);
  state.desired = status(5);
  await write(60_000);
  t.deepEqual(written(), ['10']);
  // Another has written meanwhile: the same as we did last is news again.
  state.desired = status(10);
  state.leads = true;
  writer.lead(true);
  await write(10_000);
  t.deepEqual(written(), ['10', '10']);
});

test('PoolStatusWriter does not write after the lead has ended by the clock', async (t) => {
  const { state, write, written } = start();
  state.leads = false;
  await write(60_000);
  t.deepEqual(written(), []);
});

test('PoolStatusWriter ignores a deleted pool', async (t) => {
  const { api, state, write, written } = start();
  api.fault = () => refusal(404, 'NotFound');
  await write(60_000);
  t.is(written().length, 1);
  state.desired = undefined;
  await write(60_000);
  t.is(written().length, 1);
});

test('PoolStatusWriter writes the status of a pool that was deleted and created again', async (t) => {
  const { api, state, write, written } = start();
  await write();
  state.desired = undefined;
  await write();
  state.desired = status(10);
  await write(60_000);
  t.deepEqual(written(), ['10', '10']);
  // Its deletion is not known yet.
  state.desired = status(9);
  api.fault = () => refusal(404, 'NotFound');
  await write(60_000);
  state.desired = status(10);
  api.fault = () => answer(200, {});
  await write(60_000);
  t.deepEqual(written(), ['10', '10', '9', '10']);
});

test('PoolStatusWriter logs a refusal once, and retries after Retry-After or a backoff', async (t) => {
  const { api, clock, log, write, written } = start();
  api.fault = () => refusal(429, 'TooManyRequests', { 'retry-after': '7' });
  await write(6_999);
  t.is(written().length, 1);
  await clock.advance(1);
  t.is(written().length, 2);
  api.fault = () => refusal(403, 'Forbidden');
  await clock.advance(120_000);
  t.true(written().length > 4 && written().length < 20, String(written().length));
  api.fault = () => answer(200, {});
  await clock.advance(60_000);
  const { length } = written();
  await clock.advance(60_000);
  t.is(written().length, length);
  t.is(log.filter((line) => line.includes('Forbidden')).length, 1);
  t.is(log.filter((line) => line.includes('Cannot write the status of an AddressPool')).length, 2);
});

test('PoolStatusWriter retries when the API server cannot be reached', async (t) => {
  const { api, clock, log, write, written } = start();
  api.fault = () => {
    throw new Error('No server answers');
  };
  await write();
  t.regex(log.join(''), /No server answers/);
  api.fault = () => answer(200, {});
  await clock.advance(60_000);
  t.deepEqual(written(), ['10', '10']);
});

test('PoolStatusWriter writes nothing after close()', async (t) => {
  const { writer, write, written } = start();
  await writer.close();
  await write(60_000);
  t.deepEqual(written(), []);
});
