import test from 'ava';
import type { MemberFact } from '../../../../agent/dataplane/forwarder.ts';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { operatingFamilies } from '../../../../agent/report/operating/operating-metrics.ts';
import { StatusBook } from '../../../../agent/report/operating/status-book.ts';
import { endpoint, service, slice } from '../../../support/values/build.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

const monitored = { annotations: { 'headgate.io/health-monitor': 'tcp' } };
const pod = endpoint('10.0.0.1', { target: 'Pod/web-1' });
const web = loadBalancerOf(translated([service(monitored), slice({ endpoints: [pod] })]));
const all = new Map([[web.key, web]]);
const MEMBER = '10.0.0.1:8080';

/** A book that has this load balancer as HAProxy would have it. */
function bookOf(loadBalancer: LoadBalancer, member: MemberFact, isServed = true): StatusBook {
  const book = new StatusBook();
  book.update(loadBalancer.key, loadBalancer, {
    serves: () => isServed,
    members: () => new Map([[MEMBER, member]]),
    failures: () => undefined,
  });
  return book;
}

/** The rows of each metric as they stand in an exposition. */
async function rowsOf(book: StatusBook, detail: 'listener' | 'pool' | 'member' = 'member') {
  return Object.fromEntries(
    (await operatingFamilies(book.all(), all, detail)).map((family) => [
      family.name.replace(/^headgate_(\w+)_operating_status$/, '$1'),
      family.parts.flatMap(({ labels, rows, value }) =>
        rows.map((row) => `${labels},${row.labels} ${value(row)}`),
      ),
    ]),
  );
}

const UP: MemberFact = { state: 'ready', weight: 16, isDown: false, cause: '' };
const DOWN: MemberFact = { state: 'ready', weight: 16, isDown: true, cause: 'connection refused' };
const SERVICE = 'namespace="default",service="web"';
const LISTENER = `${SERVICE},port="80",protocol="TCP",family="v4"`;

test('Each object has a row for its status, except members that are well', async (t) => {
  t.deepEqual(await rowsOf(bookOf(web, UP)), {
    load_balancer: [`status="ONLINE",${SERVICE} 1`],
    listener: [`status="ONLINE",${LISTENER} 1`],
    pool: [`status="ONLINE",${LISTENER} 1`],
    member: [],
  });
});

test('Failing members are named with their target, and lower the status of the others', async (t) => {
  t.deepEqual(await rowsOf(bookOf(web, DOWN)), {
    load_balancer: [`status="ERROR",${SERVICE} 1`],
    listener: [`status="ERROR",${LISTENER} 1`],
    pool: [`status="ERROR",${LISTENER} 1`],
    member: [`status="ERROR",${SERVICE},port="80",protocol="TCP",pod="web-1",address="10.0.0.1:8080" 1`],
  });
});

test('A listener that HAProxy does not serve is OFFLINE, whatever its pool is', async (t) => {
  const { listener, pool } = await rowsOf(bookOf(web, UP, false));
  t.deepEqual([listener, pool], [[`status="OFFLINE",${LISTENER} 1`], [`status="ONLINE",${LISTENER} 1`]]);
});

test('A changed status moves its row, and a load balancer that is gone has none', async (t) => {
  const book = bookOf(web, DOWN);
  t.is((await rowsOf(book)).member?.length, 1);
  book.update(web.key, web, {
    serves: () => true,
    members: () => new Map([[MEMBER, UP]]),
    failures: () => undefined,
  });
  t.deepEqual((await rowsOf(book)).load_balancer, [`status="ONLINE",${SERVICE} 1`]);
  t.deepEqual((await rowsOf(book)).member, []);
  book.update(web.key, undefined, {
    serves: () => true,
    members: () => new Map([[MEMBER, UP]]),
    failures: () => undefined,
  });
  t.deepEqual(await rowsOf(book), { load_balancer: [], listener: [], pool: [], member: [] });
});

test('metricsDetail leaves out members, or pools too', async (t) => {
  t.deepEqual(Object.keys(await rowsOf(bookOf(web, DOWN), 'pool')), ['load_balancer', 'listener', 'pool']);
  t.deepEqual(Object.keys(await rowsOf(bookOf(web, DOWN), 'listener')), ['load_balancer', 'listener']);
});
