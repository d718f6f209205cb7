// The words of the status page, which its own files have as JavaScript.

import test from 'ava';

interface Words {
  readonly minute: (time: string) => string;
  readonly moment: (time: string) => string;
  readonly membersOf: (row: object) => string;
  readonly portsOf: (row: object) => string;
  readonly outOf: (counts: object) => number;
}

const { minute, moment, membersOf, portsOf, outOf }: Words = await import(
  new URL('../../health/page/words.js', import.meta.url).href
);

test('A time that is known to the minute is shown without seconds, others with theirs', (t) => {
  t.is(minute('2026-01-02T08:27:00Z').match(/\d\d:\d\d(:\d\d)?$/)?.[1], undefined);
  t.regex(moment('2026-01-02T08:27:51Z'), /:51$/);
  t.notRegex(minute(new Date().toISOString()), / /, 'without the date of today');
});

test('Load balancers that are not fully served are counted by all verdicts but the good one', (t) => {
  const counts = { served: 9, 'served in part': 1, 'no ready member': 2, 'members down': 3 };
  t.is(outOf({ ...counts, 'members fail': 4, 'not served': 5 }), 15);
  t.is(membersOf({ ready: 1_000, members: 1_002, down: 2 }), '1,000 of 1,002, 2 down');
});

test('Ports have each protocol once', (t) => {
  const of = (...ports: readonly string[]) => portsOf({ ports, morePorts: 2, isOfKernel: false });
  t.is(of('TCP 80', 'TCP 443', 'UDP 443', 'TCP 53'), 'TCP 80, 443, UDP 443, TCP 53 and 2 more');
});
