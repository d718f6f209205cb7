import test from 'ava';
import { bgpSettings } from '../../../agent/settings/announce.ts';
import { bgp } from '../../../agent/settings/bgp.ts';

const { read, write } = bgp();

const peer = { address: '192.0.2.1', asn: 65_000 };
const whole = { asn: 65_001, routerId: '192.0.2.11', peers: [peer] };

function valid(given: unknown) {
  const reading = read(given, '/etc/headgate');
  if ('errors' in reading) throw new Error(reading.errors.join('\n'));
  return reading.value;
}

function faultsOf(given: unknown): string {
  const reading = read(given, '/');
  return 'errors' in reading ? reading.errors.join('\n') : '';
}

test('The setting bgp needs little, and has defaults for the rest', (t) => {
  t.like(valid(whole), { asn: 65_001, holdTime: 9_000, routeLimit: 10_000 });
  t.deepEqual(valid(whole)?.peers, [
    {
      name: 'peer-1',
      address: '192.0.2.1',
      interface: '',
      source: '',
      localPort: 179,
      asn: 65_000,
      port: 179,
      families: ['v4'],
      passwordFile: '',
      multihop: 0,
      ttlSecurity: false,
      bfd: undefined,
      communities: [],
      largeCommunities: [],
      localPreference: undefined,
      prepends: 0,
    },
  ]);
  t.is(valid(''), undefined);
});

test('The setting bgp is the same after it is written', (t) => {
  const full = {
    ...whole,
    holdTime: '30s',
    peers: [
      {
        ...peer,
        name: 'tor-a',
        source: '192.0.2.11',
        multihop: 2,
        bfd: { interval: '100ms' },
        communities: ['65001:100', 'no-export'],
        largeCommunities: ['65001:1:2'],
        passwordFile: 'password',
        ttlSecurity: true,
        prepends: 3,
      },
      { address: 'fe80::1', interface: 'eth0', asn: 65_001, localPreference: 200, bfd: true },
    ],
  };
  const value = valid(full);
  t.is(value?.peers[0]?.passwordFile, '/etc/headgate/password');
  t.deepEqual(value?.peers[0]?.communities, ['65001:100', '65535:65281']);
  t.deepEqual(value?.peers[1]?.families, ['v4', 'v6']);
  t.deepEqual(value?.peers[1]?.bfd, { interval: 300, multiplier: 3 });
  t.deepEqual(valid(write(value)), value);
});

const refuses = test.macro({
  exec: (t, change: object, ofPeer: object, expected: string) => {
    t.is(faultsOf({ ...whole, peers: [{ ...peer, ...ofPeer }], ...change }), expected);
  },
  title: (_, change: object, ofPeer: object) =>
    `The setting bgp refuses ${JSON.stringify({ ...change, ...ofPeer })}`,
});

