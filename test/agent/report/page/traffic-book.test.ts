import test from 'ava';
import type { ListenerTraffic } from '../../../../agent/dataplane/status.ts';
import { poolKey, poolListener } from '../../../../agent/model/names.ts';
import { TrafficBook } from '../../../../agent/report/page/traffic-book.ts';
import {
  NO_TRAFFIC_VALUES,
  recordOf,
  type TrafficValues,
} from '../../../../agent/report/page/traffic-history.ts';
import { FakeClock, settled } from '../../../support/basics/fake-clock.ts';
import { listenerTraffic } from '../../../support/values/listener-traffic.ts';

const [HTTP, HTTPS, DNS] = ['a:web:tcp:80:v4', 'a:web:tcp:443:v4', 'a:dns:udp:53:v4'] as const;
const UNKNOWN = recordOf(() => Number.NaN);

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
    listenerTraffic({ name: HTTP, total: 1_000, open: 3 }),
    listenerTraffic({ name: DNS, total: 5, open: Number.NaN }),
  ];
  await book.record();
  t.like(book.of('a/web'), { rate: Number.NaN, open: 3 }, 'a rate needs two rounds');
  await clock.advance(10_000);
  dataplane.listeners = [
    listenerTraffic({ name: HTTP, total: 1_100, open: 4 }),
    listenerTraffic({ name: HTTPS, total: 77, open: 1 }),
    listenerTraffic({ name: DNS, total: 25, open: Number.NaN }),
  ];
  await book.record();
  t.like(book.of('a/web'), { rate: 10, open: 5 }, 'a listener that is new has no rate yet');
  t.like(book.of('a/dns'), { rate: 2, open: Number.NaN });
  t.deepEqual(book.of('a/none'), UNKNOWN);
});

test('Two rounds that end together count once, and rounds that end are forgotten', async (t) => {
  const { dataplane, clock, book } = created();
  dataplane.listeners = [listenerTraffic({ name: HTTP, total: 0, open: 1 })];
  await book.record();
  await clock.advance(10_000);
  dataplane.listeners = [listenerTraffic({ name: HTTP, total: 50, open: 1 })];
  await book.record();
  await clock.advance(500);
  await book.record();
  t.like(book.of('a/web'), { rate: 5, open: 1 });
  t.is(book.history('a/web').rate.length, 3);
  await clock.advance(120_001);
  t.deepEqual(book.of('a/web'), UNKNOWN);
  t.deepEqual(book.history('a/web'), NO_TRAFFIC_VALUES);
  await book.record();
  t.like(book.of('a/web'), { rate: Number.NaN, open: 1 }, 'not the rate of two minutes');
});

test('All load balancers together have each client once, and the retries and answers of the pools of their routes', async (t) => {
  const { dataplane, clock, book } = created();
  const [pool, gateway] = [poolListener(poolKey('a', 'api', ''), 80), 'gateway:a:edge:tcp:80:v4'];
  const at = (total: number) => [
    listenerTraffic({ name: HTTP, total, open: 1, bytesOut: 10 * total, errors: 0, retries: 0, latency: 10 }),
    listenerTraffic({ name: gateway, total, open: 2, bytesOut: 30 * total, errors: total, retries: 0 }),
    listenerTraffic({ name: pool, total: 3 * total, open: 2, bytesOut: 99, retries: total, latency: 50 }),
  ];
  dataplane.listeners = at(0);
  await book.record();
  await clock.advance(10_000);
  dataplane.listeners = at(100);
  await book.record();
  const last = ({ rate, open, bytesOut, errors, retries, latency }: TrafficValues) =>
    [rate, open, bytesOut, errors, retries, latency].map((values) => values.at(-1));
  t.deepEqual(last(book.historyOfAll), [20, 3, 400, 10, 10, 40]);
  t.like(book.of(poolKey('a', 'api', '')), { rate: 30, open: 2, retries: 10, latency: 50 });
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
