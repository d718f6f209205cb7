import test from 'ava';
import { SPARES } from '../../../agent/haproxy/config/spare-pools.ts';
import { planLoadBalancer } from '../../../agent/haproxy/plan.ts';
import { Running } from '../../../agent/haproxy/running.ts';
import { Spares } from '../../../agent/haproxy/spares.ts';
import type { Listener, LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { poolOf } from '../../support/values/routes.ts';

const listenerOf = ({ listeners: [listener] }: LoadBalancer): Listener => listener as Listener;
const pool = (name: string): Listener => listenerOf(poolOf(name, []));

test('Each pool gets a spare backend of its own, as long as there are some', (t) => {
  const spares = new Spares(pool('first'));
  const names = Array.from({ length: SPARES }, (_, at) => spares.of(pool(`new-${at}`))?.row.value);
  t.is(new Set(names).size, SPARES);
  t.is(spares.of(pool('one-more')), undefined);
  t.is(spares.of(pool('new-3'))?.row.value, names[3]);
});

test('A pool that is planned no more before it has its spare backend gives it back', (t) => {
  const served = poolOf('served', ['10.0.0.1:80']);
  const running = Running.booted([served], () => 1);
  const plan = (wanted: LoadBalancer, after: LoadBalancer | undefined) =>
    planLoadBalancer(wanted.key, running, undefined, after);
  const first = poolOf('first', ['10.0.0.2:80']);
  const kinds = (after: LoadBalancer) => plan(after, after).commands.map(({ kind }) => kind);
  t.deepEqual(kinds(first), ['AddMapEntry', 'AddServer', 'SetServerState']);
  plan(first, undefined);
  for (let at = 1; at < SPARES; at++) kinds(poolOf(`new-${at}`, []));
  const second = poolOf('second', ['10.0.0.3:80']);
  const { commands } = plan(second, second);
  t.is(commands[0]?.kind, 'AddMapEntry');
  t.is(plan(first, first).reload, 'listener-added', 'there are no more');
  // Of one that the worker has given it keeps the backend, which is emptied.
  for (const command of commands) running.fold(command);
  t.deepEqual(
    plan(second, undefined).commands.map(({ kind }) => kind),
    ['SetServerState'],
  );
});

test('A pool that has left keeps its servers, and a frontend that has left is removed by a reload', (t) => {
  const served = poolOf('served', ['10.0.0.1:80']);
  const running = Running.booted([served], () => 1);
  const plan = (share: 'served' | 'left') =>
    planLoadBalancer(served.key, running, served, undefined, undefined, share);
  t.is(plan('left').effort, 'none');
  t.deepEqual(
    plan('served').commands.map(({ kind }) => kind),
    ['SetServerState'],
  );
});
