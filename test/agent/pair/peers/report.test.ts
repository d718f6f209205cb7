import test from 'ava';
import fc from 'fast-check';
import {
  type HandoverReport,
  MAX_REPORT_BYTES,
  noArrivals,
  noAuthReport,
  noHandover,
  noVips,
  type PairReport,
  parseReport,
  ReportReader,
  reportText,
} from '../../../../agent/pair/peers/report.ts';
import { parityOf, whyPeerIsNotReady } from '../../../../agent/pair/standing/readiness.ts';
import { MAX_NAMESPACES, nothingReleased } from '../../../../agent/state/release-mark.ts';
import { standingReasons } from '../../../../agent/vips/announcer.ts';

const SEEN = {
  address: '198.51.100.1',
  worn: 'last',
  count: 1,
  of: 2,
  routers: 'tor-a',
  why: 'this host is lowered: maintenance',
} as const;

const REPORT: PairReport = {
  version: '1.2.3-rc.1',
  instance: '0123456789abcdef',
  roles: { 'vrrp-51': 'master' },
  priorities: { 'vrrp-51': 149 },
  lowered: ['catching-up'],
  synced: true,
  loadBalancers: 3,
  pending: 1,
  model: 'a'.repeat(32),
  running: '',
  handover: noHandover,
  announced: ['0123abcd'],
  unannounced: 2,
  vips: { asks: '198.51.100.7', answers: [SEEN] },
  arrivals: { asks: true, count: 7 },
  hosts: '0123456789abcdef',
  announcesAll: true,
  isBlind: true,
  vrrpAuth: { level: 'sign', wants: 'enforce', keys: ['0123abcd'], active: '0123abcd' },
  released: { at: 1_767_225_600_000, all: false, namespaces: ['shop'] },
};

const anyHandover: fc.Arbitrary<HandoverReport> = fc.record({
  can: fc.boolean(),
  checked: fc.boolean(),
  link: fc.record({
    ether: fc.constantFrom('', '02:00:5e:10:00:ff'),
    v4: fc.constantFrom('', '192.0.2.1'),
    v6: fc.constantFrom('', 'fe80::1'),
  }),
  gives: fc.boolean(),
  wants: fc.stringMatching(/^([0-9a-f]{16})?$/),
  asks: fc.stringMatching(/^([0-9a-f]{16})?$/),
  ready: fc.stringMatching(/^([0-9a-f]{16})?$/),
  left: fc.integer({ min: -1 }),
});

const anyReport: fc.Arbitrary<PairReport> = fc.record({
  version: fc.stringMatching(/^[0-9A-Za-z.+-]{1,64}$/),
  instance: fc.stringMatching(/^[0-9a-f]{16}$/),
  roles: fc.dictionary(
    fc.integer({ min: 1, max: 255 }).map((id) => `vrrp-${id}`),
    fc.constantFrom('master', 'backup', 'fault', 'unknown'),
    { maxKeys: 16, noNullPrototype: true },
  ),
  priorities: fc.dictionary(
    fc.integer({ min: 1, max: 255 }).map((id) => `vrrp-${id}`),
    fc.integer({ min: 1, max: 255 }),
    { maxKeys: 16, noNullPrototype: true },
  ),
  lowered: fc.subarray([...standingReasons]),
  synced: fc.boolean(),
  loadBalancers: fc.maxSafeNat(),
  pending: fc.maxSafeNat(),
  model: fc.stringMatching(/^[0-9a-f]{32}$/),
  running: fc.oneof(fc.constant(''), fc.stringMatching(/^[0-9a-f]{32}$/)),
  handover: anyHandover,
  announced: fc.array(fc.stringMatching(/^[0-9a-f]{8}$/), { maxLength: 24 }),
  unannounced: fc.nat(),
  vips: fc.record({
    asks: fc.constantFrom('', '198.51.100.7', '2001:db8::7'),
    answers: fc.array(fc.constant(SEEN), { maxLength: 2 }),
  }),
  arrivals: fc.record({ asks: fc.boolean(), count: fc.integer({ min: -1 }) }),
  hosts: fc.constantFrom('', '0123456789abcdef'),
  announcesAll: fc.boolean(),
  isBlind: fc.boolean(),
  vrrpAuth: fc.record({
    level: fc.constantFrom('off', 'receive', 'sign', 'enforce'),
    wants: fc.constantFrom('off', 'enforce'),
    keys: fc.array(fc.stringMatching(/^[0-9a-f]{8}$/), { maxLength: 3 }),
    active: fc.stringMatching(/^([0-9a-f]{8})?$/),
  }),
  released: fc.record({
    at: fc.nat(),
    all: fc.boolean(),
    namespaces: fc.array(fc.stringMatching(/^[a-z0-9]{1,63}$/), { maxLength: 4 }),
  }),
});

test('ReportReader gives any report unchanged, however the stream is cut', (t) => {
  const property = fc.property(
    fc.array(anyReport, { maxLength: 5 }),
    fc.integer({ min: 1, max: 500 }),
    (reports, size) => {
      const stream = Buffer.from(reports.map(reportText).join(''));
      const reader = new ReportReader();
      const read: PairReport[] = [];
      for (let from = 0; from < stream.length; from += size)
        read.push(...reader.push(stream.subarray(from, from + size)));
      t.deepEqual(read, reports);
    },
  );
  t.notThrows(() => fc.assert(property, { numRuns: 100 }));
});

