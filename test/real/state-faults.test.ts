// Operators change HAProxy's files and servers by hand, and the disk fails. Traffic and endpoint changes continue, and the
// agent restores the desired state within two seconds when it can.

import { execFile } from 'node:child_process';
import {
  appendFile,
  chmod,
  mkdir,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { type HostOptions, type RunningAgent, signal, TestHost } from '../support/host/agent.ts';
import { removeFolder } from '../support/host/remove-folder.ts';
import { startMembers } from '../support/traffic/members.ts';
import { ask, Load } from '../support/traffic/traffic.ts';
import { MEMBER_PORT, VIP_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true });
const asRoot = requires(ava, { haproxy: true, root: true, programs: ['mount', 'umount'] });
const run = promisify(execFile);

const damages: readonly (readonly [string, (path: string) => Promise<void>])[] = [
  ['edited by hand', (path) => appendFile(path, '\n# mine\n')],
  ['deleted', unlink],
  ['truncated', (path) => truncate(path, 100)],
  [
    'replaced by another text',
    async (path) => {
      await unlink(path);
      await writeFile(path, 'nonsense\n');
    },
  ],
];
for (const [damage, carryOut] of damages) {
  test.serial(`The agent writes haproxy.cfg again without a reload after it was ${damage}`, async (t) => {
    const { host, agent } = await served(t);
    const [text, worker] = [await host.config(), await host.worker()];
    await carryOut(host.paths.config);
    await host.soon('it is whole again', async () => (await host.config()) === text);
    await host.until(
      'it is counted',
      async () => (await agent.metrics())('headgate_repairs_total', { what: 'file' }) === 1,
    );
    t.true(agent.hasLogged('Another process changed haproxy.cfg'));
    t.deepEqual([await host.worker(), await host.reloads()], [worker, 0]);
  });
}

test.serial(
  'The agent creates the removed folder of haproxy.cfg again, with all files of HAProxy',
  async (t) => {
    const { host, agent } = await served(t);
    const { config } = host.paths;
    const [text, worker] = [await host.config(), await host.worker()];
    const isWhole = async () => (await host.config().catch(() => '')) === text;
    await removeFolder(dirname(config));
    await host.soon('it is whole again', isWhole);
    t.is((await stat(dirname(config))).mode & 0o777, 0o700);
    await host.until('nothing is reported', async () => (await host.status()).fault === '');
    // The agent may have restored it before any other process read it.
    t.true(agent.log.filter(({ level }) => level === 'warn' || level === 'error').length <= 1);
    t.deepEqual([await host.worker(), await host.reloads()], [worker, 0]);
    // A reload can happen first.
    await removeFolder(dirname(config));
    await host.serve({ name: 'shop', address: host.address(2) });
    await host.until('a new Service is served', () => host.answers(2));
    t.is((await host.status()).fault, '');
  },
);

test.serial('A starting agent writes haproxy.cfg again after an edit during its downtime', async (t) => {
  const { host, agent } = await served(t);
  const text = await host.config();
  await agent.stop();
  await appendFile(host.paths.config, '\n# mine\n');
  await host.start();
  await host.until('it is whole again', async () => (await host.config()) === text);
  t.is(await host.reloads(), 0);
});

test.serial('haproxy.cfg contains endpoint changes also while a Service waits for its address', async (t) => {
  const { host } = await served(t);
  await host.serve({ name: 'pending', spec: { loadBalancerIP: undefined } });
  await host.until('it is known', async () => (await host.why('default/pending')).verdict === 'not served');
  await host.serve({ members: [host.address(12)] });
  await host.soon('the member is in the file', async () =>
    (await host.config()).includes(`server ${host.address(12)}:${MEMBER_PORT}`),
  );
  t.is(await host.reloads(), 0);
});

