import test from 'ava';
import fc from 'fast-check';
import { addressesIn, changeOf, heldIn } from '../../../../../agent/vips/keepalived/files/config-text.ts';
import { renderKeepalived } from '../../../../../agent/vips/keepalived/files/render.ts';
import { keepalivedPaths } from '../../../../../agent/vips/keepalived/paths.ts';
import type { VrrpSettings } from '../../../../../agent/vips/vrrp.ts';

const PATHS = keepalivedPaths('/s', '/r');

const addresses = fc.uniqueArray(
  fc.oneof(
    fc.tuple(fc.nat(255), fc.nat(255)).map(([a, b]) => `198.51.${a}.${b}`),
    fc.integer({ min: 1, max: 0xffff }).map((n) => `2001:db8::${n.toString(16)}`),
  ),
  { maxLength: 30 },
);

const settings: fc.Arbitrary<VrrpSettings> = fc
  .record({ count: fc.integer({ min: 1, max: 3 }), priority: fc.integer({ min: 200, max: 250 }) })
  .map(({ count, priority }) => ({
    interface: 'eth0',
    address: '192.0.2.11',
    peers: ['192.0.2.12'],
    advertInterval: 200,
    instances: Array.from({ length: count }, (_, at) => ({
      virtualRouterId: 51 + at,
      priority,
      anchors: [`192.0.2.${1 + at}`],
    })),
  }));

test('changeOf() gives none for an equal text, and settings if there was no text', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(settings, addresses, (vrrp, vips) => {
        const text = renderKeepalived(vrrp, PATHS, vips);
        return changeOf(text, text).kind === 'none' && changeOf(undefined, text).kind === 'settings';
      }),
    ),
  );
});

test('changeOf() names exactly the added and removed VIPs', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(settings, addresses, addresses, (vrrp, before, after) => {
        const [old, desired] = [renderKeepalived(vrrp, PATHS, before), renderKeepalived(vrrp, PATHS, after)];
        const change = changeOf(old, desired);
        if (change.kind === 'none') return old === desired;
        if (change.kind === 'settings') return false;
        const held = new Set(heldIn(old));
        for (const address of change.removed) if (!held.delete(address)) return false;
        for (const address of change.added) {
          if (held.has(address)) return false;
          held.add(address);
        }
        return sorted(held) === sorted(heldIn(desired));
      }),
    ),
  );
});

test('changeOf() gives settings if the settings have changed', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(settings, addresses, (vrrp, vips) => {
        const old = renderKeepalived(vrrp, PATHS, vips);
        const other = renderKeepalived({ ...vrrp, peers: ['192.0.2.13'] }, PATHS, vips);
        return changeOf(old, other).kind === 'settings';
      }),
    ),
  );
});

test('renderKeepalived() gives each VIP to one instance, the same on both hosts and in any order', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(settings, addresses, (vrrp, vips) => {
        const text = renderKeepalived(vrrp, PATHS, vips);
        const instances = [...vrrp.instances].reverse();
        const reversed = renderKeepalived({ ...vrrp, instances }, PATHS, [...vips].reverse());
        const all = [...addressesIn(text).values()].flatMap((each) => [...each]);
        const anchors = vrrp.instances.flatMap((each) => each.anchors);
        return text === reversed && sorted(all) === sorted([...vips, ...anchors]);
      }),
    ),
  );
});

test('renderKeepalived() does not move a VIP to another instance when other VIPs are added or removed', (t) => {
  t.notThrows(() =>
    fc.assert(
      fc.property(settings, addresses, addresses, (vrrp, some, more) => {
        const few = addressesIn(renderKeepalived(vrrp, PATHS, some));
        const many = addressesIn(renderKeepalived(vrrp, PATHS, [...some, ...more]));
        return [...few].every(([name, each]) => [...each].every((address) => many.get(name)?.has(address)));
      }),
    ),
  );
});

function sorted(all: Iterable<string>): string {
  return [...all].sort().join();
}
