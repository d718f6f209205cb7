// Real traffic through a real HAProxy while members are added, removed and killed: no reload, no failed request.

import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { startHungMember, startMember, startMembers, type TestMember } from '../support/traffic/members.ts';
import { ask, Client, Load } from '../support/traffic/traffic.ts';
import { MEMBER_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true });

test.serial('An edit of a manifest soon changes traffic, without a reload', async (t) => {
  const { host } = await served(t, 2);
  const agent = await host.start();
  t.is(await ask(host.place()), host.address(11));
  const worker = await host.worker();
  for (const member of [12, 11, 12, 11, 12]) {
    await host.serve({ members: [host.address(member)] });
    await host.soon('the new member answers', async () => (await ask(host.place())) === host.address(member));
  }
  t.is(await host.worker(), worker);
  t.is((await agent.metrics())('headgate_haproxy_reloads_total'), 0);
});

test.serial('A new member soon gets connections', async (t) => {
  const { host } = await served(t, 2);
  await host.start();
  await host.serve({ members: [host.address(11), host.address(12)] });
  await host.soon('both answer', async () => {
    const answers = new Set([await ask(host.place()), await ask(host.place())]);
    return answers.size === 2;
  });
  t.is(await host.reloads(), 0);
});

for (const mode of ['tcp', 'http']) {
  test.serial(
    `A Service scales from 2 to 20 members and back under load in ${mode} mode without a reload or a failed request`,
    async (t) => {
      const { host } = await served(t, 20);
      const all = Array.from({ length: 20 }, (_, at) => host.address(11 + at));
      await host.serve({ members: all.slice(0, 2), annotations: { mode } });
      const agent = await host.start();
      const worker = await host.worker();
      const loads = [new Load(t, host.place(), { kind: 'new' }), new Load(t, host.place(), { kind: 'kept' })];
      const [load] = loads as [Load];
      for (const count of [2, 20, 2, 20, 2]) {
        await host.serve({ members: all.slice(0, count), annotations: { mode } });
        await host.until(
          `${count} members are ready`,
          async () => (await readyServers(host)).length === count,
        );
        await load.answered(60);
        // The other load uses turns of the balancing too, so a fixed number of requests is not enough.
        if (count === 20) await host.until('each member has answered', async () => load.members === count);
      }
      const results = await Promise.all(loads.map((each) => each.stop()));
      for (const { failures, requests } of results) {
        t.deepEqual(failures, []);
        t.true(requests > 100);
      }
      t.is(results[0]?.answers.size, 20);
      t.is(await host.worker(), worker);
      const metric = await agent.metrics();
      t.true(metric('headgate_haproxy_commands_total', { command: 'AddServer' }) >= 18);
      t.deepEqual(
        [metric('headgate_haproxy_reloads_total'), metric('headgate_haproxy_command_failures_total')],
        [0, Number.NaN],
      );
    },
  );
}

test.serial(
  'In HTTP mode a client that closes its sending side with its request gets an answer',
  async (t) => {
    const { host } = await served(t, 1);
    await host.serve({ members: [host.address(11)], annotations: { mode: 'http' } });
    await host.start();
    for (let times = 0; times < 10; times++) {
      const client = await Client.connect(host.place());
      t.is(await client.ask({ last: true }), host.address(11));
      client.close();
    }
  },
);

// Conformance: established connections
test.serial('A terminating member keeps its connection and gets no new one', async (t) => {
  const { host } = await served(t, 2);
  await host.serve({ members: [host.address(11)] });
  await host.start();
  const kept = await Client.connect(host.place());
  t.is(await kept.ask(), host.address(11));
  await host.serve({ members: [{ address: host.address(11), terminating: true }, host.address(12)] });
  await host.until('it drains', async () => (await stateOf(host, 11)) === 'drain');
  for (let times = 0; times < 20; times++) t.is(await ask(host.place()), host.address(12));
  t.is(await kept.ask(), host.address(11));
  // It gets connections again when it is ready.
  await host.serve({ members: [host.address(11)] });
  await host.until('it serves again', async () => (await ask(host.place())) === host.address(11));
  t.is(await kept.ask(), host.address(11));
  kept.close();
});

