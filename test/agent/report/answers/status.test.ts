import test from 'ava';
import type { DataplaneFacts } from '../../../../agent/dataplane/forwarder.ts';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { countsWithoutPools } from '../../../../agent/report/answers/status.ts';
import { StatusBook } from '../../../../agent/report/operating/status-book.ts';

test('countsWithoutPools() counts what clients reach, and the members behind routes', (t) => {
  const facts = { serves: () => true, members: () => new Map(), failures: () => undefined };
  const book = new StatusBook();
  for (const key of ['gateway:shop/edge', 'pool:shop/api', 'shop/web'])
    book.update(
      key,
      { key, listeners: [], problems: [] } as unknown as LoadBalancer,
      facts as unknown as DataplaneFacts,
    );
  t.is(book.counts.load_balancer.OFFLINE, 3);
  t.is(countsWithoutPools(book).load_balancer.OFFLINE, 2);
  t.is(countsWithoutPools(book).member, book.counts.member);
});
