// The results of health checks survive other changes, above all a reload.

import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { startMember, startMembers } from '../support/traffic/members.ts';
import { MEMBER_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true });

test.serial('A member that is down stays down over reloads until its checks succeed', async (t) => {
  const host = await TestHost.create(t);
  await startMembers(t, host, 1);
  const [up, down] = [host.address(11), host.address(12)];
  // HAProxy treats a member as up until its first check, which is some time away.
  const annotations = { 'health-monitor': 'tcp', 'health-monitor-interval': '3s' };
  await host.serve({ members: [up, down], annotations });
  await host.start();
  const stateOf = async (address: string): Promise<string | undefined> =>
    (await host.servers()).find(
      ({ backend, server }) => backend.includes(':web:') && server.startsWith(`${address}:`),
    )?.operational;
  const states = async () => [await stateOf(up), await stateOf(down)];
  await host.until('it is down', async () => (await stateOf(down)) === 'down');

  // An earlier backend in the file changes HAProxy's numbers of backends; two reloads pass the state on twice.
  for (const [at, name] of ['api', 'app'].entries()) {
    const worker = await host.worker();
    await host.serve({ name, address: host.address(2 + at) });
    let first: readonly (string | undefined)[] = [];
    await host.until('another worker serves', async () => {
      if ((await host.worker()) === worker) return false;
      first = await states();
      return true;
    });
    t.deepEqual(first, ['up', 'down'], `After ${name}`);
  }
  // The new worker serves before the master reports the end of the reload.
  await host.until('both reloads are counted', async () => (await host.reloads()) >= 2);
  t.is(await host.reloads(), 2);

  const member = await startMember(down, MEMBER_PORT);
  t.teardown(() => member.kill());
  await host.until('checks find it up', async () => (await stateOf(down)) === 'up');
});

test.serial(
  'A member that drains and is down at a reload gets traffic when it is ready and up',
  async (t) => {
    const host = await TestHost.create(t);
    await startMembers(t, host, 1);
    const [other, address] = [host.address(11), host.address(12)];
    const annotations = { 'health-monitor': 'tcp', 'health-monitor-interval': '1s' };
    const serve = (terminating: boolean) =>
      host.serve({ members: [other, { address, terminating }], annotations });
    await serve(false);
    await host.start();
    const server = async () =>
      (await host.servers()).find(
        (each) => each.backend.includes(':web:') && each.server.startsWith(address),
      );
    await host.until('it is down', async () => (await server())?.operational === 'down');
    await serve(true);
    await host.until('it drains', async () => (await server())?.state === 'drain');
    await host.serve({ name: 'shop', address: host.address(2) });
    await host.until('a reload is done', async () => (await host.reloads()) === 1 && host.answers(2));
    const member = await startMember(address, MEMBER_PORT);
    t.teardown(() => member.kill());
    await serve(false);
    await host.soon('it takes connections', async () => {
      const { state, weight, operational } = (await server()) ?? {};
      return state === 'ready' && weight !== 0 && operational === 'up';
    });
    t.is(await host.reloads(), 1);
  },
);

test.serial('A new health monitor does not use the results of the old one', async (t) => {
  const host = await TestHost.create(t);
  await startMembers(t, host, 1);
  const monitor = { 'health-monitor': 'tcp', 'health-monitor-interval': '3s' };
  await host.serve({ annotations: { ...monitor, 'health-monitor-port': '1' } });
  await host.start();
  const state = async () => (await host.servers())[0]?.operational;
  await host.until('it is down', async () => (await state()) === 'down');
  const worker = await host.worker();
  await host.serve({ annotations: monitor });
  let first: string | undefined;
  await host.until('another worker serves', async () => {
    first = (await host.worker()) === worker ? undefined : await state();
    return first !== undefined;
  });
  t.is(first, 'up');
  t.true(await host.answers());
});
