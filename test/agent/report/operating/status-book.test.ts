import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { ChangeObservers } from '../../../../agent/report/change-observers.ts';
import { HealthTracker, StatusBook } from '../../../../agent/report/operating/status-book.ts';
import { endpoint, service, slice } from '../../../support/values/build.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

const web = loadBalancerOf(translated([service(), slice({ endpoints: [endpoint('10.0.0.1')] })]));

/** A tracker whose reports come back to it, as in the agent; `reports` are the keys of each. */
function tracker() {
  const loadBalancers = new Map([[web.key, web]]);
  const observers = new ChangeObservers();
  const reports: (readonly string[])[] = [];
  const health = new HealthTracker({
    loadBalancers,
    dataplane: { serves: () => true, members: () => new Map(), failures: () => undefined },
    reach: undefined,
    onChanged: (keys) => {
      reports.push([...keys]);
      observers.changed(keys);
    },
  });
  observers.subscribe(health);
  return { loadBalancers, observers, reports };
}

test('A Service that is no load balancer changes no status: nothing is reported again and again', async (t) => {
  const { observers, reports } = tracker();
  observers.changed(['default/kubernetes']);
  await delay(50);
  t.deepEqual(reports, []);
});

test('A load balancer that appears and one that goes are reported once each', async (t) => {
  const { loadBalancers, observers, reports } = tracker();
  observers.changed([web.key]);
  await delay(50);
  t.deepEqual(reports, [[web.key]]);
  loadBalancers.delete(web.key);
  observers.changed([web.key]);
  await delay(50);
  t.deepEqual(reports, [[web.key], [web.key]]);
});

test('A load balancer that no client reaches counts as OFFLINE, with its listeners', (t) => {
  const book = new StatusBook();
  const fact = { state: 'ready', weight: 1, isDown: undefined, cause: '' } as const;
  const members = new Map(web.listeners.flatMap(({ pool }) => pool.members.map(({ name }) => [name, fact])));
  const dataplane = { serves: () => true, members: () => members, failures: () => undefined };
  book.update(web.key, web, dataplane);
  const before = book.of(web.key)?.status;
  t.not(before, 'OFFLINE');
  const problem = {
    object: 'Service default/web',
    reason: 'AddressUnavailable',
    message: 'No client',
  } as const;
  t.true(book.update(web.key, web, dataplane, { problemsOf: () => [problem] }));
  t.is(book.counts.load_balancer.OFFLINE, 1);
  t.is(book.counts.listener.OFFLINE, web.listeners.length);
  t.deepEqual(
    book.unwell().map(({ key, status }) => [key, status]),
    [[web.key, 'OFFLINE']],
  );
  t.true(book.update(web.key, web, dataplane, { problemsOf: () => [] }));
  t.is(book.of(web.key)?.status, before);
});

test('A class without Ingresses has no listener, and is not among the unwell', (t) => {
  const book = new StatusBook();
  const dataplane = { serves: () => true, members: () => new Map(), failures: () => undefined };
  const edge = { ...web, key: 'ingress:-/edge', listeners: [] };
  book.update(edge.key, edge, dataplane);
  t.deepEqual(book.unwell(), []);
  const problem = { object: 'Service default/web', reason: 'AddressPending', message: 'It waits' } as const;
  book.update(web.key, { ...web, listeners: [], problems: [problem] }, dataplane);
  t.is(book.unwell().length, 1);
});
