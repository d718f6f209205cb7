import test from 'ava';
import { differences } from '../../../../agent/octavia/network/differences.ts';
import type { FoundNetwork } from '../../../../agent/octavia/network/found-network.ts';
import { wantedInterface } from '../../../../agent/octavia/network/wanted-interface.ts';
import { fixed, plugged, VIP_MAC } from '../../../support/octavia/plugs.ts';

const WANTED = wantedInterface(plugged(), 'SINGLE');
const LINK = { name: 'eth1', index: 3, mac: VIP_MAC, mtu: 1400, isUp: true };
const STATIC = 4;
const EMPTY: FoundNetwork = {
  links: [{ ...LINK, mtu: 1500, isUp: false }],
  addresses: [],
  routes: [],
  rules: [],
};

/** What is there when all steps are made. */
const DONE: FoundNetwork = {
  links: [LINK],
  addresses: WANTED.addresses.map((each) => ({
    ...each,
    device: 'eth1',
    isPermanent: true,
    isTentative: false,
  })),
  routes: WANTED.routes.map((route) => ({ ...route, device: 'eth1', protocol: STATIC })),
  rules: (WANTED.rules ?? []).map((rule) => ({ ...rule, priority: 32_765, protocol: STATIC })),
};

const linesOf = (found: FoundNetwork, wanted = WANTED): readonly string[] =>
  differences(wanted, found).map(({ line }) => line);

test('differences() has a step for each thing of a new interface', (t) => {
  t.deepEqual(linesOf(EMPTY), [
    'link set dev eth1 mtu 1400 up',
    'address add 10.9.0.21/16 dev eth1',
    'address add 10.9.0.100/32 dev eth1',
    'route add 0.0.0.0/0 dev eth1 via 10.9.0.1 onlink table 254 proto static',
    'route add 0.0.0.0/0 dev eth1 via 10.9.0.1 onlink table 1 proto static',
    'route add 10.9.0.0/16 dev eth1 scope link table 254 proto static',
    'route add 10.9.0.0/16 dev eth1 scope link src 10.9.0.100 table 1 proto static',
    'route add 10.50.0.0/24 dev eth1 via 10.9.0.2 onlink table 254 proto static',
    'route add 10.50.0.0/24 dev eth1 via 10.9.0.2 onlink table 1 proto static',
    'rule add from 10.9.0.100 table 1 protocol static',
  ]);
});

test('differences() has no step if all is there', (t) => {
  t.deepEqual(linesOf(DONE), []);
});

test('differences() changes a gateway in place and removes what is gone', (t) => {
  const vip = fixed({ address: '10.9.0.101', subnet: '10.9.0.0/16', gateway: '10.9.0.254' });
  const wanted = wantedInterface(plugged({ vip }), 'SINGLE');
  t.deepEqual(linesOf(DONE, wanted).toSorted(), [
    'address add 10.9.0.101/32 dev eth1',
    'address del 10.9.0.100/32 dev eth1',
    'route del 10.50.0.0/24 dev eth1 via 10.9.0.2 onlink table 1 proto static',
    'route del 10.50.0.0/24 dev eth1 via 10.9.0.2 onlink table 254 proto static',
    'route replace 0.0.0.0/0 dev eth1 via 10.9.0.254 onlink table 1 proto static',
    'route replace 0.0.0.0/0 dev eth1 via 10.9.0.254 onlink table 254 proto static',
    'route replace 10.9.0.0/16 dev eth1 scope link src 10.9.0.101 table 1 proto static',
    'rule add from 10.9.0.101 table 1 protocol static',
    'rule del from 10.9.0.100 table 1 protocol static',
  ]);
});

test('differences() leaves what keepalived, the kernel and a router have set', (t) => {
  const wanted = wantedInterface(plugged(), 'ACTIVE_STANDBY');
  const own = {
    ...DONE,
    addresses: DONE.addresses.filter(({ address }) =>
      wanted.addresses.some((each) => each.address === address),
    ),
    routes: wanted.routes.map((route) => ({ ...route, device: 'eth1', protocol: STATIC })),
    rules: [],
  };
  const found: FoundNetwork = {
    ...own,
    addresses: [
      ...own.addresses,
      { device: 'eth1', address: '10.9.0.100', prefix: 32, isPermanent: true, isTentative: false },
      { device: 'eth1', address: 'fe80::1', prefix: 64, isPermanent: false, isTentative: false },
      { device: 'eth2', address: '10.20.0.9', prefix: 24, isPermanent: true, isTentative: false },
    ],
    routes: [
      ...own.routes.filter(({ table }) => table !== 1),
      {
        table: 1,
        destination: '10.50.0.0/24',
        gateway: '10.9.0.2',
        source: undefined,
        device: 'eth1',
        protocol: 18,
      },
      {
        table: 1,
        destination: '10.9.0.0/16',
        gateway: undefined,
        source: '10.9.0.100',
        device: 'eth1',
        protocol: 18,
      },
      {
        table: 255,
        destination: '10.9.0.21/32',
        gateway: undefined,
        source: undefined,
        device: 'eth1',
        protocol: 2,
      },
    ],
    rules: [{ from: '10.9.0.100', table: 1, priority: 100, protocol: 18 }],
  };
  t.deepEqual(linesOf(found, wanted), []);
});

test('differences() keeps the rules of the VIPs when an interface for members changes', (t) => {
  const wanted = wantedInterface({ ...plugged(), name: 'eth2', vip: undefined, mtu: undefined }, 'SINGLE');
  t.deepEqual(linesOf({ ...DONE, links: [LINK, { ...LINK, name: 'eth2' }] }, wanted), []);
});
