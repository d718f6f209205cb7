import test from 'ava';
import { UnreachedVips } from '../../../../agent/vips/bird/unreached-vips.ts';

function book() {
  const time = { ms: 0 };
  const reached = new Set<string>();
  const vips = new UnreachedVips({ isReached: (address) => reached.has(address), now: () => time.ms });
  const look = (...announced: readonly string[]) =>
    vips.look(new Map(announced.map((each) => [each, 'first'])));
  return { time, reached, vips, look };
}

test('A VIP that no router has counts after three seconds, and no more once a router has it', (t) => {
  const { time, reached, vips, look } = book();
  reached.add('198.51.100.2');
  t.deepEqual(look('198.51.100.1', '198.51.100.2'), []);
  time.ms = 2_999;
  t.deepEqual(look('198.51.100.1', '198.51.100.2'), []);
  time.ms = 3_000;
  t.deepEqual(look('198.51.100.1', '198.51.100.2'), ['198.51.100.1']);
  t.deepEqual(look('198.51.100.1', '198.51.100.2'), []);
  t.true(vips.has('198.51.100.1'));
  reached.add('198.51.100.1');
  t.deepEqual(look('198.51.100.1', '198.51.100.2'), ['198.51.100.1']);
  t.is(vips.size, 0);
});

test('A VIP that is not announced does not count, and a session that ends for a moment begins a new time', (t) => {
  const { time, reached, vips, look } = book();
  look('198.51.100.1');
  time.ms = 2_000;
  reached.add('198.51.100.1');
  look('198.51.100.1');
  reached.clear();
  time.ms = 4_000;
  t.deepEqual(look('198.51.100.1'), []);
  time.ms = 7_000;
  t.deepEqual(look('198.51.100.1'), ['198.51.100.1']);
  t.deepEqual(look(), ['198.51.100.1']);
  t.false(vips.has('198.51.100.1'));
});
