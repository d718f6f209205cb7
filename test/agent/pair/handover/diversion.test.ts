import test from 'ava';
import { type Diversion, renderDiversion, renderRemoval } from '../../../../agent/pair/handover/diversion.ts';

const diversion: Diversion = {
  table: 'headgate_handover_51',
  device: 'eth0',
  peer: { ether: '02:00:00:00:00:01', v4: '192.0.2.11', v6: '' },
  vips: ['192.0.2.1', '2001:db8::1'],
  own: [
    { client: '198.51.100.7', clientPort: 40_000, vip: '192.0.2.1', port: 443 },
    { client: '2001:db8:1::7', clientPort: 40_001, vip: '2001:db8::1', port: 443 },
  ],
  forwarded: [{ address: '192.0.2.1', port: 8443 }],
  seconds: 61,
};

test('renderDiversion() passes foreign connections on, but no frame of the peer', (t) => {
  t.is(
    renderDiversion(diversion),
    `table netdev headgate_handover_51
delete table netdev headgate_handover_51
table netdev headgate_handover_51 {
  set vips_v4 { type ipv4_addr; flags timeout; }
  set forwarded_v4 { type ipv4_addr . inet_service; }
  set own_v4 {
    type ipv4_addr . inet_service . ipv4_addr . inet_service
    flags dynamic,timeout
    timeout 122s
    size 262144
  }
  chain in {
    type filter hook ingress device "eth0" priority 0; policy accept;
    ether saddr 02:00:00:00:00:01 accept
    ip daddr . tcp dport @forwarded_v4 accept
    ip daddr @vips_v4 meta l4proto tcp goto v4
  }
  chain v4 {
    tcp flags & (syn | ack | rst | fin) == syn update @own_v4 { ip saddr . tcp sport . ip daddr . tcp dport } accept
    ip saddr . tcp sport . ip daddr . tcp dport @own_v4 accept
    tcp dport 0-65535 fwd ip to 192.0.2.11 device "eth0"
  }
}
add element netdev headgate_handover_51 vips_v4 {
  192.0.2.1 timeout 61s,
}
add element netdev headgate_handover_51 forwarded_v4 {
  192.0.2.1 . 8443,
}
add element netdev headgate_handover_51 own_v4 {
  198.51.100.7 . 40000 . 192.0.2.1 . 443,
}
`,
  );
});

test('renderDiversion() has rules for each family in which the peer has an address', (t) => {
  const text = renderDiversion({ ...diversion, peer: { ...diversion.peer, v6: 'fe80::1' } });
  for (const line of [
    'set vips_v6 { type ipv6_addr; flags timeout; }',
    'ip6 daddr @vips_v6 meta l4proto tcp goto v6',
    'fwd ip6 to fe80::1 device "eth0"',
    '2001:db8::1 timeout 61s,',
    '2001:db8:1::7 . 40001 . 2001:db8::1 . 443,',
  ])
    t.true(text.includes(line), line);
});

test('renderDiversion() adds no elements to empty sets', (t) => {
  t.false(renderDiversion({ ...diversion, vips: [], forwarded: [], own: [] }).includes('add element'));
});

test('renderDiversion() cuts the connections to the size of the set', (t) => {
  const [one] = diversion.own;
  const own = Array.from({ length: 262_145 }, () => one as NonNullable<typeof one>);
  t.is(renderDiversion({ ...diversion, own }).match(/40000/g)?.length, 262_144);
});

test('renderRemoval() removes a table whether or not it exists', (t) => {
  t.is(renderRemoval('x'), 'table netdev x\ndelete table netdev x\n');
});
