// A HAProxy that refuses the configuration of one Service: the agent quarantines only that Service, with its last good
// configuration if it has one, and reports it. All other Services continue.

import { readFile } from 'node:fs/promises';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { type Poison, poisonedHaproxy, poisons } from '../support/haproxy/poisoned-haproxy.ts';
import { TestHost } from '../support/host/agent.ts';
import { startMembers } from '../support/traffic/members.ts';
import { ask, Load } from '../support/traffic/traffic.ts';

const test = requires(ava, { haproxy: true, programs: ['bash', 'sed', 'grep'] });

/** A Service with this annotation has a line that HAProxy refuses. */
const POISONOUS = { 'connection-limit': '777' };
const WORDS = 'maxconn 777';

const said: { readonly [kind in Poison]: RegExp } = {
  named: /HAProxy rejects its configuration: .*unknown keyword 'poison'/,
  silent: /HAProxy rejects its configuration: .*Fatal errors found/,
  late: /HAProxy rejects its configuration: .*unknown keyword 'poison'/,
};

for (const kind of poisons) {
  test.serial(
    `A Service that HAProxy refuses continues with its last good configuration (${kind})`,
    async (t) => {
      const host = await poisoned(t, kind);
      await host.serve();
      await host.serve({ name: 'shop', address: host.address(2) });
      const agent = await host.start();
      const loads = [new Load(t, host.place(1)), new Load(t, host.place(2))];
      await host.serve({ name: 'shop', address: host.address(2), annotations: POISONOUS });
      await host.until('it is reported', async () => (await host.why('default/shop')).problems.length === 1);
      const [problem] = (await host.why('default/shop')).problems;
      t.is(problem?.reason, 'ConfigurationRejected');
      t.regex(problem?.message ?? '', said[kind]);
      // Not in the moment of the start, when what is solved at once is no line.
      await host.until('the log says so', async () => agent.hasLogged('HAProxy rejects its configuration'));
      t.is((await agent.metrics())('headgate_problems', { reason: 'ConfigurationRejected' }), 1);
      // Its endpoints still change.
      await host.serve({
        name: 'shop',
        address: host.address(2),
        annotations: POISONOUS,
        members: [host.address(12)],
      });
      await host.until('its members change', async () => (await ask(host.place(2))) === host.address(12));
      // Other Services are added and removed.
      await host.serve({ name: 'third', address: host.address(3) });
      await host.until('a new Service is served', () => host.answers(3));
      t.is((await host.status()).haproxy.rejected, 1);
      // The agent tries it again when its object changes.
      await host.serve({
        name: 'shop',
        address: host.address(2),
        annotations: { 'connection-limit': '778' },
      });
      await host.until('it is accepted', async () => (await host.config()).includes('maxconn 778'));
      await host.until('nothing is reported', async () => (await host.status()).problems.length === 0);
      await host.until('the log says so', async () => agent.hasLogged('Solved: HAProxy rejects'));
      for (const load of loads) {
        await load.answered(30);
        t.deepEqual((await load.stop()).failures, []);
      }
      await host.until('all is well', async () => (await host.status()).fault === '');
    },
  );

  test.serial(
    `A new Service that HAProxy refuses does not affect other Services at the start (${kind})`,
    async (t) => {
      const host = await poisoned(t, kind);
      for (const last of [1, 2, 3, 4, 5])
        await host.serve({ name: `web-${last}`, address: host.address(last) });
      for (const last of [6, 7])
        await host.serve({ name: `bad-${last}`, address: host.address(last), annotations: POISONOUS });
      await host.start();
      for (const last of [1, 2, 3, 4, 5]) t.true(await host.answers(last));
      const { problems } = await host.status();
      t.deepEqual(
        problems.map(({ object, reason }) => [object, reason]),
        [
          ['Service default/bad-6', 'ConfigurationRejected'],
          ['Service default/bad-7', 'ConfigurationRejected'],
        ],
      );
      await host.serve({ name: 'bad-6', address: host.address(6) });
      await host.until('the one that was mended is served', () => host.answers(6));
      t.is((await host.status()).problems.length, 1);
      await host.remove('bad-7.yaml');
      await host.until('nothing is reported', async () => (await host.status()).problems.length === 0);
      t.is((await host.status()).haproxy.rejected, 0);
    },
  );
}

test.serial('An agent restart does not change HAProxy while a Service is quarantined', async (t) => {
  const host = await poisoned(t, 'named');
  await host.serve();
  await host.serve({ name: 'shop', address: host.address(2) });
  const agent = await host.start();
  await host.serve({ name: 'shop', address: host.address(2), annotations: POISONOUS });
  await host.until('it is reported', async () => (await host.why('default/shop')).problems.length === 1);
  const load = new Load(t, host.place(2));
  await agent.stop();
  const before = [await host.worker(), await host.reloads()];
  const next = await host.start();
  await host.until(
    'it is reported again',
    async () => (await host.why('default/shop')).problems.length === 1,
  );
  t.true(next.hasLogged('"ours":true'));
  await load.answered(30);
  t.deepEqual((await load.stop()).failures, []);
  t.deepEqual([await host.worker(), await host.reloads()], before);
});

test.serial('The agent tries forever to start HAProxy, and logs the failure once', async (t) => {
  const haproxy = (directory: string) => poisonedHaproxy(directory, 'silent', 'description headgate');
  const host = await TestHost.create(t, { haproxy });
  await host.serve();
  const agent = await host.launch();
  const complaints = () => agent.log.filter(({ error }) => String(error).includes('unknown keyword'));
  await host.until('it is tried again and again', async () => {
    const said = await readFile(host.paths.log, 'utf8').catch(() => '');
    return said.split("unknown keyword 'nonsense'").length > 5;
  });
  t.is(complaints().length, 1);
  t.regex(String(complaints()[0]?.error), /^HAProxy ended with exit status 1; \[ALERT\] : /);
});

async function poisoned(t: ExecutionContext<unknown>, kind: Poison): Promise<TestHost> {
  const host = await TestHost.create(t, { haproxy: (directory) => poisonedHaproxy(directory, kind, WORDS) });
  await startMembers(t, host, 2);
  return host;
}
