// A tenant whose objects change all the time: the reloads that it causes are limited, and others do not wait for it.

import { setTimeout as delay } from 'node:timers/promises';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { startMembers } from '../support/traffic/members.ts';
import { backendObjects, gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';
import { VIP_PORT } from '../support/values/service-objects.ts';
import { basic, HASHES } from '../support/values/users.ts';

const test = requires(ava, { haproxy: true });

/** The share of a namespace: so many reloads at once, then one after each interval. */
const AT_ONCE = 9;
const INTERVAL_MS = 60_000;
/** From one reload to the next at an interval of 100 ms, without a share. */
const LONGEST_REST_MS = 600;
const CHANGES = 30;

test.serial(
  'A Secret of users that changes all the time has a share of reloads, and the new Service of another namespace does not wait',
  async (t) => {
    const host = await TestHost.create(t, { flags: ['--reload-interval', '100ms'] });
    await startMembers(t, host);
    const place = { address: host.address(1), port: VIP_PORT };
    const annotations = { 'headgate.io/auth-type': 'basic', 'headgate.io/auth-secret': 'users' };
    const route = routeJson('shop', [{ name: 'edge' }]);
    const gateway = gatewayJson('edge', {
      addresses: [{ type: 'IPAddress', value: place.address }],
      listeners: [{ name: 'http', port: place.port, protocol: 'HTTP' }],
    });
    await host.write('objects.yaml', [
      gatewayClassJson(),
      gateway,
      { ...route, metadata: { ...(route.metadata as object), annotations } },
      ...backendObjects('web', await startEcho(t, 'web')),
    ]);
    const users = (name: string) =>
      host.write('users.yaml', [
        {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { namespace: 'default', name: 'users' },
          stringData: { [name]: HASHES.bcrypt },
        },
      ]);
    await users('user0');
    // Without another namespace there would be nobody to protect.
    await host.serve({ name: 'first', namespace: 'other', address: host.address(3) });
    await host.start();
    const isIn = async (name: string): Promise<boolean> =>
      (await request(place, '/', { headers: { host: 'shop.example', ...basic(name, 'open') } })).status ===
      200;
    await host.until('the first user is let in', () => isIn('user0'));
    const before = await host.reloads();
    const began = performance.now();
    for (let turn = 1; turn <= CHANGES; turn++) {
      await users(`user${turn}`);
      await delay(LONGEST_REST_MS);
    }
    const made = (await host.reloads()) - before;
    const most = AT_ONCE + Math.ceil((performance.now() - began) / INTERVAL_MS);
    t.true(made <= most, `${made} reloads instead of ${most}`);
    t.true(most < CHANGES / 2, 'the machine is too busy to see a difference');
    await host.serve({ namespace: 'other', name: 'other', address: host.address(2) });
    await host.soon('the Service of another namespace is served', () => host.answers(2));
    // What waited has gone along.
    t.true(await isIn(`user${CHANGES}`));
  },
);
