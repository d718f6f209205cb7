import test from 'ava';
import { hostGroup } from '../../../agent/settings/host-group.ts';
import { hosts } from '../../../agent/settings/hosts.ts';

const { read, write } = hosts();

const lb1 = { name: 'lb1', address: '192.0.2.11', back: ['10.9.9.1'], anchors: [] };
const lb2 = { name: 'lb2', address: '192.0.2.12', back: ['10.9.9.2'], anchors: [] };

function faultsOf(given: unknown): string {
  const reading = read(given, '/');
  return 'errors' in reading ? reading.errors.join('\n') : '';
}

test('The setting hosts is in the order of the names, IPv4 first, and the same after it is written', (t) => {
  const given = [
    { ...lb2, back: ['FD09::0:2', '10.9.9.2'] },
    { ...lb1, back: ['10.9.9.1', 'fd09::1'] },
  ];
  const value = [
    { ...lb1, back: ['10.9.9.1', 'fd09::1'] },
    { ...lb2, back: ['10.9.9.2', 'fd09::2'] },
  ];
  t.deepEqual(read(given, '/'), { value });
  t.deepEqual(read(write(value), '/'), { value });
  t.deepEqual(read('', '/'), { value: [] });
  t.deepEqual(read([{ name: 'lb1', address: '192.0.2.11' }], '/'), {
    value: [{ ...lb1, back: [], anchors: [] }],
  });
});

for (const [what, given, expected] of [
  ['no host', [], '0 hosts: 1 to 16 hosts are allowed'],
  [
    'seventeen hosts',
    Array.from({ length: 17 }, (_, at) => ({ name: `lb${at}`, address: `192.0.2.${at + 1}` })),
    '17 hosts: 1 to 16 hosts are allowed',
  ],
  ['a mapping', { lb1: '192.0.2.11' }, /is not a list of 1 to 16 hosts/],
  ['a name twice', [lb1, { ...lb2, name: 'lb1' }], 'The name "lb1" is used twice'],
  ['an address twice', [lb1, { ...lb2, address: '192.0.2.11' }], 'The address "192.0.2.11" is used twice'],
  ['a back address twice', [lb1, { ...lb2, back: ['10.9.9.1'] }], 'The address "10.9.9.1" is used twice'],
  [
    'two back addresses of a family',
    [{ ...lb1, back: ['10.9.9.1', '10.9.9.2'] }],
    /\[0\]\.back: 10\.9\.9\.1, 10\.9\.9\.2: at most one address of each family/,
  ],
  [
    'a back network on some hosts only',
    [lb1, { ...lb2, back: [] }],
    /\[1\]\.back: every host .* "lb2" has none, but "lb1" IPv4/,
  ],
  [
    'anchors on some hosts only',
    [{ ...lb1, anchors: ['10.77.0.1'] }, lb2],
    /\[1\]\.anchors: every host needs anchors .* "lb2" has none, but "lb1" IPv4/,
  ],
  [
    'an anchor without a back address of its family',
    [{ ...lb1, anchors: ['fd77::1'] }],
    /\[0\]\.anchors: "fd77::1" needs a back address of its family/,
  ],
  ['an anchor twice', [{ ...lb1, anchors: ['10.9.9.1'] }], 'The address "10.9.9.1" is used twice'],
  [
    'nine anchors',
    [{ ...lb1, anchors: Array.from({ length: 9 }, (_, at) => `10.77.0.${at + 1}`) }],
    '[0].anchors: 9 anchors: at most 8 are allowed',
  ],
  ['addresses of two families', [lb1, { ...lb2, address: '2001:db8::2' }], /is not of the family of "192/],
  ['a name that is none', [{ ...lb1, name: 'lb1\nserver x' }], /is not a DNS label/],
  ['an address that is none', [{ ...lb1, address: '192.0.2' }], /by which other hosts reach this one/],
  ['a link-local address', [{ ...lb1, address: 'fe80::1' }], /by which other hosts reach this one/],
  ['a multicast address', [{ ...lb1, back: ['224.0.0.1'] }], /by which other hosts reach this one/],
  ['an unknown key', [{ ...lb1, adress: '' }], '[0].adress: Unknown key, the nearest is "address"'],
] as const) {
  test(`The setting hosts refuses ${what}`, (t) => {
    if (typeof expected === 'string') t.is(faultsOf(given), expected);
    else t.regex(faultsOf(given), expected);
  });
}

const settings = {
  hosts: [lb1, lb2],
  announce: 'bgp',
  pairAddress: '',
  pairCredentials: '/pair.pem',
} as const;
const machine =
  (hostname: string, ...addresses: readonly string[]) =>
  () => ({ hostname, addresses });

test('hostGroup() finds this host by pairAddress, by its addresses, and by its name', (t) => {
  t.is(hostGroup({ ...settings, pairAddress: '192.0.2.12' }, machine('lb1', '192.0.2.11'))?.self, lb2);
  t.is(hostGroup(settings, machine('lb1', '127.0.0.1', '192.0.2.12'))?.self, lb2);
  t.is(hostGroup(settings, machine('lb2.example.org', '127.0.0.1'))?.self, lb2);
  t.is(hostGroup(settings, machine('lb2', '192.0.2.11', '192.0.2.12'))?.self, lb2);
  t.is(hostGroup({ ...settings, hosts: [] }, machine('lb1')), undefined);
});

test('hostGroup() refuses a list without this host, and what does not go with it', (t) => {
  const refuses = (change: object, expected: RegExp, ofMachine = machine('lb1', '192.0.2.11')) =>
    t.throws(() => hostGroup({ ...settings, ...change }, ofMachine), { message: expected });
  refuses({}, /none of them is this host: .* its name is "web"/, machine('web', '192.0.2.13'));
  refuses(
    {},
    /has the addresses of lb1 and lb2: set pairAddress/,
    machine('web', '192.0.2.11', '192.0.2.12'),
  );
  refuses({ pairAddress: '192.0.2.13' }, /"192.0.2.13" is not the address of a host of "hosts": lb1/);
  refuses({ announce: 'vrrp' }, /hosts: does not go with announce "vrrp"/);
  refuses({ pairCredentials: '' }, /pairCredentials is missing: the 2 hosts/);
  t.is(hostGroup({ ...settings, hosts: [lb1], pairCredentials: '' }, machine('lb1'))?.self, lb1);
});