const server = `default:web:tcp:${VIP_PORT}:v4`;
const tamperings: readonly (readonly [string, (host: TestHost) => readonly string[]])[] = [
  ['disabled', (host) => [`disable server ${server}/${host.address(11)}:${MEMBER_PORT}`]],
  ['put into drain', (host) => [`set server ${server}/${host.address(11)}:${MEMBER_PORT} state drain`]],
  ['set to weight 0', (host) => [`set server ${server}/${host.address(11)}:${MEMBER_PORT} weight 0`]],
  [
    'deleted',
    (host) => [
      `set server ${server}/${host.address(11)}:${MEMBER_PORT} state maint`,
      `del server ${server}/${host.address(11)}:${MEMBER_PORT}`,
    ],
  ],
];
for (const [tampering, lines] of tamperings) {
  test.serial(`A server that an operator has ${tampering} serves again after the next audit`, async (t) => {
    const { host, agent } = await served(t, ['--audit-interval', '1s']);
    for (const line of lines(host)) await host.haproxy(line);
    const load = new Load(t, host.place());
    await host.soon('it serves', () => host.answers());
    await host.until('it is as it was', async () => {
      const [only, ...more] = await host.servers();
      return more.length === 0 && only?.state === 'ready' && only.weight === 16;
    });
    t.true((await agent.metrics())('headgate_repairs_total', { what: 'audit' }) >= 1);
    t.true(agent.hasLogged('HAProxy differs from the state that the agent gave it'));
    t.is(await host.reloads(), 0);
    await load.stop();
  });
}

test.serial('A server that an operator has added gets no traffic after the next audit', async (t) => {
  const { host } = await served(t, ['--audit-interval', '1s']);
  await host.haproxy(`add server ${server}/mine ${host.address(12)}:${MEMBER_PORT} weight 16`);
  await host.haproxy(`set server ${server}/mine state ready`);
  t.is(new Set([await ask(host.place()), await ask(host.place())]).size, 2);
  await host.until('it is gone', async () => (await host.servers()).length === 1);
  t.is(await ask(host.place()), host.address(11));
});

test.serial('A source range that an operator has added is removed by the next audit', async (t) => {
  const host = await TestHost.create(t);
  await startMembers(t, host);
  await host.serve({ spec: { loadBalancerSourceRanges: [`${host.address(50)}/32`] } });
  await host.start(['--audit-interval', '1s']);
  t.false(await host.answers(1, host.address(60)));
  const id = /-u (\d+)/.exec(await host.config())?.[1];
  await host.haproxy(`add acl #${id} ${host.address(60)}/32`);
  await host.until('it has an effect', () => host.answers(1, host.address(60)));
  await host.until('it is closed', async () => !(await host.answers(1, host.address(60))));
  t.true(await host.answers(1, host.address(50)));
  await host.haproxy(`del acl #${id} ${host.address(50)}/32`);
  await host.until('what was removed is open again', () => host.answers(1, host.address(50)));
});

asRoot.serial(
  'Changes continue with a state directory that cannot be written, and it recovers automatically',
  async (t) => {
    const { host, agent } = await served(t, [], { uid: 65_534 });
    const folders = [
      host.stateDir,
      ...(await readdir(host.stateDir)).map((name) => join(host.stateDir, name)),
    ];
    const allow = (mode: number): Promise<unknown> =>
      Promise.all(folders.map((folder) => chmod(folder, mode)));
    t.teardown(() => allow(0o755).then(() => undefined));
    await allow(0o500);
    await goesOnUnpersisted(t, host, agent);
    await allow(0o700);
    await healed(t, host, agent);
  },
);

asRoot.serial('Changes continue on a full disk, and the files follow when there is room', async (t) => {
  const host = await hostWithSmallDisk(t);
  await startMembers(t, host, 2);
  await host.serve();
  const agent = await host.start();
  const ballast = join(host.stateDir, 'ballast');
  await writeFile(ballast, Buffer.alloc(1024 * 1024)).catch(() => undefined);
  await goesOnUnpersisted(t, host, agent);
  // HAProxy starts even so, with the last written file and commands for later changes.
  await host.serve({ members: [host.address(12)] });
  for (const pid of [await host.master(), await host.worker()]) signal(pid, 'SIGKILL');
  await host.soon('there is traffic again', async () => (await ask(host.place())) === host.address(12));
  await rm(ballast);
  await healed(t, host, agent);
});

