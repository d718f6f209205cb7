import test from 'ava';
import fc from 'fast-check';
import type { HostGroup } from '../../../../agent/model/host-group.ts';
import { ringOf } from '../../../../agent/vips/passing/ring.ts';

const group = (count: number, at: number): HostGroup => {
  const hosts = Array.from({ length: count }, (_, each) => ({
    name: `host-${String(each).padStart(2, '0')}`,
    address: `192.0.2.${each + 1}`,
    back: [`10.9.9.${each + 1}`],
    anchors: [],
  }));
  const [self] = hosts.slice(at);
  if (self === undefined) throw new Error('No such host');
  return { self, hosts };
};

test('ringOf() passes to the next living host, and has none if no other lives', (t) => {
  t.deepEqual(ringOf(group(3, 0), new Set(['host-00', 'host-01', 'host-02'])), {
    ...{ next: 'host-01', own: 3 },
    ...{ before: [11], all: [3, 7, 11] },
  });
  t.like(ringOf(group(3, 2), new Set(['host-02', 'host-01'])), { next: 'host-01', own: 11, before: [] });
  t.like(ringOf(group(3, 1), new Set(['host-01'])), { next: '', before: [] });
});

test('A packet reaches every living host once, wherever it comes in, and none twice while hosts disagree on who lives', (t) => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 16 }),
      fc.func(fc.boolean()),
      fc.boolean(),
      fc.nat(),
      (count, lives, isAgreed, from) => {
        const names = group(count, 0).hosts.map(({ name }) => name);
        const first = from % count;
        const seenBy = (at: number): ReadonlySet<string> =>
          new Set(
            names.filter(
              (name, each) => each === first || each === at || lives(isAgreed ? name : [at, name]),
            ),
          );
        const seen = [first];
        const start = ringOf(group(count, first), seenBy(first));
        let at = start === undefined ? -1 : names.indexOf(start.next);
        while (at >= 0) {
          if (seen.includes(at)) return false;
          seen.push(at);
          const ring = ringOf(group(count, at), seenBy(at));
          at = ring?.before.includes(start?.own ?? 0) === true ? names.indexOf(ring.next) : -1;
        }
        return !isAgreed || names.every((name, each) => seen.includes(each) || !seenBy(first).has(name));
      },
    ),
  );
  t.pass();
});
