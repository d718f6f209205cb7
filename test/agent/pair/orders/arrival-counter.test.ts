import test from 'ava';
import { renderArrivals } from '../../../../agent/pair/orders/arrival-counter.ts';

test('renderArrivals() counts the first packets of clients, not those of this host, and only for VIPs that there are', (t) => {
  const both = renderArrivals('headgate_arrivals_0', {
    vips: ['198.51.100.7', '2001:db8::7'],
    hasDatagrams: true,
  });
  for (const line of [
    'elements = { 198.51.100.7 }',
    'elements = { 2001:db8::7 }',
    'iif "lo" return',
    'tcp flags & (fin | syn | rst | ack) == syn counter name arrived',
    'meta l4proto { udp, sctp } ct state new counter name arrived',
  ])
    t.true(both.includes(line), line);
  const v4 = renderArrivals('headgate_arrivals_0', { vips: ['198.51.100.7'], hasDatagrams: false });
  t.false(/ip6|ct state/.test(v4), 'a host that tracks no connections does not begin to');
});
