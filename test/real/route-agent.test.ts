// A whole agent with a Gateway from manifests: its routes, its files, and its metrics.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import ava from 'ava';
import { eventually } from '../support/basics/eventually.ts';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { backendObjects, gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';
import { webObjects } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true });

const PORT = 8080;

test.serial('An agent serves the routes of a Gateway, and changes them without a reload', async (t) => {
  const host = await TestHost.create(t);
  const place = { address: host.address(1), port: PORT };
  const gateway = gatewayJson('edge', {
    addresses: [{ type: 'IPAddress', value: place.address }],
    listeners: [{ name: 'http', port: PORT, protocol: 'HTTP' }],
  });
  const lead = (name: string): Promise<void> =>
    host.write('route.yaml', [
      routeJson('web', [{ name: 'edge' }], { rules: [{ backendRefs: [{ name, port: 80 }] }] }),
    ]);
  const members = { web: await startEcho(t, 'web'), api: await startEcho(t, 'api') };
  // `web` is a Service of type LoadBalancer, too: its own listener and the pool of the route are two series.
  const [service = {}] = webObjects({ address: host.address(2), members: [], port: 80, portName: 'http' });
  const [, slice = {}] = backendObjects('web', members.web);
  const other = backendObjects('api', members.api);
  await host.write('objects.yaml', [gatewayClassJson(), gateway, service, slice, ...other]);
  await host.write('both.yaml', [
    routeJson('both', [{ name: 'edge' }], {
      hostnames: ['both.example'],
      rules: [
        {
          backendRefs: [
            { name: 'web', port: 80 },
            { name: 'api', port: 80, weight: 0 },
          ],
        },
      ],
    }),
  ]);
  await lead('web');
  const agent = await host.start();
  const member = async (): Promise<string> => {
    const answer = await request(place, '/', { headers: { host: 'x.example' } }).catch(() => undefined);
    return answer?.echo?.member ?? String(answer?.status);
  };
  await eventually(member, (name) => name === 'web');
  const reloads = await host.reloads();
  await lead('api');
  await eventually(member, (name) => name === 'api');
  t.is(await host.reloads(), reloads);

  const read = await agent.metrics();
  const labels = { namespace: 'default', service: 'web', port: '80' };
  t.true(read('headgate_pool_sessions_total', { ...labels, owner: 'pool' }) >= 1);
  t.is(read('headgate_listener_up', { namespace: 'default', service: 'edge', owner: 'gateway' }), 1);

  const rendered = join(host.directory, 'rendered');
  t.is((await host.command('render', ['--output', rendered])).status, 0);
  const folder = join(rendered, 'haproxy/routes');
  const files = await readdir(folder);
  t.true(files.includes('routes.lua'));
  for (const file of files) {
    const text = await readFile(join(folder, file), 'utf8');
    const own = (): Promise<string> => readFile(join(host.paths.routes, file), 'utf8');
    await t.notThrowsAsync(
      eventually(own, (now) => now === text),
      file,
    );
  }
  t.true((await readFile(join(rendered, 'haproxy/haproxy.cfg'), 'utf8')).includes('lua-load-per-thread'));
});
