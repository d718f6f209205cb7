// Restarts of the agent while HAProxy serves: their effect on traffic, and the changes that the agent must catch up on.

import { mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { TestHost } from '../support/host/agent.ts';
import { startMembers } from '../support/traffic/members.ts';
import { ask, Load } from '../support/traffic/traffic.ts';

const test = requires(ava, { haproxy: true });

for (const how of ['SIGTERM', 'SIGKILL'] as const) {
  test.serial(
    `An agent restart after ${how} sends HAProxy no change and does not affect traffic`,
    async (t) => {
      const host = await served(t);
      await host.serve({ spec: { loadBalancerSourceRanges: ['127.0.0.0/8', '10.0.0.0/8'] } });
      const first = await host.start();
      const before = [await host.worker(), await host.reloads(), (await stat(host.paths.config)).ino];
      const load = new Load(t, host.place());
      first.signal(how);
      await first.exited;
      const second = await host.start();
      await load.answered(50);
      t.deepEqual((await load.stop()).failures, []);
      t.deepEqual([await host.worker(), await host.reloads(), (await stat(host.paths.config)).ino], before);
      const metric = await second.metrics();
      t.is(metric('headgate_haproxy_commands_total'), Number.NaN);
      t.is(metric('headgate_repairs_total'), 0);
      t.true(second.hasLogged('"ours":true'));
      t.is((await host.why()).verdict, 'served');
    },
  );
}

test.serial(
  'An agent with another state folder starts HAProxy again with its own file, and no connection fails',
  async (t) => {
    const host = await served(t);
    const first = await host.start();
    const load = new Load(t, host.place());
    await first.kill();
    const old = await host.master();
    const stateDir = join(host.directory, 'other');
    await mkdir(stateDir);
    const flags = ['--state-dir', stateDir];
    const second = await host.start(flags);
    await load.answered(50);
    t.deepEqual((await load.stop()).failures, []);
    t.true(second.hasLogged('HAProxy runs with another file'));
    t.true(second.hasLogged(host.paths.config));
    const master = await host.master();
    t.not(master, old);
    t.true(
      (await readFile(`/proc/${master}/cmdline`, 'utf8')).includes(join(stateDir, 'haproxy', 'haproxy.cfg')),
    );
    t.is(await host.reloads(), 0);
    await host.serve({ name: 'shop', address: host.address(2) });
    await host.soon('a new Service is served', () => host.answers(2));
    await second.kill();
    await host.start(flags);
    t.is(await host.master(), master, 'the next agent adopts it');
  },
);

test.serial('Members that serve while none is ready serve over a restart of the agent', async (t) => {
  const host = await served(t);
  const annotations = { 'when-empty': 'keep-last' };
  await host.serve({ members: [host.address(11)], annotations });
  const first = await host.start();
  await host.until('its members are on the disk', async () =>
    (await host.stateFile('last-members').catch(() => '')).includes(host.address(11)),
  );
  await host.serve({ members: [], annotations });
  await first.kill();
  const before = await host.worker();
  const load = new Load(t, host.place());
  const second = await host.start();
  await load.answered(50);
  t.deepEqual((await load.stop()).failures, []);
  t.deepEqual([await host.worker(), await host.reloads()], [before, 0]);
  t.is((await second.metrics())('headgate_haproxy_commands_total'), Number.NaN);
});

test.serial('The agent applies endpoint changes from its downtime by commands alone', async (t) => {
  const host = await served(t);
  await host.serve({ members: [host.address(11), host.address(12)] });
  const first = await host.start();
  const worker = await host.worker();
  await first.stop();
  await host.serve({
    members: [{ address: host.address(12), terminating: true }, host.address(13)],
    spec: { loadBalancerSourceRanges: [`${host.address(50)}/32`] },
  });
  const second = await host.start();
  await host.until('it is caught up on', async () => {
    const states = new Map((await host.servers()).map(({ address, state }) => [address, state]));
    const gone = states.get(host.address(11)) ?? 'maint';
    return (
      gone === 'maint' && states.get(host.address(12)) === 'drain' && states.get(host.address(13)) === 'ready'
    );
  });
  for (let times = 0; times < 6; times++)
    t.is(await ask({ ...host.place(), from: host.address(50) }), host.address(13));
  await host.until('the source ranges are, too', () => host.answers(1, host.address(60)).then((is) => !is));
  t.true(await host.answers(1, host.address(50)));
  t.deepEqual([await host.worker(), await host.reloads()], [worker, 0]);
  t.is((await second.metrics())('headgate_haproxy_commands_total', { command: 'AddServer' }), 1);
});

test.serial(
  'A Service that was added and one that was removed during the downtime need one reload together',
  async (t) => {
    const host = await served(t);
    await host.serve({ name: 'old', address: host.address(2), members: [host.address(11)] });
    const first = await host.start();
    await first.stop();
    await host.remove('old.yaml');
    await host.serve({ name: 'new', address: host.address(3), members: [host.address(11)] });
    await host.start();
    await host.until('the new one is served', () => host.answers(3));
    await host.until('the old one is not', async () => !(await host.answers(2)));
    t.true(await host.answers());
    t.is(await host.reloads(), 1);
  },
);

test.serial('A setting that changed during the downtime needs one reload', async (t) => {
  const host = await served(t);
  await (await host.start()).stop();
  const load = new Load(t, host.place());
  await host.start(['--hard-stop-after', '7m']);
  await host.until('the file has it', async () => (await host.config()).includes('hard-stop-after 420000ms'));
  await host.until('HAProxy has reloaded', async () => (await host.reloads()) === 1);
  await load.answered(50);
  t.deepEqual((await load.stop()).failures, []);
});

test.serial(
  'An agent that was killed during a burst of edits reaches the desired state after its start',
  async (t) => {
    const host = await served(t, 6);
    const all = [11, 12, 13, 14, 15, 16].map((last) => host.address(last));
    await host.serve({ members: all.slice(0, 2) });
    let agent = await host.start();
    const load = new Load(t, host.place());
    for (let round = 0; round < 4; round++) {
      for (let edit = 0; edit < 6; edit++) {
        const count = 1 + ((round + edit) % 6);
        await host.serve({ members: all.slice(0, count) });
        await host.serve({
          name: 'shop',
          address: host.address(2 + (edit % 2)),
          members: all.slice(0, count),
        });
      }
      await agent.kill();
      agent = await host.start();
    }
    await host.serve({ members: all.slice(2, 5) });
    await host.until('the members are the desired ones', async () => {
      const ready = (await host.servers()).filter(
        ({ backend, state }) => backend.startsWith('default:web:') && state === 'ready',
      );
      return `${ready.map(({ address }) => address).sort()}` === `${all.slice(2, 5)}`;
    });
    await host.until(
      'the other Service is where its last edit put it',
      async () => (await host.answers(3)) && !(await host.answers(2)),
    );
    t.deepEqual((await load.stop()).failures, []);
    await host.until('the file is what `render` makes of it', async () => {
      const output = `${host.directory}/rendered`;
      await host.command('render', ['--output', output]);
      return (await readFile(`${output}/haproxy/haproxy.cfg`, 'utf8')) === (await host.config());
    });
    t.is((await host.status()).fault, '');
  },
);

/** A host with members from address 11 on, and `default/web`, which has all of them. */
async function served(t: ExecutionContext<unknown>, count = 3): Promise<TestHost> {
  const host = await TestHost.create(t);
  await startMembers(t, host, count);
  await host.serve({ members: Array.from({ length: count }, (_, at) => host.address(11 + at)) });
  return host;
}