test('The longest report that an agent can make fits', (t) => {
  const roles = Object.fromEntries(
    Array.from({ length: 16 }, (_, id) => [`vrrp-${255 - id}`, 'unknown'] as const),
  );
  const count = Number.MAX_SAFE_INTEGER;
  const digest = 'f'.repeat(32);
  const report: PairReport = {
    ...REPORT,
    version: '9'.repeat(64),
    roles,
    released: {
      at: count,
      all: false,
      namespaces: Array.from({ length: MAX_NAMESPACES }, (_, at) => `${'n'.repeat(60)}-${10 + at}`),
    },
    priorities: Object.fromEntries(Object.keys(roles).map((name) => [name, 255])),
    lowered: standingReasons,
    loadBalancers: count,
    pending: count,
    model: digest,
    running: digest,
    handover: {
      can: false,
      checked: true,
      link: { ether: 'ff:ff:ff:ff:ff:ff', v4: '255.255.255.255', v6: 'ffff:'.repeat(7).concat('ffff') },
      asks: 'f'.repeat(16),
      ready: 'f'.repeat(16),
      gives: false,
      wants: 'f'.repeat(16),
      left: count,
    },
  };
  // Newer ones may tell more.
  t.true(reportText(report).length < (MAX_REPORT_BYTES * 3) / 4);
});

const altered = (change: Readonly<Record<string, unknown>>): string =>
  JSON.stringify({ ...REPORT, ...change });

for (const [field, value] of [
  ['version', 'a b'],
  ['instance', undefined],
  ['roles', undefined],
  ['instance', '0123456789ABCDEF'],
  ['roles', ['master']],
  ['roles', { 'vrrp-51': 'king' }],
  ['roles', { '\u001b[31m': 'master' }],
  ['roles', Object.fromEntries(Array.from({ length: 17 }, (_, id) => [`vrrp-${id}`, 'master']))],
  ['priorities', [250]],
  ['priorities', { 'vrrp-51': 256 }],
  ['priorities', { 'vrrp-51': '250' }],
  ['lowered', 'maintenance'],
  ['lowered', ['<script>']],
  ['lowered', Array.from({ length: 17 }, () => 'haproxy')],
  ['synced', 1],
  ['loadBalancers', -1],
  ['pending', 0.5],
  ['model', 'a'.repeat(33)],
  ['running', 'g'.repeat(32)],
  ['handover', 1],
  ['handover', { can: 'yes' }],
  ['handover', { asks: 'A'.repeat(16) }],
  ['handover', { ready: '0' }],
  ['handover', { gives: 1 }],
  ['handover', { wants: '?' }],
  ['handover', { left: -2 }],
  ['handover', { link: 'eth0' }],
  ['handover', { link: { ether: '02:00:5e:10:00:ff } accept' } }],
  ['handover', { link: { v4: 'fe80::1' } }],
  ['handover', { link: { v6: '192.0.2.1' } }],
  ['handover', { link: { v6: 'fe80::1%eth0' } }],
] as const) {
  test(`A report is refused whose ${field} is ${JSON.stringify(value)?.slice(0, 60)}`, (t) => {
    t.regex(String(parseReport(altered({ [field]: value }))), new RegExp(`^Its ${field} cannot be`));
  });
}

test('parseReport() refuses anything but an object', (t) => {
  for (const line of ['', '{', 'null', '[]', '"x"', '3']) t.is(typeof parseReport(line), 'string', line);
});

test('parseReport() leaves out fields of a newer agent', (t) => {
  t.deepEqual(parseReport(altered({ weather: 'fine' })), REPORT);
});

test('parseReport() fills missing fields with what makes the peer the least ready', (t) => {
  const { instance, roles } = REPORT;
  const report = parseReport(JSON.stringify({ instance, roles, weather: 'fine' }));
  t.deepEqual(report, {
    version: 'unknown',
    instance,
    roles,
    priorities: {},
    lowered: [],
    synced: false,
    loadBalancers: 0,
    pending: 0,
    model: '',
    running: '',
    handover: noHandover,
    announced: [],
    unannounced: 1,
    vips: noVips,
    arrivals: noArrivals,
    hosts: '',
    announcesAll: false,
    isBlind: false,
    released: nothingReleased,
    vrrpAuth: noAuthReport,
  });
  const own = { model: 'a'.repeat(32), running: 'a'.repeat(32), roles };
  for (const told of [{}, { synced: true }, { synced: true, running: own.running }]) {
    const peer = parseReport(JSON.stringify({ instance, roles, ...told })) as PairReport;
    t.regex(whyPeerIsNotReady(own, peer), /has not read the objects yet|does not report its desired state/);
    t.not(parityOf(own, peer).model, 'same');
  }
});

test('parseReport() requires only two fields', (t) => {
  for (const field of Object.keys(REPORT)) {
    const isRefused = typeof parseReport(altered({ [field]: undefined })) === 'string';
    t.is(isRefused, field === 'instance' || field === 'roles', field);
  }
});

test('ReportReader refuses a line that is too long, complete or not', (t) => {
  const long = Buffer.from(altered({ weather: 'x'.repeat(MAX_REPORT_BYTES) }));
  t.throws(() => [...new ReportReader().push(long)], { message: /The report is longer than/ });
  t.throws(() => [...new ReportReader().push(Buffer.concat([long, Buffer.from('\n')]))], {
    message: /The report is longer than/,
  });
});
