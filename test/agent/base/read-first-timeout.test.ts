import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import test from 'ava';
import { ReadFirstTimeout } from '../../../agent/base/read-first-timeout.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';

/** Blocks the event loop for so many milliseconds. */
function stall(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

test('ReadFirstTimeout calls back once if nothing arrives, and not after end()', async (t) => {
  const over: string[] = [];
  const clock = new FakeClock();
  const came = new ReadFirstTimeout(() => over.push('came'), clock);
  const missed = new ReadFirstTimeout(() => over.push('missed'), clock);
  came.wait(10);
  came.end();
  t.false(came.isWaiting);
  missed.wait(20);
  await clock.advance(19);
  t.true(missed.isWaiting);
  await clock.advance(1_000);
  t.false(missed.isWaiting);
  t.deepEqual(over, ['missed']);
});

test('ReadFirstTimeout lets Node read what arrived during a stall of the process', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  t.teardown(() => server.close());
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [peer] = (await accepted) as [Socket];
  t.teardown(() => {
    for (const one of [socket, peer]) one.destroy();
  });
  const { promise, resolve } = Promise.withResolvers<string>();
  const patience = new ReadFirstTimeout(() => resolve('missed'));
  socket.on('data', () => {
    patience.end();
    resolve('came');
  });
  patience.wait(20);
  peer.write('!');
  stall(100);
  t.is(await promise, 'came');
});
