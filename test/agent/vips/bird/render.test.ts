import test from 'ava';
import type { VipRoute, Worn } from '../../../../agent/vips/bgp.ts';
import { renderBird, renderVips } from '../../../../agent/vips/bird/render.ts';
import { bgpPeer, bgpSettings } from '../../../support/bgp/bgp-values.ts';

const paths = { vips: { v4: '/run/v4.conf', v6: '/run/v6.conf' } };

test('renderVips() sorts, and gives a route that is worn last the community GRACEFUL_SHUTDOWN', (t) => {
  const vips = [
    ['198.51.100.10', 'first'],
    ['198.51.100.9', 'last'],
    ['2001:db8::1', 'first'],
  ] as const;
  t.is(
    renderVips(vips, 'v4'),
    'route 198.51.100.10/32 blackhole;\nroute 198.51.100.9/32 blackhole { bgp_community.add((65535, 0)); };\n',
  );
  t.is(renderVips([...vips].reverse(), 'v6'), 'route 2001:db8::1/128 blackhole;\n');
});

test('renderBird() makes the path of a last route longer for a peer of another AS, and its preference lower for one of its own', (t) => {
  const external = renderBird(bgpSettings({ peers: [bgpPeer({ prepends: 2 })] }), paths, new Map());
  t.is(external.split('bgp_path.prepend(65001);').length - 1, 2 + 6);
  t.false(external.includes('bgp_local_pref'));
  const internal = renderBird(
    bgpSettings({ peers: [bgpPeer({ asn: 65_001, localPreference: 300 })] }),
    paths,
    new Map(),
  );
  t.false(internal.includes('prepend'));
  t.regex(internal, /bgp_local_pref = 300;\n {2}if \(65535, 0\) ~ bgp_community then bgp_local_pref = 0;/);
});

test('renderBird() writes what a peer has, and nothing of what it does not have', (t) => {
  const plain = renderBird(bgpSettings(), paths, new Map());
  for (const word of [
    'password',
    'bfd',
    'ttl security',
    'multihop',
    'extended next hop',
    'bgp_community.add',
    'ipv6 {\n',
  ])
    t.false(plain.includes(word), word);
  t.regex(plain, /local as 65001;\n {2}neighbor 192\.0\.2\.1 port 179 as 65000;\n {2}direct;/);
  const full = bgpPeer({
    name: 'tor-b',
    address: '2001:db8::1',
    source: '2001:db8::11',
    families: ['v6'],
    multihop: 3,
    ttlSecurity: true,
    bfd: { interval: 100, multiplier: 5 },
    communities: ['65001:100', '65535:65281'],
    largeCommunities: ['65001:1:2'],
  });
  const text = renderBird(bgpSettings({ peers: [full] }), paths, new Map([['tor-b', 'secret']]));
  for (const line of [
    'protocol bfd hg_bfd {\n  strict bind on;\n}',
    'local 2001:db8::11 as 65001;',
    'neighbor 2001:db8::1 port 179 as 65000;',
    'multihop 3;',
    'ttl security on;',
    'password "secret";',
    'bfd { min rx interval 100 ms; min tx interval 100 ms; multiplier 5; };',
    'bgp_community.add((65001, 100));',
    'bgp_community.add((65535, 65281));',
    'bgp_large_community.add((65001, 1, 2));',
    'import none;',
  ])
    t.true(text.includes(line), line);
});

test('renderBird() names the interface of a link-local peer, and carries IPv4 over it', (t) => {
  const peer = bgpPeer({ address: 'fe80::1', interface: 'eth0', families: ['v4', 'v6'] });
  const text = renderBird(bgpSettings({ peers: [peer] }), paths, new Map());
  t.true(text.includes('neighbor fe80::1 port 179 as 65000;\n  interface "eth0";'));
  t.is(text.split('extended next hop on;').length, 2);
});

test('renderBird() has a BFD session with each other host, between the back addresses', (t) => {
  const [self, other] = [
    { name: 'lb1', address: '192.0.2.11', back: ['10.9.9.1', 'fd09::1'], anchors: [] },
    { name: 'lb2', address: '192.0.2.12', back: ['10.9.9.2', 'fd09::2'], anchors: [] },
  ] as const;
  const text = renderBird(bgpSettings(), paths, new Map(), { self, hosts: [self, other] });
  const expected = `protocol bfd hg_bfd {
  strict bind on;
  interface "*" { min rx interval 50 ms; min tx interval 50 ms; multiplier 3; };
  neighbor 10.9.9.2 local 10.9.9.1;
}
`;
  t.true(text.includes(expected));
  const plain = {
    self: { ...self, back: [] },
    hosts: [
      { ...self, back: [] },
      { ...other, back: [] },
    ],
  };
  t.false(renderBird(bgpSettings(), paths, new Map(), plain).includes('bfd'));
});

test('renderBird() makes the path to an anchor longer, or the preference lower, for each host in between', (t) => {
  const hosts = ['lb1', 'lb2'].map((name) => ({ name, address: '', back: [], anchors: ['10.77.0.1'] }));
  const group = { self: hosts[0] as (typeof hosts)[0], hosts };
  const of = (asn: number) => renderBird(bgpSettings({ peers: [bgpPeer({ asn })] }), paths, new Map(), group);
  const external = of(65_000).split('(generic, 0x43484701, 2) ~ bgp_ext_community then {')[1] ?? '';
  t.is(external.split('}')[0]?.match(/bgp_path.prepend\(65001\);/g)?.length, 2);
  t.regex(of(65_001), /\(generic, 0x43484701, 2\) ~ bgp_ext_community then \{\n {4}bgp_local_pref = 98;/);
});

const RULES: VipRoute = {
  ...{ whyNot: '', peers: ['tor-a'], communities: ['65001:7'], largeCommunities: ['65001:1:2'] },
  ...{ localPreference: 200, aggregate: '198.51.100.0/24' },
};

test('renderVips() gives a route what its pool says, and an aggregate is worn last only if all VIPs inside are', (t) => {
  const lines = (...worn: readonly Worn[]) =>
    renderVips(
      worn.map((each, at) => [`198.51.100.${at + 1}`, each] as const),
      'v4',
      () => RULES,
    ).split('\n');
  const [network, first, second] = lines('last', 'first');
  const rest =
    'bgp_community.add((65001, 7)); bgp_large_community.add((65001, 1, 2)); bgp_local_pref = 200; bgp_ext_community.add((generic, 0x43484700, 4208764198));';
  t.is(network, `route 198.51.100.0/24 blackhole { ${rest} };`);
  t.is(first, `route 198.51.100.1/32 blackhole { bgp_community.add((65535, 0)); ${rest} };`);
  t.is(second, `route 198.51.100.2/32 blackhole { ${rest} };`);
  t.true(lines('last', 'last')[0]?.includes('(65535, 0)'));
  t.deepEqual(lines(), ['']);
});

test('renderBird() lets aggregates of pools leave, and nothing else besides VIPs', (t) => {
  const text = renderBird(
    bgpSettings({ aggregates: ['198.51.100.0/22{24,24}', '2001:db8::/48{64,64}'] }),
    paths,
    new Map(),
  );
  t.true(
    text.includes('if net.type = NET_IP4 && net.len != 32 && net !~ [ 198.51.100.0/22{24,24} ] then reject;'),
  );
  t.true(
    text.includes('if net.type = NET_IP6 && net.len != 128 && net !~ [ 2001:db8::/48{64,64} ] then reject;'),
  );
});
