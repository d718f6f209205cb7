import test from 'ava';
import { EngineChanges } from '../../../agent/dataplane/engine-changes.ts';
import type { Engine, Listener, LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { service, slice } from '../../support/values/build.ts';
import { loadBalancerOf, translated } from '../../support/values/translated.ts';

const KEY = 'default/web';
const NAME = 'default:web:tcp:80:v4';

const web = loadBalancerOf(translated([service({}), slice({ endpoints: ['10.0.0.1'] })]));

function having(change: Partial<Listener>): LoadBalancer {
  return { ...web, listeners: web.listeners.map((listener) => ({ ...listener, ...change })) };
}

/** HAProxy serves the listener, and the kernel is to. */
function moving() {
  const desired = new Map([[KEY, having({ engine: 'haproxy', log: 'all' })]]);
  const changes = new EngineChanges(desired);
  const serving = new Set<Engine>(['haproxy']);
  const update = () => changes.update([KEY], (engine, listener) => listener === NAME && serving.has(engine));
  const kept = () => changes.viewOf('haproxy').get(KEY)?.listeners[0];
  update();
  return { desired, changes, serving, update, kept };
}

test('A kept listener is as it was for its engine, but follows its members, its clients and its addresses', (t) => {
  const { desired, changes, update, kept } = moving();
  const members = web.listeners[0]?.pool.members.map((member) => ({ ...member, weight: 7 })) ?? [];
  t.is(members.length, 1);
  const pool = { ...web.listeners[0]?.pool, members } as Listener['pool'];
  const now = {
    engine: 'kernel',
    log: 'none',
    allowedCidrs: ['192.0.2.0/24'],
    addresses: ['192.0.2.9'],
    pool,
  } as const;
  desired.set(KEY, having(now));
  t.deepEqual(update(), [KEY]);
  t.like(kept(), { ...now, engine: 'haproxy', log: 'all' });
  t.is(changes.viewOf('kernel').get(KEY), desired.get(KEY));
  t.true(changes.isUnderWay(KEY));
  t.deepEqual(update(), [], 'nothing has changed');
});

test('The value of a view stays the same until it changes', (t) => {
  const { desired, changes, update, serving } = moving();
  const view = changes.viewOf('haproxy');
  t.is(view.get(KEY), desired.get(KEY));
  desired.set(KEY, having({ engine: 'kernel' }));
  update();
  const value = view.get(KEY);
  update();
  t.is(view.get(KEY), value);
  t.deepEqual([...view], [[KEY, value]]);
  t.deepEqual([view.size, view.has(KEY), view.has('default/other')], [1, true, false]);
  serving.add('kernel');
  t.deepEqual(update(), [KEY]);
  t.is(view.get(KEY), desired.get(KEY));
  t.false(changes.isUnderWay(KEY));
});

test('Nothing is kept at no address, or of a load balancer that is removed', (t) => {
  const { desired, changes, update } = moving();
  desired.set(KEY, having({ engine: 'kernel' }));
  update();
  desired.set(KEY, having({ engine: 'kernel', addresses: [] }));
  t.deepEqual(update(), [KEY]);
  t.false(changes.isUnderWay(KEY));
  desired.set(KEY, having({ engine: 'haproxy' }));
  update();
  desired.set(KEY, having({ engine: 'kernel' }));
  update();
  t.true(changes.isUnderWay(KEY));
  desired.delete(KEY);
  t.deepEqual(update(), [KEY]);
  t.deepEqual([changes.isUnderWay(KEY), changes.viewOf('haproxy').get(KEY)], [false, undefined]);
});

test('An agent that has just started keeps what another engine serves, or has served', (t) => {
  const desired = new Map([[KEY, having({ engine: 'kernel' })]]);
  const running = new EngineChanges(desired);
  running.update([KEY], (engine) => engine === 'haproxy');
  t.is(running.viewOf('haproxy').get(KEY)?.listeners[0]?.engine, 'haproxy');

  desired.set(KEY, having({ engine: 'haproxy' }));
  const restored = new EngineChanges(desired);
  restored.restore('kernel', [NAME, 'default:other:tcp:80:v4']);
  t.is(restored.viewOf('kernel').get(KEY)?.listeners[0]?.engine, 'kernel');
  t.is(restored.viewOf('haproxy').get(KEY), desired.get(KEY));
  restored.restore('haproxy', [NAME]);
  t.is(restored.viewOf('haproxy').get(KEY), desired.get(KEY), 'its own');
});
