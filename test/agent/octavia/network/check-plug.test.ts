import test from 'ava';
import { checkNetworkPlug, checkRules, checkVipPlug } from '../../../../agent/octavia/network/check-plug.ts';
import type { InterfaceRule, VipPlug } from '../../../../agent/octavia/parts.ts';
import { fixed, vipPlug } from '../../../support/octavia/plugs.ts';

test('checkVipPlug() gives canonical values', (t) => {
  const vip = fixed({ address: 'FD09:0::100', subnet: 'fd09::1/64', gateway: 'fd09:0:0::1' });
  const checked = checkVipPlug(vipPlug({ mac: '02:AB:00:00:00:01', vip, vrrpAddress: 'FD09::21' }));
  t.is(checked.mac, '02:ab:00:00:00:01');
  t.deepEqual(checked.vip, { ...vip, address: 'fd09::100', subnet: 'fd09::/64', gateway: 'fd09::1' });
  t.is(checked.vrrpAddress, 'fd09::21');
});

const VIP = vipPlug().vip;
const WRONG: Readonly<Record<string, Partial<VipPlug>>> = {
  'a MAC with a word of ip': { mac: '02:00:00:00:00:01 up' },
  'an MTU that is no number': { mtu: '1500; reboot' as unknown as number },
  'an MTU of 0': { mtu: 0 },
  'a VIP with a line break': { vip: { ...VIP, address: '10.9.0.100\nlink' } },
  'a subnet of the other family': { vip: { ...VIP, subnet: 'fd09::/64' } },
  'a gateway that is an option': { vip: { ...VIP, gateway: '-batch' } },
  'a gateway of the other family': { vip: { ...VIP, gateway: 'fd09::1' } },
  'a route to a word': { vip: { ...VIP, hostRoutes: [{ destination: 'default', nextHop: '10.9.0.1' }] } },
  'a VRRP address of the other family': { vrrpAddress: 'fd09::21' },
  'a further VIP in IPv4 by IPv6': {
    additionalVips: [fixed({ address: '::ffff:10.0.0.1', subnet: '10.0.0.0/8' })],
  },
};

for (const [what, values] of Object.entries(WRONG))
  test(`checkVipPlug() refuses ${what}`, (t) => {
    t.throws(() => checkVipPlug(vipPlug(values)), { code: 'OCTAVIA_INVALID' });
    const plug = { mac: '02:00:00:00:00:02', mtu: undefined, fixed: [], isSriov: false };
    t.throws(() => checkNetworkPlug({ ...plug, vip: vipPlug(values) }), { code: 'OCTAVIA_INVALID' });
  });

test('checkRules() refuses what is no protocol, CIDR or port', (t) => {
  const rule: InterfaceRule = { protocol: 'TCP', cidr: undefined, port: 80 };
  t.deepEqual(checkRules([rule, { ...rule, cidr: '10.0.0.1' }]), [rule, { ...rule, cidr: '10.0.0.1/32' }]);
  const wrong: readonly Partial<Record<keyof InterfaceRule, unknown>>[] = [
    { protocol: 'ICMP' },
    { cidr: '10.0.0.0/8 } accept; #' },
    { port: 0 },
    { port: undefined },
    { port: '80 accept' },
  ];
  for (const values of wrong)
    t.throws(() => checkRules([{ ...rule, ...values } as InterfaceRule]), { code: 'OCTAVIA_INVALID' });
});
