import test from 'ava';
import type { ListenerTraffic } from '../../../../agent/dataplane/status.ts';
import { TrafficBook } from '../../../../agent/report/page/traffic-book.ts';
import { FakeClock, settled } from '../../../support/basics/fake-clock.ts';

const [HTTP, HTTPS, DNS] = ['a:web:tcp:80:v4', 'a:web:tcp:443:v4', 'a:dns:udp:53:v4'] as const;
const UNKNOWN = { rate: Number.NaN, open: Number.NaN };

class TestDataplane {
  listeners: readonly ListenerTraffic[] = [];
  rounds = 0;
  fault: Error | undefined;

  async families() {
    this.rounds++;
    if (this.fault !== undefined) throw this.fault;
    return [];
  }

  traffic() {
    return this.listeners;
  }
}

function created() {
  const [dataplane, clock] = [new TestDataplane(), new FakeClock()];
  return { dataplane, clock, book: new TrafficBook(dataplane, clock) };
}

test('The traffic of a load balancer is that of its listeners since the round before', async (t) => {
  const { dataplane, clock, book } = created();
  dataplane.listeners = [
    { name: HTTP, total: 1_000, open: 3 },
    { name: DNS, total: 5, open: Number.NaN },
  ];
  await book.record();
  t.deepEqual(book.of('a/web'), { rate: Number.NaN, open: 3 }, 'a rate needs two rounds');
  await clock.advance(10_000);
  dataplane.listeners = [
    { name: HTTP, total: 1_100, open: 4 },
    { name: HTTPS, total: 77, open: 1 },
    { name: DNS, total: 25, open: Number.NaN },
  ];
  await book.record();
  t.deepEqual(book.of('a/web'), { rate: 10, open: 5 }, 'a listener that is new has no rate yet');
  t.deepEqual(book.of('a/dns'), { rate: 2, open: Number.NaN });
  t.deepEqual(book.of('a/none'), UNKNOWN);
});

test('Two rounds that end together count once, and rounds that end are forgotten', async (t) => {
  const { dataplane, clock, book } = created();
  dataplane.listeners = [{ name: HTTP, total: 0, open: 1 }];
  await book.record();
  await clock.advance(10_000);
  dataplane.listeners = [{ name: HTTP, total: 50, open: 1 }];
  await book.record();
  await clock.advance(500);
  await book.record();
  t.deepEqual(book.of('a/web'), { rate: 5, open: 1 });
  t.is(book.history('a/web').rates.length, 3);
  await clock.advance(120_001);
  t.deepEqual(book.of('a/web'), UNKNOWN);
  t.deepEqual(book.history('a/web'), { rates: [], open: [] });
  await book.record();
  t.deepEqual(book.of('a/web'), { rate: Number.NaN, open: 1 }, 'not the rate of two minutes');
});

test('A page has rounds made only if there are none', async (t) => {
  const { dataplane, clock, book } = created();
  book.want();
  book.want();
  t.is(dataplane.rounds, 1);
  await settled();
  book.want();
  t.is(dataplane.rounds, 1, 'the last one is recent');
  await clock.advance(5_000);
  await book.record();
  book.want();
  t.is(dataplane.rounds, 1, 'a scrape had one made');
  await clock.advance(5_000);
  dataplane.fault = new Error('HAProxy is away');
  book.want();
  await settled();
  t.is(dataplane.rounds, 2);
  book.want();
  t.is(dataplane.rounds, 3, 'after a failure at once');
  await clock.advance(60_000);
  t.is(dataplane.rounds, 3, 'without a page none');
});
