// Connections of a draining worker after a reload: they continue, except those to removed members.

import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { signal, TestHost } from '../support/host/agent.ts';
import { startMembers } from '../support/traffic/members.ts';
import { Client } from '../support/traffic/traffic.ts';

const test = requires(ava, { haproxy: true });

const DRAIN = 1_500;

test.serial(
  'A member that is removed after a reload loses its old connections at the drain timeout',
  async (t) => {
    const { host, kept, doomed } = await withOldConnections(t);
    await reloaded(host);
    const began = performance.now();
    await host.serve({ members: [host.address(11)] });
    t.is(await doomed.ask(), host.address(12), 'It has its time');
    await doomed.closed;
    t.true(performance.now() - began >= DRAIN);
    t.is(await kept.ask(), host.address(11));
  },
);

test.serial(
  'The drain timeout of a member that is removed just before a reload starts at its removal',
  async (t) => {
    const { host, kept, doomed } = await withOldConnections(t);
    const began = performance.now();
    await host.serve({ members: [host.address(11)] });
    await reloaded(host);
    await doomed.closed;
    t.true(performance.now() - began >= DRAIN);
    t.is(await kept.ask(), host.address(11));
  },
);

test.serial('A member that comes back in time keeps its old connections', async (t) => {
  const { host, kept, doomed } = await withOldConnections(t);
  await reloaded(host);
  const [first, second] = [host.address(11), host.address(12)];
  await host.serve({ members: [first] });
  await host.until('it is out of use', async () =>
    (await host.servers()).some(({ state }) => state === 'maint'),
  );
  await host.serve({ members: [first, second] });
  await host.until('it is back', async () => (await host.servers()).every(({ state }) => state === 'ready'));
  // The drain timeout of a member that was removed later shows that this one's is over.
  await host.serve({ members: [second] });
  await kept.closed;
  t.is(await doomed.ask(), second);
});

test.serial('A removed Service loses its old connections at the drain timeout', async (t) => {
  const { host, kept, doomed } = await withOldConnections(t);
  const began = performance.now();
  await host.remove('web.yaml');
  await Promise.all([kept.closed, doomed.closed]);
  t.true(performance.now() - began >= DRAIN);
});

test.serial(
  'A starting agent ends connections of a draining worker to members that were removed in the meantime',
  async (t) => {
    const { host, agent, kept, doomed } = await withOldConnections(t);
    await reloaded(host);
    await agent.kill();
    await host.serve({ members: [host.address(11)] });
    await host.start(FLAGS);
    await doomed.closed;
    t.is(await kept.ask(), host.address(11));
  },
);

test.serial(
  'A replaced worker that hangs is counted without any earlier scrape, and ended after hardStopAfter',
  async (t) => {
    const { host, agent } = await withOldConnections(t, [...FLAGS, '--hard-stop-after', '2s']);
    const old = await host.worker();
    await reloaded(host);
    process.kill(old, 'SIGSTOP');
    t.teardown(() => signal(old, 'SIGKILL'));
    // Right after a reload a scrape may come before the next worker is read.
    await host.until(
      'it is counted',
      async () => (await agent.metrics())('headgate_haproxy_old_workers') === 1,
    );
    await host.until(
      'it has ended',
      async () => (await agent.metrics())('headgate_haproxy_old_workers') === 0,
    );
    t.true(agent.hasLogged('Ended a replaced HAProxy worker that did not end in time'));
    t.throws(() => process.kill(old, 0), { code: 'ESRCH' });
  },
);

const FLAGS = ['--drain-timeout', `${DRAIN}ms`];

/** Connections to the members at 11 and 12 of `default/web`. */
async function withOldConnections(t: ExecutionContext<unknown>, flags: readonly string[] = FLAGS) {
  const host = await TestHost.create(t);
  await startMembers(t, host, 2);
  await host.serve({ members: [host.address(11), host.address(12)] });
  const agent = await host.start(flags);
  const clients = new Map<string, Client>();
  for (let tries = 0; clients.size < 2 && tries < 100; tries++) {
    const client = await Client.connect(host.place());
    t.teardown(() => client.close());
    clients.set(await client.ask(), client);
  }
  const [kept, doomed] = [11, 12].map((last) => clients.get(host.address(last)));
  if (kept === undefined || doomed === undefined) throw new Error('One of the members gets no connection');
  return { host, agent, kept, doomed };
}

/** Causes a reload by a new Service. */
async function reloaded(host: TestHost): Promise<void> {
  await host.serve({ name: 'shop', address: host.address(2), members: [host.address(11)] });
  await host.until('another worker serves', () => host.answers(2));
}
