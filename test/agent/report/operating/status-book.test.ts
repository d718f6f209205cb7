import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { ChangeObservers } from '../../../../agent/report/change-observers.ts';
import { HealthTracker } from '../../../../agent/report/operating/status-book.ts';
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
