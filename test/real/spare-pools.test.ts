// New routes with new Services on a Gateway that serves: their pools take spare backends of HAProxy, without a reload.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import ava from 'ava';
import { eventually } from '../support/basics/eventually.ts';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { backendObjects, gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';

const test = requires(ava, { haproxy: true });

const PORT = 8080;
const NEW = ['api', 'shop', 'mail'] as const;

test.serial('New routes with new Services need no reload, and no request under load fails', async (t) => {
  const host = await TestHost.create(t);
  const place = { address: host.address(1), port: PORT };
  const write = async (name: string): Promise<void> => {
    const rules = [{ backendRefs: [{ name, port: 80 }] }];
    await host.write(`${name}.yaml`, [
      ...backendObjects(name, await startEcho(t, name)),
      routeJson(name, [{ name: 'edge' }], { hostnames: [`${name}.example`], rules }),
    ]);
  };
  const member = async (name: string): Promise<string> => {
    const answer = await request(place, '/', { headers: { host: `${name}.example` } }).catch(() => undefined);
    return answer?.echo?.member ?? String(answer?.status);
  };
  const gateway = gatewayJson('edge', {
    addresses: [{ type: 'IPAddress', value: place.address }],
    listeners: [{ name: 'http', port: PORT, protocol: 'HTTP' }],
  });
  await host.write('gateway.yaml', [gatewayClassJson(), gateway]);
  await write('web');
  const agent = await host.start();
  await eventually(
    () => member('web'),
    (name) => name === 'web',
  );
  const reloads = await host.reloads();

  let isOver = false;
  const answers = new Map<string, number>();
  const load = (async () => {
    for (; !isOver; ) {
      const answer = await member('web');
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
    }
  })();
  for (const name of NEW) {
    await write(name);
    await eventually(
      () => member(name),
      (answer) => answer === name,
    );
  }
  isOver = true;
  await load;
  t.deepEqual([...answers.keys()], ['web']);
  t.is(await host.reloads(), reloads, 'no reload');

  // Metrics and the file have the names of the owners.
  const read = await agent.metrics();
  const labels = { namespace: 'default', service: 'api', port: '80' };
  t.true(read('headgate_pool_sessions_total', { ...labels, owner: 'pool' }) >= 1);

  // A removed route, and the same again.
  await rm(join(host.manifestDir, 'api.yaml'));
  await eventually(
    () => member('api'),
    (answer) => answer === '404',
  );
  await write('api');
  await eventually(
    () => member('api'),
    (answer) => answer === 'api',
  );
  t.is(await host.reloads(), reloads, 'no reload for the pool that came back');
});