test(refuses, { asn: 0 }, {}, 'asn: 0 is not a whole number from 1 to 4294967294');
test(refuses, { asn: 23_456 }, {}, 'asn: 23456 is a reserved ASN');
test(refuses, { routerId: 'fd00::1' }, {}, 'routerId: "fd00::1" is not an IPv4 address');
test(
  refuses,
  { holdTime: '1s' },
  {},
  'holdTime: "1s" is not a duration with its unit (ms, s, m, h or d) from 3s to 3m, in whole seconds',
);
test(
  refuses,
  { peers: Array.from({ length: 17 }, (_, at) => ({ ...peer, address: `192.0.2.${at + 1}` })) },
  {},
  'peers: at most 16 peers are allowed',
);
test(refuses, { hold: 1 }, {}, 'hold: Unknown key');
test(refuses, {}, { adress: '192.0.2.2' }, 'peers[0].adress: Unknown key, the nearest is "address"');
test(
  refuses,
  {},
  { name: 'Tor A' },
  'peers[0].name: "Tor A" is not a name of at most 30 lower-case letters, digits and dashes',
);
test(
  refuses,
  {},
  { address: 'fe80::1' },
  'peers[0].interface: missing, must name the interface of the link-local address fe80::1',
);
test(
  refuses,
  {},
  { interface: 'eth0' },
  'peers[0].interface: "eth0" is only for a link-local address, and 192.0.2.1 is none',
);
test(
  refuses,
  {},
  { interface: 'eth0"; }' },
  'peers[0].interface: "eth0\\"; }" is not the name of a network interface',
);
test(
  refuses,
  {},
  { multihop: 2, bfd: true },
  'peers[0].source: missing, must be an address of this host: BFD over several hops needs it',
);
test(
  refuses,
  {},
  { localPort: 1790 },
  'peers[0].source: missing, must be an address of this host that localPort 1790 is of',
);
test(
  refuses,
  {},
  { families: ['ipv6'] },
  'peers[0].families: ipv6 needs a session over IPv6: add a peer with an IPv6 address',
);
test(
  refuses,
  {},
  { communities: ['1:2:3'] },
  'peers[0].communities[0]: "1:2:3" is not a community such as 65001:100, no-export or no-advertise',
);
test(
  refuses,
  {},
  { localPreference: 200 },
  "peers[0].localPreference: 200 is only for a peer of this host's own ASN, 65001, not of 65000",
);
test(
  refuses,
  {},
  { asn: 65_001, prepends: 1 },
  "peers[0].prepends: 1 is only for a peer of another ASN than this host's own, 65001",
);
test(refuses, { peers: [peer, peer] }, {}, 'peers: the address "192.0.2.1" is used twice');

test('bgpSettings() refuses BGP beside VRRP or a pair, and is undefined without `announce: bgp`', (t) => {
  const none = {
    announce: 'vrrp',
    bgp: undefined,
    vrrp: undefined,
    pairPeer: '',
    externalAnnouncer: false,
    hosts: [],
    ...{ kubeconfig: '', inCluster: false, manifests: [] },
  } as const;
  t.is(bgpSettings(none), undefined);
  t.throws(() => bgpSettings({ ...none, bgp: valid(whole) }), {
    message: /announce: "vrrp" does not go with bgp/,
  });
  t.throws(() => bgpSettings({ ...none, announce: 'bgp' }), { message: /bgp: missing/ });
  const withoutPeers = { ...none, announce: 'bgp', bgp: valid({ ...whole, peers: [] }) } as const;
  t.throws(() => bgpSettings(withoutPeers), { message: /bgp: peers: at least one router is needed without/ });
  t.is(bgpSettings({ ...withoutPeers, inCluster: true })?.asn, 65_001);
  t.throws(
    () =>
      bgpSettings({
        ...none,
        announce: 'bgp',
        bgp: valid(whole),
        pairPeer: '192.0.2.2',
        externalAnnouncer: true,
      }),
    {
      message: /pairPeer: does not go with.*\n {2}externalAnnouncer: does not go with/,
    },
  );
  t.is(bgpSettings({ ...none, announce: 'bgp', bgp: valid(whole) })?.asn, 65_001);
  const both = { ...none, announce: 'both', bgp: valid(whole) } as const;
  t.throws(() => bgpSettings(both), { message: /vrrp: missing, must be a mapping if announce is "both"/ });
  const vrrp = {
    ...{ interface: 'eth0', address: '192.0.2.11', peers: ['192.0.2.12'], advertInterval: 100 },
    instances: [],
  };
  t.is(bgpSettings({ ...both, vrrp, pairPeer: '192.0.2.12' })?.asn, 65_001);
  const hosts = [{ name: 'lb1', address: '192.0.2.11', back: [], anchors: [] }];
  t.is(bgpSettings({ ...both, vrrp, hosts })?.asn, 65_001);
  t.throws(() => bgpSettings({ ...both, vrrp, hosts, pairPeer: '192.0.2.12' }), {
    message: /pairPeer: does not go with hosts/,
  });
});
