import test from 'ava';
import { parseAddresses } from '../../../agent/vips/host-addresses.ts';
import { usableVips } from '../../../agent/vips/usable.ts';
import type { VrrpSettings } from '../../../agent/vips/vrrp.ts';

const VRRP: VrrpSettings = {
  interface: 'eth0',
  address: '192.0.2.11',
  peers: ['192.0.2.12'],
  advertInterval: 200,
  instances: [{ virtualRouterId: 51, priority: 200, anchors: ['192.0.2.1'] }],
};

test('usableVips() refuses the addresses of the hosts, with the reason', (t) => {
  const host = [
    { address: '192.0.2.50', prefix: 24, interface: 'eth0' },
    { address: '192.0.2.51', prefix: 32, interface: 'lo' },
  ];
  const asked = ['192.0.2.11', '192.0.2.12', '192.0.2.50', '192.0.2.51', '198.51.100.1'];
  const { usable, refused } = usableVips(asked, VRRP, host, new Set());
  t.deepEqual(usable, ['198.51.100.1']);
  t.deepEqual(
    refused.map(({ address }) => address),
    ['192.0.2.11', '192.0.2.12', '192.0.2.50', '192.0.2.51'],
  );
  t.is(refused[2]?.reason, "it is this host's own, on eth0");
});

test('usableVips() accepts an address that keepalived has put on the host, but not with the prefix of a network', (t) => {
  const vip = '198.51.100.1';
  const held = [{ address: vip, prefix: 32, interface: 'eth0' }];
  t.deepEqual(usableVips([vip], VRRP, held, new Set([vip])).usable, [vip]);
  const own = [{ address: vip, prefix: 24, interface: 'eth0' }];
  t.deepEqual(usableVips([vip], VRRP, own, new Set([vip])).usable, []);
});

test('usableVips() leaves out anchors and refuses addresses that no other host can reach', (t) => {
  const nowhere = [
    '127.0.0.1',
    '169.254.169.254',
    '0.0.0.0',
    '224.0.0.18',
    '255.255.255.255',
    '::1',
    '::',
    'fe80::1',
    'ff02::12',
  ];
  const { usable, refused } = usableVips(
    ['192.0.2.1', ...nowhere, 'fd00::1', '2001:db8::1'],
    VRRP,
    [],
    new Set(),
  );
  t.deepEqual(usable, ['fd00::1', '2001:db8::1']);
  t.deepEqual(
    refused.map(({ address }) => address),
    nowhere,
  );
});

test('parseAddresses() reads the JSON of ip', (t) => {
  const json =
    '[{"ifindex":1,"ifname":"lo","addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8}]},{},{"ifname":"eth0","addr_info":[{"family":"inet6","local":"fd09::1:1","prefixlen":128},{}]}]';
  t.deepEqual(parseAddresses(json), [
    { address: '127.0.0.1', prefix: 8, interface: 'lo' },
    { address: 'fd09::1:1', prefix: 128, interface: 'eth0' },
  ]);
});

test('usableVips() refuses IPv6 addresses on an interface without IPv6, as unavailable', (t) => {
  const { usable, refused } = usableVips(['198.51.100.1', '2001:db8::1'], VRRP, [], new Set(), false);
  t.deepEqual(usable, ['198.51.100.1']);
  t.deepEqual(refused, [
    {
      address: '2001:db8::1',
      reason: 'IPv6 is off on eth0 (sysctl net.ipv6.conf.eth0.disable_ipv6), or this host has none',
      isUnavailable: true,
    },
  ]);
});
