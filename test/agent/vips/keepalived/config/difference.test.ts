import test from 'ava';
import fc from 'fast-check';
import { frameOf, instancesIn } from '../../../../../agent/vips/keepalived/config/config-text.ts';
import { differenceOf } from '../../../../../agent/vips/keepalived/config/difference.ts';
import { keepalivedPaths } from '../../../../../agent/vips/keepalived/paths.ts';
import { renderKeepalived } from '../../../../../agent/vips/keepalived/render.ts';
import type { InstanceDump } from '../../../../../agent/vips/keepalived/states/dump.ts';
import type { VrrpSettings } from '../../../../../agent/vips/vrrp.ts';

const PATHS = keepalivedPaths('/s', '/r');
const VRRP: VrrpSettings = {
  interface: 'eth0',
  address: '192.0.2.11',
  peers: ['192.0.2.12'],
  advertInterval: 200,
  instances: [{ virtualRouterId: 51, priority: 210, anchors: ['192.0.2.1', '2001:db8::1'] }],
};
const TEXT = renderKeepalived(VRRP, PATHS, ['198.51.100.1', '198.51.100.2']);
const ALL = ['192.0.2.1', '2001:db8::1', '198.51.100.1', '198.51.100.2'];

/** A keepalived that has what the text says. */
const DUMP: InstanceDump = {
  name: 'vrrp-51',
  state: 'master',
  lastTransition: 0,
  basePriority: 210,
  priority: 210,
  advertInterval: 200,
  addresses: new Set(ALL),
  set: new Set(ALL),
  advertsReceived: 0,
  advertsSent: 0,
  becameMaster: 1,
};

const differs = test.macro({
  exec: (t, change: Partial<InstanceDump>, difference: string) => {
    t.is(differenceOf([{ ...DUMP, ...change }], TEXT), difference);
  },
  title: (what) => `differenceOf() ${what}`,
});

test('finds none where keepalived has what its file says', differs, {}, '');
test('does not mind by how much a host is lowered', differs, { priority: 57 }, '');
test('finds an instance of another name', differs, { name: 'vrrp-61' }, 'it has no instance vrrp-51');
test('finds another priority', differs, { basePriority: 200 }, 'vrrp-51 has another priority or interval');
test(
  'finds another interval',
  differs,
  { advertInterval: 1_000 },
  'vrrp-51 has another priority or interval',
);
test(
  'names an address that is missing',
  differs,
  { addresses: new Set(ALL.slice(0, 3)) },
  'vrrp-51 lacks 1 addresses, 198.51.100.2 for one',
);
test(
  'counts addresses that are too many',
  differs,
  { addresses: new Set([...ALL, '198.51.100.3']) },
  'vrrp-51 has 1 addresses too many',
);
test(
  'finds what a master has not put on the interface',
  differs,
  { set: new Set(ALL.slice(0, 1)) },
  '3 addresses of vrrp-51 are not on the interface',
);
test('has a backup hold nothing', differs, { state: 'backup', set: new Set<string>() }, '');

test('differenceOf() finds an instance too many or too few', (t) => {
  t.is(differenceOf([], TEXT), 'it has 0 instances instead of 1');
  t.is(differenceOf([DUMP, { ...DUMP, name: 'vrrp-52' }], TEXT), 'it has 2 instances instead of 1');
});

test('instancesIn() reads back from a text what it was made of', (t) => {
  const settings = fc.record({
    priority: fc.integer({ min: 200, max: 250 }),
    advertInterval: fc.integer({ min: 10, max: 1_000 }).map((tens) => tens * 10),
    vips: fc.uniqueArray(fc.nat(255).map((last) => `198.51.100.${last}`)),
  });
  t.notThrows(() =>
    fc.assert(
      fc.property(settings, ({ priority, advertInterval, vips }) => {
        const instances = [{ virtualRouterId: 7, priority, anchors: ['192.0.2.1'] }];
        const text = renderKeepalived({ ...VRRP, advertInterval, instances }, PATHS, vips);
        const read = instancesIn(text);
        const only = read.get('vrrp-7');
        return (
          read.size === 1 &&
          only?.priority === priority &&
          only.advertInterval === advertInterval &&
          [...only.addresses].sort().join() === ['192.0.2.1', ...vips].sort().join()
        );
      }),
    ),
  );
});

test('frameOf() is the same whatever the VIPs are, and another one for other settings', (t) => {
  t.is(frameOf(TEXT), frameOf(renderKeepalived(VRRP, PATHS, [])));
  t.not(frameOf(TEXT), frameOf(renderKeepalived({ ...VRRP, advertInterval: 210 }, PATHS, [])));
});
