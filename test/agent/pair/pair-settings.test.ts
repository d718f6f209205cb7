import test from 'ava';
import { type PairSettings, pairSettings, tablesAddresses } from '../../../agent/pair/pair-settings.ts';

const VRRP = { address: '192.0.2.1', peers: ['192.0.2.2'] };

const given = (more: Partial<PairSettings> = {}): PairSettings =>
  ({
    pairAddress: '',
    pairPeer: '',
    pairCredentials: '',
    pairPort: 9181,
    pairTablesPort: 9182,
    vrrp: undefined,
    netns: '',
    hosts: [],
    ...more,
  }) as PairSettings;

const addressesOf = (more: Partial<PairSettings>) => {
  const { pairAddress, pairPeer } = pairSettings(given(more)) ?? {};
  return [pairAddress, pairPeer];
};

test('pairSettings() gives undefined without a peer, with or without VRRP', (t) => {
  t.is(pairSettings(given()), undefined);
  t.is(pairSettings(given({ vrrp: VRRP })), undefined);
});

test('pairSettings() defaults to the addresses of VRRP if there are credentials', (t) => {
  const pairCredentials = '/pair.pem';
  t.deepEqual(addressesOf({ pairCredentials, vrrp: VRRP }), ['192.0.2.1', '192.0.2.2']);
  const own = { pairAddress: '198.51.100.1', pairPeer: '198.51.100.2' };
  t.deepEqual(addressesOf({ pairCredentials, vrrp: VRRP, ...own }), ['198.51.100.1', '198.51.100.2']);
});

for (const [what, more, message] of [
  ['no credentials', { pairAddress: '192.0.2.1', pairPeer: '192.0.2.2' }, /pairCredentials is missing/],
  ['no address', { pairCredentials: '/p', pairPeer: '192.0.2.2' }, /pairAddress is missing/],
  [
    'several peers',
    { pairCredentials: '/p', vrrp: { ...VRRP, peers: ['192.0.2.2', '192.0.2.3'] } },
    /pairPeer is missing/,
  ],
  [
    'the addresses of another network',
    { pairCredentials: '/p', vrrp: VRRP, netns: 'lb' },
    /pairAddress is missing.*\n.*pairPeer is missing/,
  ],
  [
    'itself for a peer',
    { pairCredentials: '/p', pairAddress: '192.0.2.1', pairPeer: '192.0.2.1' },
    /is this host's own pairAddress/,
  ],
  [
    'two families',
    { pairCredentials: '/p', pairAddress: '192.0.2.1', pairPeer: '2001:db8::2' },
    /is not of the family/,
  ],
] as const)
  test(`pairSettings() refuses ${what}`, (t) => {
    t.throws(() => pairSettings(given(more)), { code: 'SETTINGS_INVALID', message });
  });

test("tablesAddresses() has the agents' addresses, or those of VRRP in a network namespace", (t) => {
  const own = { pairAddress: '198.51.100.1', pairPeer: '198.51.100.2' };
  t.deepEqual(tablesAddresses(given(own)), {
    address: '198.51.100.1',
    peers: ['198.51.100.2'],
    port: 9182,
  });
  t.deepEqual(tablesAddresses(given({ ...own, vrrp: VRRP, netns: 'lb' })), {
    address: '192.0.2.1',
    peers: ['192.0.2.2'],
    port: 9182,
  });
  t.is(tablesAddresses(given({ ...own, netns: 'lb' })), undefined);
});
