import test from 'ava';
import { Rivals } from '../../../../../agent/vips/keepalived/states/rivals.ts';

test('Rivals takes the last words of the master before for none', (t) => {
  const rivals = new Rivals(() => 200);
  rivals.heard('vrrp-51', 0);
  rivals.heard('vrrp-51', 200);
  t.deepEqual(rivals.current(200), []);
});

test('Rivals names an instance that goes on hearing another master, within two seconds, until it is silent', (t) => {
  const rivals = new Rivals(() => 200);
  for (let now = 0; now <= 1_000; now += 200) rivals.heard('vrrp-51', now);
  t.deepEqual(rivals.current(1_000), ['vrrp-51']);
  t.deepEqual(rivals.current(1_900), ['vrrp-51']);
  t.deepEqual(rivals.current(2_100), []);
});

test('Rivals does not join what lies far apart', (t) => {
  const rivals = new Rivals(() => 200);
  for (const now of [0, 5_000, 10_000]) rivals.heard('vrrp-51', now);
  t.deepEqual(rivals.current(10_000), []);
});

test('Rivals keeps instances apart', (t) => {
  const rivals = new Rivals(() => 200);
  for (let now = 0; now <= 1_000; now += 200) rivals.heard(now === 0 ? 'vrrp-52' : 'vrrp-51', now);
  t.deepEqual(rivals.current(1_000), ['vrrp-51']);
});
