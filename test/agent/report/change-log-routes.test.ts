import test from 'ava';
import { createLog } from '../../../agent/host/log.ts';
import { ChangeLog } from '../../../agent/report/change-log.ts';
import { FakeClock } from '../../support/basics/fake-clock.ts';
import { ADDRESS, GatewayWorld } from '../../support/values/gateway-world.ts';
import { gatewayJson, routeJson } from '../../support/values/gateways.ts';

type Json = Readonly<Record<string, unknown>>;

test('A Gateway, a pool and each route have lines by their own names', (t) => {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => lines.push(JSON.parse(line)) };
  const world = new GatewayWorld();
  const log = createLog({ level: 'info', format: 'json', destination });
  const changeLog = new ChangeLog({ desired: world.state.desired, log, clock: new FakeClock() });
  const apply = (...objects: readonly Json[]) => changeLog.changed(world.apply(objects));
  const logged = () => lines.splice(0).map(({ time: _, level: __, ...line }) => line);
  const edge = { namespace: 'default', gateway: 'edge' };
  const route = (name: string, path: string, hostnames = ['a.example.org']) =>
    routeJson(name, [{ name: 'edge' }], {
      hostnames,
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: path } }],
          backendRefs: [{ name: 'web', port: 80 }],
        },
      ],
    });

  apply(gatewayJson());
  t.deepEqual(logged(), [
    {
      ...edge,
      kind: 'Gateway',
      reason: 'added',
      addresses: [ADDRESS],
      ports: ['TCP/80'],
      message: 'A load balancer appeared',
    },
  ]);
  apply(route('api', '/api'), route('shop', '/shop'));
  t.deepEqual(
    logged().map(({ message, kind, route: name, service }) => [message, kind, name ?? service]),
    [
      ['A route appeared', 'Route', 'HTTPRoute default/api'],
      ['A route appeared', 'Route', 'HTTPRoute default/shop'],
      ['A pool of routes appeared', 'Pool', 'web'],
    ],
  );
  apply(route('shop', '/v2'));
  t.deepEqual(logged(), [
    {
      ...edge,
      kind: 'Route',
      reason: 'changed',
      route: 'HTTPRoute default/shop',
      message: 'A route changed',
    },
  ]);
  // On more than one listener and host it is one line all the same.
  apply(route('shop', '/v2', ['a.example.org', 'b.example.org', 'c.example.org']));
  t.deepEqual(
    logged().map(({ message, route: name }) => [message, name]),
    [['A route changed', 'HTTPRoute default/shop']],
  );
  changeLog.changed(world.remove('HTTPRoute', 'default/api'));
  t.deepEqual(
    logged().map(({ message, route: name }) => [message, name]),
    [['A route is gone', 'HTTPRoute default/api']],
  );
});
