import test from 'ava';
import fc from 'fast-check';
import {
  differenceOf,
  frameOf,
  instancesIn,
} from '../../../../../agent/vips/keepalived/files/config-text.ts';
import { renderKeepalived } from '../../../../../agent/vips/keepalived/files/render.ts';
import { keepalivedPaths } from '../../../../../agent/vips/keepalived/paths.ts';
import type { InstanceDump } from '../../../../../agent/vips/keepalived/process/dump.ts';
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

/** A keepalived with the state of the text. */
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

test('gives nothing if keepalived matches its file', differs, {}, '');
test('ignores a lowered priority', differs, { priority: 57 }, '');
test('finds an instance of another name', differs, { name: 'vrrp-61' }, 'it has no instance vrrp-51');
test('finds another priority', differs, { basePriority: 200 }, 'vrrp-51 has another priority or interval');
test(
  'finds another interval',
  differs,
  { advertInterval: 1_000 },
  'vrrp-51 has another priority or interval',
);
test(
  'names a missing address',
  differs,
  { addresses: new Set(ALL.slice(0, 3)) },
  'vrrp-51 lacks 1 addresses, 198.51.100.2 for one',
);
test(
  'counts excess addresses',
  differs,
  { addresses: new Set([...ALL, '198.51.100.3']) },
  'vrrp-51 has 1 addresses too many',
);
test(
  'counts the addresses that a master has not put on the interface',
  differs,
  { set: new Set(ALL.slice(0, 1)) },
  '3 addresses of vrrp-51 are not on the interface',
);
test(
  'expects no addresses on the interface of a backup',
  differs,
  { state: 'backup', set: new Set<string>() },
  '',
);

test('differenceOf() finds an instance too many or too few', (t) => {
  t.is(differenceOf([], TEXT), 'it has 0 instances instead of 1');
  t.is(differenceOf([DUMP, { ...DUMP, name: 'vrrp-52' }], TEXT), 'it has 2 instances instead of 1');
});

test('instancesIn() reads the settings and VIPs of a rendered text', (t) => {
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

test('frameOf() depends on the settings and not on the VIPs', (t) => {
  t.is(frameOf(TEXT), frameOf(renderKeepalived(VRRP, PATHS, [])));
  t.not(frameOf(TEXT), frameOf(renderKeepalived({ ...VRRP, advertInterval: 210 }, PATHS, [])));
});
