import test from 'ava';
import { capabilitiesOf, parseVersion } from '../../../../agent/haproxy/socket/version.ts';

const texts: readonly (readonly [string, readonly [number, number, number, string]])[] = [
  [
    'HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/\nStatus: long-term supported branch - will stop receiving fixes around Q2 2027.\n',
    [2, 6, 12, '2.6.12-1+deb12u4'],
  ],
  ['HA-Proxy version 1.8.19-1+deb10u3 2020/08/01\n', [1, 8, 19, '1.8.19-1+deb10u3']],
  ['Name: HAProxy\nVersion: 3.0.11-1+deb13u3\nRelease_date: 2026/05/20\n', [3, 0, 11, '3.0.11-1+deb13u3']],
  ['3.4-dev9-ab12cd-5', [3, 4, 0, '3.4-dev9-ab12cd-5']],
  ['3.2.26-1', [3, 2, 26, '3.2.26-1']],
];
for (const [text, [major, minor, patch, version]] of texts) {
  test(`parseVersion() reads ${JSON.stringify(text.slice(0, 40))}`, (t) => {
    t.deepEqual(parseVersion(text), { major, minor, patch, text: version });
  });
}

test('parseVersion() throws on a text without a version', (t) => {
  for (const text of ['', 'nginx version: nginx/1.22.1', 'HAProxy version unknown']) {
    t.throws(() => parseVersion(text), { code: 'HAPROXY_VERSION', message: /Cannot find a HAProxy version/ });
  }
});

test('capabilitiesOf() supports 2.6 and newer, and gives a reason for others', (t) => {
  t.like(capabilitiesOf(parseVersion('2.5.14')), {
    supported: false,
    reason: 'HAProxy 2.5.14 is too old: Headgate needs 2.6 or newer',
  });
  t.false(capabilitiesOf(parseVersion('1.9.0')).supported);
  for (const version of ['2.6.0', '2.10.0', '3.0.0', '3.4.0', '4.0.0']) {
    t.like(capabilitiesOf(parseVersion(version)), { supported: true, reason: '' }, version);
  }
});

test('capabilitiesOf() requires the pool keywords of a server added at runtime before 3.0 only', (t) => {
  const areNeeded = (version: string): boolean =>
    capabilitiesOf(parseVersion(version)).dynamicServerNeedsPoolKeywords;
  for (const version of ['2.6.12-1+deb12u4', '2.8.12', '2.9.15']) t.true(areNeeded(version), version);
  for (const version of ['3.0.0', '3.0.11-1+deb13u3', '3.4.7', '4.0.0']) t.false(areNeeded(version), version);
});

test('capabilitiesOf() returns the first release in which least-connections is safe', (t) => {
  const safe = [
    '2.6.12',
    '3.0.11',
    '3.1.9',
    '3.2.0',
    '3.2.5',
    '3.2.19',
    '3.2.26-1',
    '3.3.10',
    '3.4.0',
    '4.2.6',
  ];
  for (const version of safe)
    t.is(capabilitiesOf(parseVersion(version)).leastConnectionsSafeFrom, '', version);
  for (const version of ['3.2.6', '3.2.18-1~bpo13+1', '3.3.0', '3.3.9']) {
    const from = version.startsWith('3.2') ? '3.2.19' : '3.3.10';
    t.is(capabilitiesOf(parseVersion(version)).leastConnectionsSafeFrom, from, version);
  }
});
