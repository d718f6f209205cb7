import test from 'ava';
import { packetRules } from '../../../../agent/octavia/network/packet-rules.ts';
import { plugged } from '../../../support/octavia/plugs.ts';

const MEMBERS = { ...plugged(), name: 'eth2', vip: undefined };

test('packetRules() removes the table if nothing is plugged', (t) => {
  t.is(packetRules([]), 'table inet headgate_amphora\ndelete table inet headgate_amphora\n');
});

test('packetRules() does not track TCP, and masquerades UDP and SCTP', (t) => {
  const text = packetRules([plugged(), MEMBERS]);
  t.regex(text, /iifname \{ "eth1", "eth2" \} meta l4proto tcp notrack/);
  t.regex(text, /oifname \{ "eth1", "eth2" \} meta l4proto tcp notrack/);
  t.regex(text, /oifname \{ "eth1", "eth2" \} meta l4proto \{ udp, sctp \} masquerade/);
  t.notRegex(text, /chain guard/);
});

test('packetRules() lets an SR-IOV interface accept what the controller allows', (t) => {
  const vips = {
    ...plugged(),
    isSriov: true,
    rules: [
      { protocol: 'TCP', cidr: undefined, port: 80 },
      { protocol: 'UDP', cidr: 'fd09::/64', port: 53 },
      { protocol: 'VRRP', cidr: '10.9.0.22/32', port: undefined },
    ],
  } as const;
  const text = packetRules([vips, MEMBERS]);
  t.regex(text, /iifname \{ "eth2" \} meta l4proto tcp notrack/);
  t.regex(
    text,
    /accept\n {4}tcp dport 80 accept\n {4}ip6 saddr fd09::\/64 udp dport 53 accept\n {4}ip saddr 10\.9\.0\.22\/32 meta l4proto 112 accept\n {4}drop\n/,
  );
  t.regex(text, /iifname "eth1" goto from_eth1/);
});

test('packetRules() drops what comes from an SR-IOV interface before the controller has allowed anything', (t) => {
  t.regex(packetRules([plugged({ isSriov: true })]), /udp dport 546 accept\n {4}drop\n/);
});
