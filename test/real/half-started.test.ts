// HAProxy ends in the middle of a reload, and objects change in the middle of its start. The agent handles both at once
// and does not wait for an answer that cannot arrive.

import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { isBehindScript } from '../support/haproxy/haproxy.ts';
import { heldHaproxy, hold, isHeld, release } from '../support/haproxy/held-haproxy.ts';
import { processesOf, TestHost } from '../support/host/agent.ts';
import { startMembers } from '../support/traffic/members.ts';

const test = requires(ava, { haproxy: true });

if (!isBehindScript)
  test.serial('A reload fails when its master ends, and the agent soon reloads the next HAProxy', masterEnds);

test.serial('The agent adopts a HAProxy whose objects changed during its start', async (t) => {
  const host = await served(t);
  const { directory } = host;
  await hold(directory);
  // The agent is about to write the file.
  await host.serve({ members: [host.address(12)] });
  process.kill(await host.worker(), 'SIGKILL');
  await host.until('HAProxy is about to read its file', () => isHeld(directory));
  await host.serve({ members: [host.address(12)], annotations: { 'timeout-client': '7m' } });
  // Much longer than the agent needs to write a change.
  await delay(700);
  t.false((await host.config()).includes('timeout client 420000ms'));
  await release(directory);
  await host.soon('the agent has it', async () => (await host.status()).haproxy.serving);
  await host.soon('the change is in the file', async () =>
    (await host.config()).includes('timeout client 420000ms'),
  );
  await host.soon('nothing is due', async () => {
    const { fault, haproxy } = await host.status();
    return fault === '' && haproxy.reloadPending.length === 0;
  });
  t.true(await host.answers());
});

test.serial(
  'An agent that ends while HAProxy starts leaves it to the next agent, which starts no second HAProxy',
  async (t) => {
    const host = await TestHost.create(t, { haproxy: heldHaproxy });
    const { directory } = host;
    await startMembers(t, host, 1);
    await host.serve();
    await hold(directory);
    const agent = await host.launch();
    // Not the process that prints HAProxy's version.
    await host.until('HAProxy is about to read its file', async () => (await masters(directory)) === 1);
    await agent.kill();
    const next = await host.launch();
    await host.until(
      'the next one looks for it',
      async () => (await host.status()).haproxy.serving === false,
    );
    // Much longer than the start of another HAProxy.
    await delay(700);
    await release(directory);
    await host.soon('the agent has it', async () => (await host.status()).haproxy.serving);
    await host.until('it says so', async () => next.hasLogged('Adopted the running HAProxy'));
    t.is(await masters(directory), 1);
    t.true(await host.answers());
  },
);

async function masterEnds(t: ExecutionContext<unknown>): Promise<void> {
  const host = await served(t);
  const { directory } = host;
  const master = await host.master();
  await hold(directory);
  await host.serve({ name: 'shop', address: host.address(2) });
  await host.until('the reload is under way', () => isHeld(directory));
  process.kill(master, 'SIGKILL');
  await release(directory);
  await host.soon('what the reload was for is served', () => host.answers(2));
  await host.serve({ name: 'third', address: host.address(3) });
  await host.soon('a new Service is served', () => host.answers(3));
  t.is((await host.status()).fault, '');
}

/** `default/web` at address 1; members at 11 and 12, of which the first one serves. */
async function served(t: ExecutionContext<unknown>): Promise<TestHost> {
  const host = await TestHost.create(t, { haproxy: heldHaproxy });
  await startMembers(t, host, 2);
  await host.serve();
  await host.start();
  // After its start the master of HAProxy 2.6 executes itself again: it misses signals and binds its socket again.
  await host.until('HAProxy has settled', async () =>
    /^Uptime_sec: [1-9]/m.test(await host.haproxy('show info')),
  );
  return host;
}

/** The processes without a parent among them. */
async function masters(directory: string): Promise<number> {
  const all = new Map<number, number>();
  for (const pid of processesOf(directory)) {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
    if (command.split('\0').includes('-W')) all.set(pid, Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]));
  }
  return [...all.values()].filter((parent) => !all.has(parent)).length;
}