test.serial('A removed member loses its connection at the drain timeout, not before', async (t) => {
  const { host } = await served(t, 2);
  await host.serve({ members: [host.address(11)] });
  await host.start(['--drain-timeout', '2s']);
  const kept = await Client.connect(host.place());
  t.is(await kept.ask(), host.address(11));
  const began = performance.now();
  await host.serve({ members: [host.address(12)] });
  await host.until('the other one serves', async () => (await ask(host.place())) === host.address(12));
  t.is(await kept.ask(), host.address(11));
  await kept.closed;
  const lived = performance.now() - began;
  t.true(lived >= 2_000, `closed after ${lived} ms`);
  await host.soon('its server is deleted', async () => (await host.servers()).length === 1);
  t.is((await host.status()).haproxy.serversToDelete, 0);
});

test.serial('A removed member without connections is deleted long before the drain timeout', async (t) => {
  const { host } = await served(t, 2);
  await host.start();
  t.truthy(await ask(host.place()));
  await host.serve({ members: [host.address(12)] });
  await host.until('its server is deleted', async () => (await host.servers()).length === 1);
  t.is(await ask(host.place()), host.address(12));
});

test.serial('A member that is killed without notice costs no request', async (t) => {
  const { host, members } = await served(t, 5);
  await host.start();
  const load = new Load(t, host.place());
  await load.answered(50);
  await load.between(async () => {
    await members[0]?.kill();
    await members[3]?.kill();
  });
  await load.answered(200);
  const { failures, answers } = await load.stop();
  t.deepEqual(failures, []);
  t.is(answers.size, 5);
});

test.serial(
  'A member that does not answer at all costs no request, and no more than its connect timeout',
  async (t) => {
    const { host } = await served(t, 4);
    const members = [11, 12, 13, 14, 15].map((last) => host.address(last));
    await startHungMember(t, host.address(15));
    await host.serve({ members, annotations: { 'timeout-connect': '500ms' } });
    const agent = await host.start();
    const load = new Load(t, host.place(), { clients: 8 });
    await load.answered(60);
    const { failures, slowest, answers } = await load.stop();
    t.deepEqual(failures, []);
    t.is(answers.size, 4);
    t.true(slowest >= 500, `${slowest} ms`);
    // A request to that member waited for its connect timeout once and then went to another member.
    const metrics = await agent.metrics();
    const met = metrics('headgate_member_sessions_total', { address: `${host.address(15)}:${MEMBER_PORT}` });
    t.true(met > 0);
    t.is(metrics('headgate_pool_redispatches_total'), met);
    t.is(metrics('headgate_pool_retries_total'), 0);
  },
);

test.serial('A member that returns with the same address serves again', async (t) => {
  const { host, members } = await served(t, 2);
  await host.start();
  await host.serve({ members: [host.address(12)] });
  await host.until('it is out', async () => (await readyServers(host)).length === 1);
  await members[0]?.kill();
  const again = await startMember(host.address(11), MEMBER_PORT);
  t.teardown(again.kill);
  await host.serve({ members: [host.address(11)] });
  await host.until('it serves', async () => (await ask(host.place())) === host.address(11));
  t.is(await stateOf(host, 11), 'ready');
});

/** A host with a Service at address 1 and `count` members. */
async function served(
  t: ExecutionContext<unknown>,
  count: number,
): Promise<{ readonly host: TestHost; readonly members: readonly TestMember[] }> {
  const host = await TestHost.create(t);
  const members = await startMembers(t, host, count);
  await host.serve({ members: members.map(({ address }) => address) });
  return { host, members };
}

async function readyServers(host: TestHost): Promise<readonly string[]> {
  return (await host.servers()).filter(({ state }) => state === 'ready').map(({ address }) => address);
}

async function stateOf(host: TestHost, last: number): Promise<string | undefined> {
  return (await host.servers()).find(({ address }) => address === host.address(last))?.state;
}