asRoot.serial(
  'HAProxy starts with the last good file if haproxy.cfg is removed while the disk is full',
  async (t) => {
    const host = await hostWithSmallDisk(t);
    await startMembers(t, host, 2);
    await host.serve();
    const agent = await host.start();
    // A reload stores the last good file.
    await host.serve({ name: 'second', address: host.address(3) });
    await host.until('the second Service is served', () => host.answers(3));
    const ballast = join(host.stateDir, 'ballast');
    // The new worker serves a moment before the reload is over.
    await host.until('the last good one has it', async () =>
      (await readFile(`${host.paths.config}.last-good`, 'utf8').catch(() => '')).includes(host.address(3)),
    );
    await writeFile(ballast, Buffer.alloc(1024 * 1024)).catch(() => undefined);
    const pids = [await host.master(), await host.worker()];
    await rm(host.paths.config);
    for (const pid of pids) signal(pid, 'SIGKILL');
    await host.soon('there is traffic again', async () => (await host.answers()) && host.answers(3));
    await host.serve({ name: 'shop', address: host.address(2) });
    await host.until('it is reported', async () => (await host.status()).haproxy.persistFault !== '');
    await rm(ballast);
    await healed(t, host, agent);
  },
);

asRoot.serial('An agent whose disk is full at its first start serves once there is room', async (t) => {
  const host = await hostWithSmallDisk(t);
  const ballast = join(host.stateDir, 'ballast');
  await writeFile(ballast, Buffer.alloc(1024 * 1024)).catch(() => undefined);
  await startMembers(t, host);
  await host.serve();
  const agent = await host.launch();
  await host.until('it is reported', async () => /ENOSPC/.test((await host.status()).fault));
  t.is((await agent.get('/readyz')).status, 503);
  await rm(ballast);
  await host.soon('the Service is served', () => host.answers());
  await host.until('nothing is reported', async () => (await host.status()).fault === '');
  // The same for what is removed while no HAProxy runs.
  const pids = [await host.master(), await host.worker()];
  await rm(host.paths.config);
  for (const pid of pids) signal(pid, 'SIGKILL');
  await host.soon('there is traffic again', () => host.answers());
});

asRoot.serial(
  'A folder of manifests without its disk, also at a start, costs neither traffic nor a reload',
  async (t) => {
    const host = await TestHost.create(t);
    const disk = join(host.directory, 'disk');
    await mkdir(disk);
    const unmount = () => run('umount', ['--lazy', host.manifestDir]);
    await run('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=755', 'tmpfs', disk]);
    t.teardown(async () => {
      await unmount().catch(() => undefined);
      await run('umount', ['--lazy', disk]);
    });
    const mount = () => run('mount', ['--bind', disk, host.manifestDir]);
    await mount();
    await startMembers(t, host, 2);
    await host.serve();
    const first = await host.start();
    const before = [await host.worker(), await host.reloads()];
    const load = new Load(t, host.place());
    const isEmpty = async () =>
      (await host.status()).problems.some(({ message }) => message.includes('The folder is empty'));
    await unmount();
    await host.until('the folder is found empty', isEmpty);
    await first.stop();
    await host.start();
    t.true(await isEmpty());
    await load.answered(50);
    await mount();
    await host.soon('the folder is there again', async () => !(await isEmpty()));
    await host.serve({ members: [host.address(12)] });
    await host.soon('a change is taken', async () => (await ask(host.place())) === host.address(12));
    t.deepEqual((await load.stop()).failures, []);
    t.deepEqual([await host.worker(), await host.reloads()], before);
  },
);

