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

test('Without anything in quarantine a load balancer is itself', (t) => {
  t.is(new Quarantine().effective(good), good);
});

test('A rejected load balancer goes on with its last good structure', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, good, 'no');
  t.deepEqual(quarantine.effective(bad)?.listeners, good.listeners);
  t.is(quarantine.rejected, 1);
});

test('A rejected load balancer that never was good is left out', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, undefined, 'no');
  t.is(quarantine.effective(bad), undefined);
});

test('Others are not touched by a rejection', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, undefined, 'no');
  const other = loadBalancerOf(translated([service({ name: 'api' })]), 'default/api');
  t.is(quarantine.effective(other), other);
});

test('A rejection is a problem of the Service, in the words that were given', (t) => {
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

test('Members and clients of a rejected load balancer go on changing', (t) => {
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

test('Another structure is tried afresh', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, good, 'no');
  const repaired = webWith(algorithm('least-connections'));
  t.is(quarantine.effective(repaired), repaired);
  t.deepEqual(quarantine.problemsOf(repaired), []);
});

test('A rejected load balancer gives up the addresses that it does not ask for any more: they may be another one’s', (t) => {
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

test('A load balancer whose last good structure is rejected as well is left out', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, good, 'no');
  quarantine.reject(bad, good, 'neither');
  t.is(quarantine.effective(bad), undefined);
  t.is(quarantine.problemsOf(bad)[0]?.message, 'neither');
});

test('The same load balancer has the same effective value, for those who cache by it', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, good, 'no');
  t.is(quarantine.effective(bad), quarantine.effective(bad));
});

test('A load balancer that is forgotten is tried afresh', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, good, 'no');
  t.not(quarantine.effective(bad), bad);
  quarantine.forget('default/web');
  t.is(quarantine.effective(bad), bad);
  t.is(quarantine.rejected, 0);
});

const twoAddresses = webWith({ loadBalancerIP: undefined, statusIPs: ['192.0.2.10', '192.0.2.11'] });

test('An address that cannot be bound is left out, the others are listened on', (t) => {
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

test('An address is blocked on the one port and for TCP only', (t) => {
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

test('An address that can be bound again is listened on again', (t) => {
  const quarantine = new Quarantine();
  quarantine.block('192.0.2.10', 80, 'no');
  t.true(quarantine.isBlocked('192.0.2.10', 80));
  t.deepEqual(quarantine.effective(good)?.listeners[0]?.addresses, []);
  quarantine.unblock('192.0.2.10', 80);
  t.is(quarantine.effective(good), good);
  t.deepEqual(quarantine.blocked, []);
});

test('What stands in for a rejected load balancer loses the addresses that cannot be bound, too', (t) => {
  const quarantine = new Quarantine();
  quarantine.reject(bad, good, 'no');
  quarantine.block('192.0.2.10', 80, 'no');
  t.deepEqual(quarantine.effective(bad)?.listeners[0]?.addresses, []);
  t.deepEqual(
    quarantine.problemsOf(bad).map(({ reason }) => reason),
    ['ConfigurationRejected', 'AddressUnavailable'],
  );
});
