import test from 'ava';
import { SPARES } from '../../../agent/haproxy/config/spare-pools.ts';
import { planLoadBalancer } from '../../../agent/haproxy/plan.ts';
import type { MapRow } from '../../../agent/haproxy/routes/maps.ts';
import { Running } from '../../../agent/haproxy/running.ts';
import { isOfRow } from '../../../agent/haproxy/socket/commands.ts';
import { Spares } from '../../../agent/haproxy/spares.ts';
import type { Listener, LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { spareBackend } from '../../../agent/model/names.ts';
import { poolOf } from '../../support/values/routes.ts';

const listenerOf = ({ listeners: [listener] }: LoadBalancer): Listener => listener as Listener;
const pool = (name: string): Listener => listenerOf(poolOf(name, []));

test('Each pool of a round is offered a spare backend of its own, as long as there are some', (t) => {
  const spares = new Spares(pool('first'));
  const offer = spares.offer();
  const names = Array.from({ length: SPARES }, (_, at) => offer(pool(`new-${at}`))?.value);
  t.is(new Set(names).size, SPARES);
  t.false(names.includes(undefined));
  t.is(offer(pool('one-more')), undefined);
  t.is(spares.offer()(pool('another'))?.value, names[0], 'an offer takes nothing');
});

test('A backend that another pool has got meanwhile is not given', (t) => {
  const spares = new Spares(pool('first'));
  const [a, b] = ['a', 'b'].map((name) => spares.offer()(pool(name)) as MapRow) as [MapRow, MapRow];
  t.is(a.value, b.value);
  t.true(spares.give(a));
  t.true(spares.give(a));
  t.false(spares.give(b));
  const other = spares.offer()(pool('b')) as MapRow;
  t.not(other.value, a.value);
  t.true(spares.give(other));
  t.false(spares.give({ ...b, value: spareBackend(9) }), 'a pool keeps the one that it has');
  t.is(spares.offer()(pool('a'))?.value, a.value);
  spares.release(a.key);
  t.is(spares.given(a.key), undefined);
  t.true(spares.give({ ...a, key: pool('c').name }));
});

test('A pool keeps the spare backend that the worker has given it, also while it is not desired', (t) => {
  const served = poolOf('served', ['10.0.0.1:80']);
  const running = Running.booted([served], () => 1);
  const plan = (wanted: LoadBalancer, after: LoadBalancer | undefined) =>
    planLoadBalancer({ key: wanted.key, running, before: undefined, after });
  const wanted = poolOf('wanted', ['10.0.0.2:80']);
  const { commands, reload } = plan(wanted, wanted);
  t.is(reload, undefined);
  t.deepEqual(
    commands.map(({ kind }) => kind),
    ['AddMapEntry', 'AddServer', 'SetServerState'],
  );
  for (const command of commands) {
    if (isOfRow(command)) t.true(running.spares.give(command.position.row));
    running.fold(command);
  }
  t.is(plan(wanted, wanted).effort, 'none');
  t.deepEqual(
    plan(wanted, undefined).commands.map(({ kind }) => kind),
    ['SetServerState'],
  );
});

test('A pool that has left keeps its servers, and a frontend that has left is removed by a reload', (t) => {
  const served = poolOf('served', ['10.0.0.1:80']);
  const running = Running.booted([served], () => 1);
  const plan = (serving: 'served' | 'left') =>
    planLoadBalancer({ key: served.key, running, before: served, after: undefined, serving });
  t.is(plan('left').effort, 'none');
  t.deepEqual(
    plan('served').commands.map(({ kind }) => kind),
    ['SetServerState'],
  );
});
