import test from 'ava';
import type { LoadBalancer } from '../../../../agent/model/load-balancer.ts';
import { DirectReach } from '../../../../agent/nftables/checks/direct-reach.ts';
import { service, slice } from '../../../support/values/build.ts';
import { loadBalancerOf, translated } from '../../../support/values/translated.ts';

const ports = [{ port: 53, protocol: 'UDP' as const }];
const ROUTER = 'the router 10.0.0.254 is on the way to it';

function rig() {
  const annotations = { 'headgate.io/members': 'direct' };
  const desired = translated([
    service({ ports, annotations }),
    slice({ endpoints: ['10.0.0.1', '10.0.0.2'], ports }),
  ]);
  const loadBalancer: LoadBalancer = loadBalancerOf(desired);
  const routes = new Map<string, string>([['10.0.0.1', '']]);
  const changed: string[] = [];
  const reach = new DirectReach({
    desired: new Map([[loadBalancer.key, loadBalancer]]),
    netns: '',
    onChanged: (keys) => void changed.push(...keys),
    routes: async () => new Map(routes),
  });
  const [listener] = loadBalancer.listeners;
  if (listener === undefined) throw new Error('It has no listener');
  return { loadBalancer, listener, reach, routes, changed };
}

test('A direct member is not reached before its route is known', async (t) => {
  const { listener, reach, changed, loadBalancer } = rig();
  t.is(reach.unreached(listener).size, 2);
  t.deepEqual(reach.problemsOf(loadBalancer), []);
  await reach.check();
  t.deepEqual([...reach.unreached(listener)], [['10.0.0.2:53', 'its route is not known yet']]);
  t.true(changed.includes(loadBalancer.key));
  reach.close();
});

test('A direct member behind a router is a problem in words until it is not', async (t) => {
  const { listener, reach, routes, loadBalancer } = rig();
  routes.set('10.0.0.2', ROUTER);
  await reach.check();
  t.deepEqual([...reach.unreached(listener)], [['10.0.0.2:53', ROUTER]]);
  t.is(reach.unreached(listener), reach.unreached(listener));
  t.deepEqual(
    reach.problemsOf(loadBalancer).map(({ reason, message }) => [reason, message]),
    [
      [
        'InvalidEndpoint',
        `Member 10.0.0.2:53 of UDP port 53 gets nothing: ${ROUTER}; "headgate.io/members": "direct" needs members on a network of the load balancer`,
      ],
    ],
  );
  routes.set('10.0.0.2', '');
  await reach.check();
  t.is(reach.unreached(listener).size, 0);
  reach.close();
});
