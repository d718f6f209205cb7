import test, { type ExecutionContext } from 'ava';
import { PoolReports } from '../../../agent/address-keeper/pool-reports.ts';
import { Addresses } from '../../../agent/addresses/addresses.ts';
import type { AddressPool, PoolReady } from '../../../agent/kubernetes/address-pool.ts';
import { FakeApi } from '../../support/kube/fake-api.ts';
import { pool } from '../../support/values/address-requests.ts';
import { silentLog } from '../../support/values/silent-log.ts';

const BEFORE: PoolReady = { status: 'True', reason: 'Active', lastTransitionTime: '2026-01-01T00:00:00Z' };

function start(t: ExecutionContext) {
  const api = new FakeApi();
  const addresses = new Addresses(() => undefined);
  const events: string[] = [];
  const reports = new PoolReports({
    addresses,
    api,
    isLeader: () => true,
    events: {
      record: ({ kind, name }, { type, reason, note }) =>
        events.push(`${kind} ${name} ${type} ${reason} ${note}`),
    },
    log: silentLog(),
  });
  t.teardown(() => reports.close());
  reports.lead(true);
  const set = (...pools: readonly AddressPool[]) => {
    addresses.update({ pools }, 0);
    reports.writeAll(pools);
  };
  return { set, reports, events };
}

function ofApi(name: string, blocks: readonly string[], more: Partial<AddressPool> = {}): AddressPool {
  return { ...pool(name, blocks), source: 'api', uid: `uid-of-${name}`, generation: 1, ...more };
}

test('PoolReports sends an Event when a pool is ready, and none again while nothing changes', (t) => {
  const { set, events } = start(t);
  set(ofApi('a', ['192.0.2.0/24']));
  set(ofApi('a', ['192.0.2.0/24']));
  t.deepEqual(events, ['AddressPool a Normal Active The pool gives addresses']);
});

test('PoolReports sends no Event for a condition that an agent before has written', (t) => {
  const { set, events } = start(t);
  set(ofApi('a', ['192.0.2.0/24'], { ready: BEFORE }));
  t.deepEqual(events, []);
});

test('PoolReports warns of pools that overlap, and sends an Event when they no longer do', (t) => {
  const { set, events } = start(t);
  const first = ofApi('a', ['192.0.2.0/24'], { ready: BEFORE });
  set(first, ofApi('b', ['192.0.2.0/25'], { ready: BEFORE }));
  t.true(events.length > 0);
  t.true(
    events.every((event) => / Warning Conflicting .*overlap/i.test(event)),
    events.join(),
  );
  events.length = 0;
  set(first, ofApi('b', ['198.51.100.0/25'], { ready: BEFORE }));
  t.true(events.length > 0);
  t.true(
    events.every((event) => event.endsWith('Normal Active The pool gives addresses')),
    events.join(),
  );
});
