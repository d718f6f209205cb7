// A service manager such as systemd starts HAProxy repeatedly with the agent's file. The agent finds the cause of a failed
// start in HAProxy's messages and leaves it out of the file.

import { mkdir, readFile } from 'node:fs/promises';
import type { Server } from 'node:net';
import { join } from 'node:path';
import ava from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { startStarter } from '../support/haproxy/haproxy-starter.ts';
import { poisonedHaproxy } from '../support/haproxy/poisoned-haproxy.ts';
import { signal, TestHost } from '../support/host/agent.ts';
import { occupied, vacated } from '../support/host/occupied.ts';
import { startMembers } from '../support/traffic/members.ts';

const test = requires(ava, { haproxy: true, programs: ['bash', 'sed', 'grep'] });

const EXTERNAL = ['--haproxy-supervisor', 'external'];

test.serial('An occupied port keeps HAProxy only from that port', async (t) => {
  const host = await TestHost.create(t, { flags: EXTERNAL });
  await startMembers(t, host);
  await host.serve();
  await host.serve({ name: 'shop', address: host.address(2) });
  const other: Server = await occupied(t, host.place(2));
  await startStarter(host);
  const agent = await host.start();
  t.true(await host.answers());
  t.regex(
    (await host.why('default/shop')).problems[0]?.message ?? '',
    /Cannot listen on .*: another program listens/,
  );
  t.true(agent.hasLogged('HAProxy does not start: looking for the cause'));
  await vacated(other);
  await host.soon('the second one is served', () => host.answers(2));
});

test.serial(
  'An agent reports that another program runs HAProxy with the file of another state folder',
  async (t) => {
    const host = await TestHost.create(t, { flags: EXTERNAL });
    await startMembers(t, host);
    await host.serve();
    await startStarter(host);
    const first = await host.start();
    await first.kill();
    const stateDir = join(host.directory, 'other');
    await mkdir(stateDir);
    const before = await host.worker();
    await host.launch(['--state-dir', stateDir]);
    await host.until('it is reported', async () => {
      const { fault = '' } = (await host.status()).haproxy ?? {};
      return fault.startsWith(`HAProxy runs with -f "${host.paths.config}", and this agent writes`);
    });
    t.is(await host.worker(), before);
    t.true(await host.answers());
  },
);

for (const kind of ['named', 'silent'] as const)
  test.serial(`The agent leaves a Service out that HAProxy refuses at its start (${kind})`, async (t) => {
    const haproxy = (directory: string) => poisonedHaproxy(directory, kind, 'maxconn 777');
    const host = await TestHost.create(t, { flags: EXTERNAL, haproxy });
    await startMembers(t, host);
    await host.serve();
    await host.serve({ name: 'shop', address: host.address(2), annotations: { 'connection-limit': '777' } });
    await startStarter(host);
    await host.start();
    t.true(await host.answers());
    const [problem] = (await host.why('default/shop')).problems;
    t.is(problem?.reason, 'ConfigurationRejected');
    await host.serve({ name: 'shop', address: host.address(2), annotations: { 'connection-limit': '778' } });
    await host.soon('the mended one is served', () => host.answers(2));
  });

for (const flags of [EXTERNAL, []])
  test.serial(
    `HAProxy serves its last good file if it refuses a global setting (${flags[1] ?? 'agent'})`,
    async (t) => {
      const haproxy = (directory: string) => poisonedHaproxy(directory, 'named', 'maxconn 4321');
      const host = await TestHost.create(t, { flags, haproxy });
      await startMembers(t, host);
      await host.serve();
      if (flags.length > 0) await startStarter(host);
      const agent = await host.start();
      await host.serve({ name: 'shop', address: host.address(2) });
      await host.soon('a second one is served', () => host.answers(2));
      await host.until('that is kept', async () =>
        (await readFile(`${host.paths.config}.last-good`, 'utf8')).includes(':shop:'),
      );
      await agent.kill();
      const pids = [await host.master(), await host.worker()];
      await host.launch(['--max-connections', '4321']);
      await host.until('the agent answers', async () => (await host.status()).haproxy !== undefined);
      for (const pid of pids) signal(pid, 'SIGKILL');
      await host.until('both are served', async () => {
        const isAnother = (await host.worker()) !== pids[1];
        return isAnother && (await host.answers()) && (await host.answers(2));
      });
      await host.until('it serves and says why', async () => {
        const { fault, haproxy: now } = await host.status();
        return now.serving && /rejects/.test(fault);
      });
      t.true((await host.config()).includes(':shop:'));
    },
  );