asRoot.serial(
  'HAProxy is not reloaded while its runtime folder takes no new file, which would end it',
  async (t) => {
    const host = await TestHost.create(t);
    await run('mount', ['-t', 'tmpfs', '-o', 'nr_inodes=40,mode=755', 'tmpfs', host.runtimeDir]);
    t.teardown(async () => {
      await run('umount', ['--lazy', host.runtimeDir]);
    });
    await startMembers(t, host, 2);
    await host.serve();
    await host.start();
    t.true(await host.answers());
    // After its start the master of HAProxy 2.6 executes itself again, and makes its socket again.
    await host.until('HAProxy has settled', async () =>
      /^Uptime_sec: [1-9]/m.test(await host.haproxy('show info')),
    );
    const [load, master] = [new Load(t, host.place()), await host.master()];
    const fillers: string[] = [];
    const fill = async (): Promise<void> => {
      for (;;) {
        const path = join(host.runtimeDir, `filler-${fillers.length}`);
        await writeFile(path, '', { flag: 'wx' });
        fillers.push(path);
      }
    };
    await t.throwsAsync(fill, { code: 'ENOSPC' });
    await host.serve({ name: 'shop', address: host.address(2) });
    await host.until('it is reported', async () =>
      (await host.status()).fault.includes(
        `The folder "${dirname(host.paths.masterSocket)}" takes no new file`,
      ),
    );
    await host.serve({ members: [host.address(12)] });
    await host.until('endpoints still change', async () => (await ask(host.place())) === host.address(12));
    t.false(await host.answers(2));
    for (const path of fillers) await unlink(path);
    await host.until('the new Service is served', () => host.answers(2));
    await host.until('nothing is reported', async () => (await host.status()).fault === '');
    t.is(await host.master(), master);
    await load.answered(30);
    t.deepEqual((await load.stop()).failures, []);
  },
);

/** The agent applies an endpoint change, postpones a new Service, and reports that. */
async function goesOnUnpersisted(
  t: ExecutionContext<unknown>,
  host: TestHost,
  agent: RunningAgent,
): Promise<void> {
  const load = new Load(t, host.place());
  await host.serve({ members: [host.address(12)] });
  await host.until('the change is carried out', async () => (await ask(host.place())) === host.address(12));
  await host.until('it is reported', async () => (await host.status()).haproxy.persistFault !== '');
  t.is((await agent.metrics())('headgate_state_persisted'), 0);
  const { status, stdout } = await host.command('status');
  t.is(status, 1);
  t.regex(stdout, /^State on disk: +Cannot write/m);
  await host.serve({ members: [host.address(11)] });
  await host.until(
    'another change is carried out',
    async () => (await ask(host.place())) === host.address(11),
  );
  await host.serve({ name: 'shop', address: host.address(2) });
  await host.until(
    'the new Service is waited for',
    async () => (await host.why('default/shop')).verdict === 'not served',
  );
  await load.answered(30);
  t.deepEqual((await load.stop()).failures, []);
}

async function healed(t: ExecutionContext<unknown>, host: TestHost, agent: RunningAgent): Promise<void> {
  await host.soon('the state is kept', async () => (await agent.metrics())('headgate_state_persisted') === 1);
  await host.until('the new Service is served', () => host.answers(2));
  t.true(agent.hasLogged('haproxy.cfg can be written again'));
  t.is((await host.status()).fault, '');
  t.true((await host.config()).includes(`bind ${host.address(2)}:`));
}

/** `default/web` at address 1; members at 11 and 12, of which the first one serves. */
async function served(
  t: ExecutionContext<unknown>,
  flags: readonly string[] = [],
  options: HostOptions = {},
): Promise<{ readonly host: TestHost; readonly agent: RunningAgent }> {
  const host = await TestHost.create(t, options);
  await startMembers(t, host, 2);
  await host.serve();
  const agent = await host.start(flags);
  t.true(await host.answers());
  return { host, agent };
}

/** A host whose state directory has a disk of 256 KB. */
async function hostWithSmallDisk(t: ExecutionContext): Promise<TestHost> {
  const host = await TestHost.create(t);
  await run('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=755', 'tmpfs', host.stateDir]);
  t.teardown(async () => {
    await run('umount', ['--lazy', host.stateDir]);
  });
  return host;
}
