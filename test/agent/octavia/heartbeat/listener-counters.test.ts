import test from 'ava';
import { ListenerCounters } from '../../../../agent/octavia/heartbeat/listener-counters.ts';

const totals = (tx: number) => new Map([['one', { tx, rx: 1, totconns: 2, ereq: 3 }]]);

test('ListenerCounters has the whole of a first total', (t) => {
  const counters = new ListenerCounters();
  counters.observe(totals(5));
  t.deepEqual(counters.pending().get('one'), { tx: 5, rx: 1, totconns: 2, ereq: 3 });
});

test('ListenerCounters has the difference to the last total, also to one of an agent before', (t) => {
  const before = new ListenerCounters();
  before.observe(totals(5));
  const counters = new ListenerCounters(before.kept());
  counters.observe(totals(12));
  t.deepEqual(counters.pending().get('one'), { tx: 7, rx: 0, totconns: 0, ereq: 0 });
});

test('ListenerCounters takes a total that fell as one that began again', (t) => {
  const counters = new ListenerCounters();
  counters.observe(totals(5));
  counters.sent();
  counters.observe(totals(3));
  t.is(counters.pending().get('one')?.tx, 3);
});

test('ListenerCounters loses nothing if another worker counts more than the last one', (t) => {
  const counters = new ListenerCounters();
  counters.observe(totals(5));
  counters.sent();
  counters.observe(totals(9));
  counters.restarted(['one']);
  counters.observe(totals(20));
  t.is(counters.pending().get('one')?.tx, 24);
});

test('ListenerCounters keeps what was not sent for the next heartbeat', (t) => {
  const counters = new ListenerCounters();
  counters.observe(totals(5));
  counters.observe(totals(6));
  t.is(counters.pending().get('one')?.tx, 6);
  counters.sent();
  t.is(counters.pending().size, 0);
});

test('ListenerCounters forgets a listener that is gone', (t) => {
  const counters = new ListenerCounters();
  counters.observe(totals(5));
  counters.forget(['one']);
  t.deepEqual(counters.kept(), {});
  t.is(counters.pending().size, 0);
});
