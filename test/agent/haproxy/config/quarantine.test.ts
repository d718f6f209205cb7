import test from 'ava';
import { Quarantine } from '../../../../agent/haproxy/config/quarantine.ts';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { service, slice } from '../../../support/values/build.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

function webWith({
  endpoints = ['10.0.0.1'],
  ...given
}: Parameters<typeof service>[0] & { endpoints?: string[] } = {}): LoadBalancer {
  return loadBalancerOf(translated([service(given), slice({ endpoints })]));
}

const algorithm = (value: string) => ({ annotations: { 'headgate.io/algorithm': value } });
const good = webWith();
const bad = webWith(algorithm('random'));

test('effective() returns the same load balancer if the quarantine is empty', (t) => {
  t.is(new Quarantine().effective(good), good);
});

test('A rejected load balancer keeps its last good structure', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, good, 'no');
  t.deepEqual(quarantine.effective(bad)?.listeners, good.listeners);
  t.is(quarantine.rejected, 1);
});

test('A rejected load balancer without a last good structure is left out', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, undefined, 'no');
  t.is(quarantine.effective(bad), undefined);
});

test('A rejection does not affect other load balancers', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, undefined, 'no');
  const other = loadBalancerOf(translated([service({ name: 'api' })]), 'default/api');
  t.is(quarantine.effective(other), other);
});

test('A rejection is a problem of the Service with the given message', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, good, 'HAProxy rejects its configuration: unknown keyword');
  t.deepEqual(quarantine.problemsOf(bad), [
    {
      object: 'Service default/web',
      reason: 'ConfigurationRejected',
      message: 'HAProxy rejects its configuration: unknown keyword',
    },
  ]);
  t.deepEqual(quarantine.problemsOf(good), []);
});

test('Members and clients of a rejected load balancer continue to change', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, good, 'no');
  const today = webWith({
    ...algorithm('random'),
    endpoints: ['10.0.0.7'],
    loadBalancerSourceRanges: ['198.51.100.0/24'],
  });
  const [listener] = quarantine.effective(today)?.listeners ?? [];
  t.is(listener?.pool.algorithm, 'round-robin');
  t.deepEqual(
    listener?.pool.members.map(({ name }) => name),
    ['10.0.0.7:8080'],
  );
  t.deepEqual(listener?.allowedCidrs, ['198.51.100.0/24']);
});

test('A change of members alone does not lift a rejection', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, good, 'no');
  const today = webWith({ ...algorithm('random'), endpoints: [] });
  t.is(quarantine.problemsOf(today).length, 1);
});

test('Another structure is a new attempt', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, good, 'no');
  const repaired = webWith(algorithm('least-connections'));
  t.is(quarantine.effective(repaired), repaired);
  t.deepEqual(quarantine.problemsOf(repaired), []);
});

test('A rejected load balancer gives up addresses that are no longer desired', (t) => {
  const quarantine = new Quarantine();
  const moved = webWith({ ...algorithm('random'), loadBalancerIP: '192.0.2.99' });
  quarantine.reject(moved, good, 'no');
  t.deepEqual(
    quarantine.effective(moved)?.listeners.map(({ addresses }) => addresses),
    [[]],
  );
  const otherPort = webWith({ ports: [81] });
  quarantine.reject(otherPort, good, 'no');
  t.deepEqual(quarantine.effective(otherPort)?.listeners, []);
});

test('A load balancer whose last good structure is rejected too is left out', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, good, 'no');
  quarantine.reject(bad, good, 'neither');
  t.is(quarantine.effective(bad), undefined);
  t.is(quarantine.problemsOf(bad)[0]?.message, 'neither');
});

test('An unchanged load balancer keeps its effective value', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, good, 'no');
  t.is(quarantine.effective(bad), quarantine.effective(bad));
});

test('forget() makes the load balancer a new attempt', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, good, 'no');
  t.not(quarantine.effective(bad), bad);
  quarantine.forget('default/web');
  t.is(quarantine.effective(bad), bad);
  t.is(quarantine.rejected, 0);
});

const twoAddresses = webWith({ loadBalancerIP: undefined, statusIPs: ['192.0.2.10', '192.0.2.11'] });

test('An address that cannot be bound is left out, the others stay', (t) => {
  const quarantine = new Quarantine();
  quarantine.block('192.0.2.10', 80, 'another program listens there');
  t.deepEqual(quarantine.effective(twoAddresses)?.listeners[0]?.addresses, ['192.0.2.11']);
  t.deepEqual(quarantine.problemsOf(twoAddresses), [
    {
      object: 'Service default/web',
      reason: 'AddressUnavailable',
      message: 'Cannot listen on 192.0.2.10 port 80: another program listens there',
      port: { protocol: 'TCP', port: 80 },
    },
  ]);
});

test('An address is blocked on one port and for TCP only', (t) => {
  const quarantine = new Quarantine();
  quarantine.block('192.0.2.10', 80, 'no');
  const others = webWith({
    ports: [
      { name: 'a', port: 81 },
      { name: 'b', port: 80, protocol: 'UDP' },
    ],
  });
  t.is(quarantine.effective(others), others);
  t.deepEqual(quarantine.problemsOf(others), []);
});

test('unblock() brings the address back', (t) => {
  const quarantine = new Quarantine();
  quarantine.block('192.0.2.10', 80, 'no');
  t.true(quarantine.isBlocked('192.0.2.10', 80));
  t.deepEqual(quarantine.effective(good)?.listeners[0]?.addresses, []);
  quarantine.unblock('192.0.2.10', 80);
  t.is(quarantine.effective(good), good);
  t.deepEqual(quarantine.blocked, []);
});

test('The last good structure loses addresses that cannot be bound too', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, good, 'no');
  quarantine.block('192.0.2.10', 80, 'no');
  t.deepEqual(quarantine.effective(bad)?.listeners[0]?.addresses, []);
  t.deepEqual(
    quarantine.problemsOf(bad).map(({ reason }) => reason),
    ['ConfigurationRejected', 'AddressUnavailable'],
  );
});
