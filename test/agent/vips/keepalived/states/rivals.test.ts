import test from 'ava';
import { Rivals } from '../../../../../agent/vips/keepalived/states/rivals.ts';
import { FakeClock } from '../../../../support/basics/fake-clock.ts';
import { silentLog } from '../../../../support/values/silent-log.ts';

/** Rivals with an interval of 200 ms, and a function that receives from another master at a time in milliseconds. */
function rivals() {
  const clock = new FakeClock();
  const watched = new Rivals(() => 200, silentLog(), clock);
  const start = clock.monotonic();
  const advanceTo = (at: number): Promise<void> => clock.advance(start + at - clock.monotonic());
  const receive = async (instance: string, at: number): Promise<void> => {
    await advanceTo(at);
    watched.received(instance);
  };
  return { watched, advanceTo, receive };
}

test('Rivals ignores the last advertisements of the earlier master', async (t) => {
  const { watched, receive } = rivals();
  for (const at of [0, 200]) await receive('vrrp-51', at);
  t.deepEqual(watched.instances, []);
  t.is(watched.fault, '');
});

test('Rivals names an instance that keeps receiving from another master, until that master is silent', async (t) => {
  const { watched, advanceTo, receive } = rivals();
  for (let at = 0; at <= 1_000; at += 200) await receive('vrrp-51', at);
  t.deepEqual(watched.instances, ['vrrp-51']);
  t.is(watched.fault, 'Two hosts are master at once: vrrp-51');
  await advanceTo(1_900);
  t.deepEqual(watched.instances, ['vrrp-51']);
  await advanceTo(2_100);
  t.deepEqual(watched.instances, []);
});

test('Rivals does not join advertisements that are far apart', async (t) => {
  const { watched, receive } = rivals();
  for (const at of [0, 5_000, 10_000]) await receive('vrrp-51', at);
  t.deepEqual(watched.instances, []);
});

test('Rivals counts each instance on its own', async (t) => {
  const { watched, receive } = rivals();
  for (let at = 0; at <= 1_000; at += 200) await receive(at === 0 ? 'vrrp-52' : 'vrrp-51', at);
  t.deepEqual(watched.instances, ['vrrp-51']);
});
