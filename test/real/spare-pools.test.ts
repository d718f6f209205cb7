// New routes with new Services on a Gateway that serves: their pools take spare backends of HAProxy, without a reload.

import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { SPARES } from '../../agent/haproxy/config/spare-pools.ts';
import type { LoadBalancer } from '../../agent/model/load-balancer.ts';
import { eventually } from '../support/basics/eventually.ts';
import { freePort } from '../support/basics/free-port.ts';
import { requires } from '../support/basics/requirements.ts';
import { ModelHost } from '../support/haproxy/model-host.ts';
import { TestHost } from '../support/host/agent.ts';
import { request, startEcho } from '../support/traffic/echo.ts';
import { backendObjects, gatewayClassJson, gatewayJson, routeJson } from '../support/values/gateways.ts';
import { entryOf, gatewayOf, poolOf, sectionOf } from '../support/values/routes.ts';

const test = requires(ava, { haproxy: true });

const PORT = 8080;
const NEW = ['api', 'shop', 'mail'] as const;

/** A gateway whose paths lead to pools of their names, in the order of \`pools\`; the first are those that HAProxy starts with. */
async function served(t: ExecutionContext<unknown>, names: readonly string[], flags: readonly string[] = []) {
  const place = { address: '127.0.0.1', port: await freePort() };
  const gateway = (pools: readonly string[]): LoadBalancer =>
    gatewayOf(place, [
      sectionOf('http', '*', { 'a.example': pools.map((name) => entryOf(`/${name}`, name)) }),
    ]);
  const pools = await Promise.all(names.map(async (name) => poolOf(name, [await startEcho(t, name)])));
  const model = await ModelHost.start(t, [gateway(names), ...pools], { flags });
  const ask = async (name: string) => {
    const { status, echo } = await request(place, `/${name}`, { headers: { host: 'a.example' } });
    return echo?.member ?? status;
  };
  return { gateway, model, ask };
}

test('A pool in a spare backend changes its members at runtime, and keeps its backend when it comes back', async (t) => {
  const { gateway, model, ask } = await served(t, ['a']);
  await model.serve(gateway(['a', 'b']), poolOf('b', [await startEcho(t, 'one')]));
  await model.settled();
  t.is(await ask('b'), 'one');
  const two = poolOf('b', [await startEcho(t, 'two')]);
  await model.serve(two);
  t.is(await ask('b'), 'two');
  // HAProxy starts from its own backend, and without a row of the spare one.
  const fileOf = (): Promise<string> => readFile(model.paths.config, 'utf8');
  await t.notThrowsAsync(eventually(fileOf, (text) => text.includes('backend pool:default:b:tcp:80:v4\n')));
  const fileOfRows = (map: string): Promise<string> => readFile(join(model.paths.routes, map), 'utf8');
  await t.notThrowsAsync(
    eventually(
      () => fileOfRows('prefix'),
      (text) => text.includes('pool:default:b:'),
    ),
  );
  t.is(await fileOfRows('spares'), '');
  const rows = await model.rows('spares');
  t.deepEqual(rows, ['pool:default:b:tcp:80:v4 headgate:spare:1']);
  const servers = async (): Promise<number> =>
    (await model.ask('show servers state headgate:spare:1'))
      .split('\n')
      .filter((line) => line.includes('127.')).length;
  await eventually(servers, (count) => count === 1);

  await model.serve(gateway(['a']));
  await model.remove('pool:default/b');
  await eventually(servers, (count) => count === 0);
  await model.serve(gateway(['a', 'b']), two);
  await model.settled();
  t.is(await ask('b'), 'two');
  t.deepEqual(await model.rows('spares'), rows);
  t.is(model.reloads, 0);
});

test('A pool whose last route is gone needs no reload, and serves when it is back', async (t) => {
  const { gateway, model, ask } = await served(t, ['a', 'b']);
  const b = model.desired.get('pool:default/b') as LoadBalancer;
  await model.serve(gateway(['a']));
  await model.remove(b.key);
  const servers = (): Promise<string> => model.ask('show servers state pool:default:b:tcp:80:v4');
  await t.notThrowsAsync(eventually(servers, (text) => !text.includes('127.0.0.1')));
  t.is(await ask('a'), 'a');
  model.acknowledged = [];
  await model.serve(gateway(['a', 'b']), b);
  await model.settled();
  const [server, row] = ['AddServer', 'AddMapEntry'].map((kind) => model.acknowledged.indexOf(kind)) as [
    number,
    number,
  ];
  t.true(server !== -1 && server < row, 'its servers are there before a row leads to it');
  t.is(await ask('b'), 'b');
  t.is(model.reloads, 0);
});

test('A reload gives a pool its own backend, and counts of members continue', async (t) => {
  const { gateway, model, ask } = await served(t, ['a']);
  await model.serve(gateway(['a', 'b']), poolOf('b', [await startEcho(t, 'b')]));
  await model.settled();
  for (let at = 0; at < 5; at++) await ask('b');
  const sessions = async (): Promise<number> => {
    const families = await model.dataplane.families({ isAwaited: true });
    const parts = families.find(({ name }) => name === 'headgate_pool_sessions_total')?.parts ?? [];
    const own = parts.flatMap(({ rows, value }) =>
      rows.filter(({ labels }) => labels.includes('service="b"')).map(value),
    );
    return own.reduce((sum, each) => sum + each, 0);
  };
  t.is(await sessions(), 5);
  await model.restartAgent();
  await eventually(
    async () => model.reloads,
    (causes) => causes > 0,
  );
  await model.settled();
  t.is(await ask('b'), 'b');
  t.deepEqual(await model.rows('spares'), []);
  t.is(await sessions(), 6);
});

test('An audit repairs the row that leads to a spare backend, and its members', async (t) => {
  const { gateway, model, ask } = await served(t, ['a'], ['--audit-interval', '1s']);
  await model.serve(gateway(['a', 'b']), poolOf('b', [await startEcho(t, 'b')]));
  await model.settled();
  const spare = 'headgate:spare:1';
  const [server = ''] = /127\.0\.0\.1:\d+/.exec(await model.ask(`show servers state ${spare}`)) ?? [];
  await model.ask(`set server ${spare}/${server} state maint`);
  await eventually(
    () => ask('b'),
    (answer) => answer === 'b',
  );
  await model.ask(`del map ${model.paths.routes}/spares pool:default:b:tcp:80:v4`);
  t.is(await ask('b'), 503);
  await eventually(
    () => ask('b'),
    (answer) => answer === 'b',
  );
  t.is(model.reloads, 0);
});

test('More new pools than spare backends are served after a reload', async (t) => {
  const { gateway, model, ask } = await served(t, ['a'], ['--reload-interval', '1s']);
  const names = Array.from({ length: SPARES + 4 }, (_, at) => `new-${at}`);
  const pools = await Promise.all(names.map(async (name) => poolOf(name, [await startEcho(t, name)])));
  await model.serve(gateway(['a', ...names]), ...pools);
  await model.settled();
  for (const name of names)
    await eventually(
      () => ask(name),
      (answer) => answer === name,
    );
  // The new worker serves before the agent counts the reload.
  await eventually(
    async () => model.reloads,
    (reloads) => reloads >= 1,
  );
  await eventually(
    () => model.rows('spares'),
    ({ length }) => length === 0,
  );
  t.pass('All have backends of their own');
});

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
