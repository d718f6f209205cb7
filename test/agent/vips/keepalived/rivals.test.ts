import test from 'ava';
import { Rivals } from '../../../../agent/vips/keepalived/rivals.ts';

test('Rivals ignores the last advertisements of the earlier master', (t) => {
  const rivals = new Rivals(() => 200);
  rivals.received('vrrp-51', 0);
  rivals.received('vrrp-51', 200);
  t.deepEqual(rivals.current(200), []);
});

test('Rivals names an instance that keeps receiving from another master, until that master is silent', (t) => {
  const rivals = new Rivals(() => 200);
  for (let now = 0; now <= 1_000; now += 200) rivals.received('vrrp-51', now);
  t.deepEqual(rivals.current(1_000), ['vrrp-51']);
  t.deepEqual(rivals.current(1_900), ['vrrp-51']);
  t.deepEqual(rivals.current(2_100), []);
});

test('Rivals does not join advertisements that are far apart', (t) => {
  const rivals = new Rivals(() => 200);
  for (const now of [0, 5_000, 10_000]) rivals.received('vrrp-51', now);
  t.deepEqual(rivals.current(10_000), []);
});

test('Rivals counts each instance on its own', (t) => {
  const rivals = new Rivals(() => 200);
  for (let now = 0; now <= 1_000; now += 200) rivals.received(now === 0 ? 'vrrp-52' : 'vrrp-51', now);
  t.deepEqual(rivals.current(1_000), ['vrrp-51']);
});
