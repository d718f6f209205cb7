import test from 'ava';
import {
  readInterfaceRules,
  readNetworkPlug,
  readVipPlug,
  WrongForm,
  WrongValue,
} from '../../../../agent/octavia/rest/plug-requests.ts';

const MAC = 'fa:16:3e:00:00:01';
const SUBNET = { subnet_cidr: '10.0.0.0/24', gateway: '10.0.0.1' };

test('readVipPlug() reads what the controller sends', (t) => {
  const body = {
    ...SUBNET,
    mac_address: MAC,
    vrrp_ip: '10.0.0.5',
    mtu: 1450,
    host_routes: [{ destination: '10.2.0.0/16', nexthop: '10.0.0.254' }],
    additional_vips: [
      { ip_address: '2001:DB8::1', subnet_cidr: '2001:db8::/64', gateway: null, host_routes: [] },
    ],
  };
  t.deepEqual(readVipPlug('10.0.0.10', JSON.stringify(body)), {
    mac: MAC,
    mtu: 1450,
    vrrpAddress: '10.0.0.5',
    vip: {
      address: '10.0.0.10',
      subnet: '10.0.0.0/24',
      gateway: '10.0.0.1',
      hostRoutes: [{ destination: '10.2.0.0/16', nextHop: '10.0.0.254' }],
    },
    additionalVips: [{ address: '2001:db8::1', subnet: '2001:db8::/64', gateway: undefined, hostRoutes: [] }],
    isSriov: false,
  });
});

test('readNetworkPlug() reads member subnets on the VIP’s interface', (t) => {
  const plug = readNetworkPlug(
    JSON.stringify({
      mac_address: MAC,
      fixed_ips: [
        { ip_address: '10.1.0.5', subnet_cidr: '10.1.0.0/24', gateway: '10.1.0.1', host_routes: [] },
      ],
      mtu: 1500,
      vip_net_info: { ...SUBNET, vip: '10.0.0.10', vrrp_ip: '10.0.0.5' },
    }),
  );
  t.is(plug.fixed[0]?.address, '10.1.0.5');
  t.is(plug.vip?.vip.address, '10.0.0.10');
  t.is(plug.vip?.mac, MAC);
});

test('readVipPlug() tells a wrong form from a wrong value', (t) => {
  for (const body of ['', '[]', '{"gateway": null}', JSON.stringify(SUBNET)])
    t.throws(() => readVipPlug('10.0.0.10', body), { instanceOf: WrongForm });
  for (const change of [
    { mac_address: 'x' },
    { mac_address: `${MAC}\nup` },
    { subnet_cidr: '10.0.0.0/24 dev lo' },
    { gateway: '10.0.0.1;' },
    { mtu: '1450' },
    { host_routes: [1] },
    { host_routes: [{ destination: 'default', nexthop: '10.0.0.1' }] },
    { vrrp_ip: '-4' },
  ])
    t.throws(
      () => readVipPlug('10.0.0.10', JSON.stringify({ ...SUBNET, mac_address: MAC, ...change })),
      { instanceOf: WrongValue },
      JSON.stringify(change),
    );
});

test('readInterfaceRules() takes only the fields and values of the API', (t) => {
  const rules = [
    { protocol: 'TCP', cidr: '10.0.0.0/8', port: 80 },
    { protocol: 'VRRP', cidr: null, port: 112 },
  ];
  t.deepEqual(readInterfaceRules(JSON.stringify(rules)), [
    { protocol: 'TCP', cidr: '10.0.0.0/8', port: 80 },
    { protocol: 'VRRP', cidr: undefined, port: 112 },
  ]);
  for (const rule of [
    { protocol: 'ICMP', port: 1 },
    { protocol: 'TCP', port: 0 },
    { protocol: 'TCP' },
    { protocol: 'TCP', port: 80, cidr: 'any' },
    { protocol: 'TCP', port: 80, extra: 1 },
  ])
    t.throws(
      () => readInterfaceRules(JSON.stringify([rule])),
      { instanceOf: WrongValue },
      JSON.stringify(rule),
    );
});
