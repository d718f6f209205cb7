import test from 'ava';
import { type Plugged, wantedInterface } from '../../../../agent/octavia/network/wanted-interface.ts';
import { fixed, plugged } from '../../../support/octavia/plugs.ts';

const routesIn = (value: Plugged, topology: 'SINGLE' | 'ACTIVE_STANDBY'): readonly string[] =>
  wantedInterface(value, topology)
    .routes.map(({ table, destination, gateway, source }) =>
      [`${table} ${destination}`, gateway && `via ${gateway}`, source && `src ${source}`]
        .filter((text) => text !== undefined)
        .join(' '),
    )
    .sort();

test('wantedInterface() gives a SINGLE amphora the VIP, its table and its rule', (t) => {
  const { addresses, rules, foreign } = wantedInterface(plugged(), 'SINGLE');
  t.deepEqual(addresses, [
    { address: '10.9.0.21', prefix: 16 },
    { address: '10.9.0.100', prefix: 32 },
  ]);
  t.deepEqual(rules, [{ from: '10.9.0.100', table: 1 }]);
  t.is(foreign.size, 0);
  t.deepEqual(routesIn(plugged(), 'SINGLE'), [
    '1 0.0.0.0/0 via 10.9.0.1',
    '1 10.50.0.0/24 via 10.9.0.2',
    '1 10.9.0.0/16 src 10.9.0.100',
    '254 0.0.0.0/0 via 10.9.0.1',
    '254 10.50.0.0/24 via 10.9.0.2',
    '254 10.9.0.0/16',
  ]);
});

test('wantedInterface() leaves the VIPs of a pair to keepalived', (t) => {
  const { addresses, rules, foreign } = wantedInterface(plugged(), 'ACTIVE_STANDBY');
  t.deepEqual(addresses, [{ address: '10.9.0.21', prefix: 16 }]);
  t.deepEqual(rules, []);
  t.deepEqual([...foreign], ['10.9.0.100']);
  t.deepEqual(routesIn(plugged(), 'ACTIVE_STANDBY'), [
    '1 10.50.0.0/24 via 10.9.0.2',
    '254 0.0.0.0/0 via 10.9.0.1',
    '254 10.50.0.0/24 via 10.9.0.2',
    '254 10.9.0.0/16',
  ]);
});

test('wantedInterface() gives each further VIP its own subnet and the first gateway of a family', (t) => {
  const additional = [
    fixed({ address: 'fd09::100', subnet: 'fd09::/64', gateway: 'fd09::1' }),
    fixed({ address: '10.30.0.9', subnet: '10.30.0.0/24', gateway: '10.30.0.1' }),
  ];
  const value = plugged({ additionalVips: additional });
  const { addresses, rules } = wantedInterface(value, 'SINGLE');
  t.deepEqual(
    addresses.map(({ address, prefix }) => `${address}/${prefix}`),
    ['10.9.0.21/16', '10.9.0.100/32', 'fd09::100/128', '10.30.0.9/32'],
  );
  t.deepEqual(
    rules?.map(({ from }) => from),
    ['10.9.0.100', 'fd09::100', '10.30.0.9'],
  );
  const routes = routesIn(value, 'SINGLE');
  t.true(routes.includes('1 fd09::/64 src fd09::100'));
  t.true(routes.includes('1 ::/0 via fd09::1'));
  t.true(routes.includes('254 10.30.0.0/24'));
  t.false(routes.some((route) => route.includes('10.30.0.1')));
});

test('wantedInterface() gives an interface for members no default route and no say in the rules', (t) => {
  const value: Plugged = {
    ...plugged(),
    name: 'eth2',
    vip: undefined,
    fixed: [
      fixed({
        address: '10.20.0.5',
        subnet: '10.20.0.0/24',
        gateway: '10.20.0.1',
        hostRoutes: [{ destination: '10.60.0.0/16', nextHop: '10.20.0.7' }],
      }),
    ],
  };
  t.deepEqual(routesIn(value, 'SINGLE'), ['254 10.60.0.0/16 via 10.20.0.7']);
  t.is(wantedInterface(value, 'SINGLE').rules, undefined);
});

test('wantedInterface() uses the gateway of a member subnet on the interface of the VIPs', (t) => {
  const vip = fixed({ address: '10.9.0.100', subnet: '10.9.0.0/16' });
  const value: Plugged = {
    ...plugged(),
    vip: { vrrpAddress: '10.9.0.21', vip, additionalVips: [] },
    fixed: [fixed({ address: '10.20.0.5', subnet: '10.20.0.0/24', gateway: '10.20.0.1' })],
  };
  t.deepEqual(routesIn(value, 'SINGLE'), [
    '1 0.0.0.0/0 via 10.20.0.1',
    '1 10.9.0.0/16 src 10.9.0.100',
    '254 0.0.0.0/0 via 10.20.0.1',
    '254 10.9.0.0/16',
  ]);
});
