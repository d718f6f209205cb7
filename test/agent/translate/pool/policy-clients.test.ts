// NetworkPolicies of members that routes send to: of a pool, and of the listener of UDPRoutes.

import test from 'ava';
import { endpoint, service, slice } from '../../../support/values/build.ts';
import { GatewayWorld } from '../../../support/values/gateway-world.ts';
import { gatewayJson, routeJson } from '../../../support/values/gateways.ts';
import { networkPolicy, pod } from '../../../support/values/policies.ts';

const ON = { enforceNetworkPolicy: 'ingress' } as const;
const allow = (...cidrs: readonly string[]) =>
  networkPolicy(
    `{ podSelector: {}, ingress: [{ from: [${cidrs.map((cidr) => `{ ipBlock: { cidr: "${cidr}" } }`).join(', ')}] }] }`,
  );
const MEMBERS = slice({ endpoints: [endpoint('10.0.0.1', { target: 'Pod/web-1' })] });
const ROUTE = routeJson('web', [{ name: 'edge' }], { rules: [{ backendRefs: [{ name: 'web', port: 80 }] }] });

test('A pool of routes has the clients of both families that its members let in, and none of the field without a policy', (t) => {
  const world = new GatewayWorld([gatewayJson(), ROUTE, MEMBERS, pod()], ON);
  const pool = () => {
    const [key = ''] = [...world.state.desired.loadBalancers.keys()].filter((each) =>
      each.startsWith('pool:'),
    );
    return world.loadBalancer(key);
  };
  t.false('clients' in (pool().listeners[0]?.pool ?? {}));
  world.apply([allow('203.0.113.0/24', '2001:db8::/32')]);
  t.deepEqual(pool().listeners[0]?.pool.clients, ['203.0.113.0/24', '2001:db8::/32']);
  world.apply([allow('203.0.113.0/24')]);
  t.deepEqual(pool().listeners[0]?.pool.clients, ['203.0.113.0/24']);
  t.regex(
    pool().problems[0]?.message ?? '',
    /^NetworkPolicies restrict TCP port 80: they let in no address of IPv6$/,
  );
  world.apply([
    pod({ labels: { app: 'other' } }),
    networkPolicy('{ podSelector: { matchLabels: { app: web } } }'),
  ]);
  t.false('clients' in (pool().listeners[0]?.pool ?? {}));
  world.remove('Pod', 'default/web-1');
  t.deepEqual(pool().listeners[0]?.pool.members, []);
});

test('A UDPRoute has the clients that the members of all its Services let in', (t) => {
  const dns = (name: string) => service({ name, type: 'ClusterIP', ports: [{ port: 53, protocol: 'UDP' }] });
  const of = (name: string, address: string) =>
    slice({
      serviceName: name,
      endpoints: [endpoint(address, { target: `Pod/${name}` })],
      ports: [{ port: 53, protocol: 'UDP' }],
    });
  const podOf = (name: string, address: string) => pod({ name, labels: { app: name }, addresses: [address] });
  const world = new GatewayWorld(
    [
      gatewayJson('edge', { listeners: [{ name: 'dns', port: 53, protocol: 'UDP' }] }),
      routeJson(
        'dns',
        [{ name: 'edge' }],
        {
          rules: [
            {
              backendRefs: [
                { name: 'one', port: 53 },
                { name: 'two', port: 53 },
              ],
            },
          ],
        },
        'UDPRoute',
      ),
      ...[dns('one'), dns('two'), of('one', '10.0.0.1'), of('two', '10.0.0.2')],
      ...[podOf('one', '10.0.0.1'), podOf('two', '10.0.0.2')],
    ],
    ON,
  );
  const clients = () => world.listener(53, 'udp').allowedCidrs;
  t.is(world.listener(53, 'udp').pool.members.length, 2);
  t.deepEqual(clients(), ['0.0.0.0/0']);
  const policy = (app: string, cidr: string) =>
    networkPolicy(
      `{ podSelector: { matchLabels: { app: ${app} } }, ingress: [{ from: [{ ipBlock: { cidr: ${cidr} } }], ports: [{ protocol: UDP, port: 53 }] }] }`,
      app,
    );
  world.apply([policy('one', '10.0.0.0/8')]);
  t.deepEqual(clients(), ['10.0.0.0/8']);
  world.apply([policy('two', '10.1.0.0/16')]);
  t.deepEqual(clients(), ['10.1.0.0/16']);
  world.apply([policy('two', '192.0.2.0/24')]);
  t.deepEqual(clients(), []);
  t.true(world.loadBalancer().problems.some(({ reason }) => reason === 'ClosedByPolicy'));
});
