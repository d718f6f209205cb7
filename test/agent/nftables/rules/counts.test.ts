import test from 'ava';
import { NO_COUNTS, newCounts } from '../../../../agent/nftables/rules/counts.ts';
import type { KernelListener } from '../../../../agent/nftables/rules/kernel-listener.ts';

const NAME = 'default:web:udp:53:v4';

function listener(...addresses: readonly string[]): KernelListener {
  return { name: NAME, family: 'v4', protocol: 'UDP', port: 53, addresses } as unknown as KernelListener;
}

const LISTENER = listener('192.0.2.1');

type Numbers = readonly [packets: number, bytes: number];

/** As `nft -n list table` writes it. */
function listed(flows: Numbers, received: Numbers, sent: Numbers, address = '192.0.2.1'): string {
  const element = (key: string, [packets, bytes]: Numbers): string =>
    `${address} . 17 . 53${key} counter packets ${packets} bytes ${bytes}`;
  const other = '192.0.2.99 . 17 . 53 counter packets 99 bytes 99';
  return [
    'table ip headgate_counts {',
    '\tset flows {',
    '\t\ttype ipv4_addr . inet_proto . inet_service',
    '\t\tcounter',
    `\t\telements = { ${element('', flows)},`,
    `\t\t\t     ${other} }`,
    '\t}',
    '\tset traffic {',
    `\t\telements = { ${element(' . 0', received)}, ${element(' . 1', sent)} }`,
    '\t}',
    '}',
  ].join('\n');
}

const FIRST = listed([2, 60], [10, 300], [20, 4_000]);

test('newCounts() reads the three counters of a listener, and no others', (t) => {
  const counts = newCounts([LISTENER], NO_COUNTS, FIRST);
  const expected = {
    flows: { packets: 2, bytes: 60 },
    received: { packets: 10, bytes: 300 },
    sent: { packets: 20, bytes: 4_000 },
  };
  t.deepEqual([...counts.listeners], [[NAME, expected]]);
  t.deepEqual(
    [...counts.elements],
    [
      ['192.0.2.1 . udp . 53', expected.flows],
      ['192.0.2.1 . udp . 53 . original', expected.received],
      ['192.0.2.1 . udp . 53 . reply', expected.sent],
    ],
  );
});

test('newCounts() adds what was counted since, also after counters began again, and forgets listeners that are gone', (t) => {
  const before = newCounts([LISTENER], NO_COUNTS, FIRST);
  t.deepEqual(newCounts([LISTENER], before, ''), before);
  t.deepEqual(newCounts([LISTENER], before, FIRST), before);
  const more = newCounts([LISTENER], before, listed([3, 90], [11, 330], [20, 4_000]));
  t.like(more.listeners.get(NAME), {
    flows: { packets: 3 },
    received: { bytes: 330 },
    sent: { packets: 20 },
  });
  const again = newCounts([LISTENER], more, listed([1, 30], [2, 60], [0, 0]));
  t.like(again.listeners.get(NAME), {
    flows: { packets: 4, bytes: 120 },
    received: { packets: 13, bytes: 390 },
  });
  t.is(again.listeners.get(NAME)?.sent.packets, 20);
  t.is(newCounts([], before, FIRST).listeners.size, 0);
});

test('newCounts() adds the addresses of a listener, and keeps the counts of one that it gives up', (t) => {
  const both = listener('192.0.2.1', '192.0.2.2');
  const text = FIRST + listed([5, 150], [5, 150], [5, 150], '192.0.2.2');
  const counts = newCounts([both], NO_COUNTS, text);
  t.like(counts.listeners.get(NAME), {
    flows: { packets: 7, bytes: 210 },
    sent: { packets: 25, bytes: 4_150 },
  });
  t.deepEqual(newCounts([LISTENER], counts, FIRST).listeners, counts.listeners);
});
