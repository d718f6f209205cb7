import test from 'ava';
import { AclIds } from '../../../agent/haproxy/config/acl-ids.ts';
import { Running } from '../../../agent/haproxy/running.ts';
import { service, slice } from '../../support/values/build.ts';
import { translated } from '../../support/values/translated.ts';

const [API, WEB] = ['default:api:tcp:81:v4', 'default:web:tcp:80:v4'];

/** A worker that has just booted with two load balancers, the second with more ranges of clients than a line of the file can have. */
function booted() {
  const loadBalancerSourceRanges = Array.from({ length: 50 }, (_, at) => `198.18.${at}.0/24`);
  const model = translated([
    service({ name: 'api', ports: [81], loadBalancerIP: '192.0.2.11' }),
    slice({ name: 'api', serviceName: 'api', endpoints: ['10.0.0.3'] }),
    service({ loadBalancerSourceRanges }),
    slice({ endpoints: ['10.0.0.1', '10.0.0.2'] }),
  ]);
  return Running.booted(model.loadBalancers.values(), new AclIds().idOf);
}

test('Running starts with the file that the worker booted from', (t) => {
  const running = booted();
  t.deepEqual([...running.names()].sort(), [API, WEB]);
  const web = running.get(WEB);
  t.deepEqual([...(web?.servers.keys() ?? [])], ['10.0.0.1:8080', '10.0.0.2:8080']);
  t.deepEqual(
    web?.allowed.map(({ cidrs }) => cidrs.size),
    [40, 10],
  );
  t.deepEqual(web, running.get(WEB));
  t.deepEqual([...running.changed()], []);
  t.is(running.get('default:other:tcp:80:v4'), undefined);
});

test('A command changes its own listener only, and no other is stored', (t) => {
  const running = booted();
  const names = [...running.names()];
  const api = running.get(API);
  running.fold({ kind: 'SetServerState', backend: WEB, server: '10.0.0.1:8080', state: 'maint' });
  t.is(running.get(WEB)?.servers.get('10.0.0.1:8080')?.state, 'maint');
  t.is(running.get(WEB)?.servers.get('10.0.0.2:8080')?.state, 'ready');
  t.deepEqual(running.get(API), api);
  t.deepEqual(
    [...running.changed()].map(([name]) => name),
    [WEB],
  );
  // An audit continues where the last one stopped.
  t.deepEqual([...running.names()], names);
});

test('Allowed clients change by the id of their ACL, on any line', (t) => {
  const running = booted();
  const [first, second] = running.get(WEB)?.allowed.map(({ id }) => id) ?? [];
  t.is(running.listenerOfAcl(second ?? 0), WEB);
  running.fold({ kind: 'AddCidr', acl: first ?? 0, cidr: '203.0.113.0/24' });
  running.fold({ kind: 'DeleteCidr', acl: second ?? 0, cidr: '198.18.49.0/24' });
  const [one, two] = running.get(WEB)?.allowed ?? [];
  t.true(one?.cidrs.has('203.0.113.0/24'));
  t.deepEqual([one?.cidrs.size, two?.cidrs.size], [41, 9]);
});
