// Other processes kill, stop and reload HAProxy and remove its sockets. As soon as possible, long before an audit, HAProxy
// has the desired state again, and the agent logs the repair.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { rename, unlink, writeFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import ava, { type ExecutionContext } from 'ava';
import { askOnce } from '../../agent/haproxy/socket/ask-once.ts';
import { requires } from '../support/basics/requirements.ts';
import { type RunningAgent, signal, TestHost } from '../support/host/agent.ts';
import { removeFolder } from '../support/host/remove-folder.ts';
import { startMembers } from '../support/traffic/members.ts';
import { ask, Load } from '../support/traffic/traffic.ts';
import { MEMBER_PORT, VIP_PORT } from '../support/values/service-objects.ts';

const test = requires(ava, { haproxy: true });

test.serial('HAProxy serves soon after its worker was killed', async (t) => {
  const { host, agent } = await served(t);
  const worker = await host.worker();
  process.kill(worker, 'SIGKILL');
  await recovered(host, agent, 'process');
  t.not(await host.worker(), worker);
  await stillWorks(host);
});

test.serial('HAProxy serves soon after its master was killed', async (t) => {
  const { host, agent } = await served(t);
  const master = await host.master();
  process.kill(master, 'SIGKILL');
  await host.until('the agent has noticed', async () => agent.hasLogged('Lost the HAProxy worker'));
  await recovered(host, agent, 'process');
  t.not(await host.master(), master);
  await stillWorks(host);
});

test.serial('HAProxy serves soon after both were killed, with the changes from the meantime', async (t) => {
  const { host, agent } = await served(t);
  const pids = [await host.master(), await host.worker()];
  // The worker may have ended with its master already.
  for (const pid of pids) signal(pid, 'SIGKILL');
  await host.serve({ members: [host.address(12)] });
  await recovered(host, agent, 'process');
  await host.until('the change is carried out', async () => (await ask(host.place())) === host.address(12));
  await stillWorks(host);
});

test.serial(
  'The agent reports a hanging HAProxy without a restart, and applies the changes when it continues',
  async (t) => {
    const { host, agent } = await served(t);
    const pids = [await host.master(), await host.worker()];
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    await host.serve({ members: [host.address(12)] });
    await host.until('it is reported', async () => (await host.status()).fault !== '');
    t.is((await agent.get('/readyz')).status, 503);
    t.is((await agent.get('/healthz')).status, 200);
    for (const pid of pids) process.kill(pid, 'SIGCONT');
    await host.soon('the change is carried out', async () => (await ask(host.place())) === host.address(12));
    await host.until('nothing is reported', async () => (await host.status()).fault === '');
    t.deepEqual([await host.master(), await host.worker()], pids);
    await stillWorks(host);
  },
);

test.serial(
  'Changes continue after the admin socket was removed, also after a restart of the agent',
  async (t) => {
    const { host, agent } = await served(t);
    const worker = (await host.status()).haproxy.workerPid;
    await unlink(host.paths.adminSocket);
    await host.serve({ members: [host.address(12)] });
    await host.until('a change is carried out', async () => (await ask(host.place())) === host.address(12));
    await agent.stop();
    await host.start();
    await host.serve({ members: [host.address(11)] });
    await host.until('a change is carried out', async () => (await ask(host.place())) === host.address(11));
    t.is((await host.status()).haproxy.workerPid, worker);
    await host.serve({ name: 'shop', address: host.address(2) });
    await host.until('a new Service is served', () => host.answers(2));
    // A reload also ends the connection through the master.
    await host.until('nothing is reported', async () => (await host.status()).fault === '');
    // A new HAProxy has a new socket.
    signal(await host.master(), 'SIGKILL');
    await host.until('it is there', async () => existsSync(host.paths.adminSocket));
    await stillWorks(host);
  },
);

test.serial('An audit finds drift also after the admin socket was removed', async (t) => {
  const { host, agent } = await served(t);
  const member = `default:web:tcp:${VIP_PORT}:v4/${host.address(11)}:${MEMBER_PORT}`;
  const worker = await host.worker();
  await unlink(host.paths.adminSocket);
  const tampering = `@!${worker} set server ${member} state maint;quit`;
  t.is(await askOnce(host.paths.masterSocket, tampering), '');
  // The first audit runs after the removal and needs a new connection.
  await writeFile(settingsFile(host), 'auditInterval: 1s\n');
  agent.signal('SIGHUP');
  await host.until(
    'it is repaired',
    async () => (await agent.metrics())('headgate_repairs_total', { what: 'audit' }) === 1,
  );
  await host.until('the member serves again', () => host.answers());
});

test.serial("Commands reach the agent soon after the agent's socket was removed", async (t) => {
  const { host, agent } = await served(t);
  await unlink(join(host.runtimeDir, 'agent.sock'));
  await host.until('a command reaches it', async () => (await host.command('status')).status === 0);
  t.true(agent.hasLogged('Restored a file of the agent that was removed or changed'));
});

test.serial('The agent restores a removed master socket without a failed request', async (t) => {
  const { host, agent } = await served(t);
  const [load, master] = [new Load(t, host.place()), await host.master()];
  await unlink(host.paths.masterSocket);
  await host.soon('it is there again', async () => (await host.reloads()) === 1);
  await host.until(
    'it is counted',
    async () => (await agent.metrics())('headgate_repairs_total', { what: 'socket' }) === 1,
  );
  t.true(agent.hasLogged("HAProxy's master socket was removed"));
  await load.answered(30);
  t.deepEqual((await load.stop()).failures, []);
  t.is(await host.master(), master);
  await stillWorks(host);
});

test.serial(
  'The agent restores the removed runtime folder of HAProxy without a failed request',
  async (t) => {
    const { host, agent } = await served(t);
    const [load, master] = [new Load(t, host.place()), await host.master()];
    await removeFolder(dirname(host.paths.masterSocket));
    await host.soon('it is there again', async () => (await host.master()) === master);
    t.is(await host.reloads(), 1);
    // The first attempt succeeds, although the agent first reads the tables of a new HAProxy.
    t.false(agent.hasLogged('Cannot reload HAProxy'));
    await load.answered(30);
    t.deepEqual((await load.stop()).failures, []);
    await host.serve({ name: 'shop', address: host.address(2) });
    await host.until('a new Service is served', () => host.answers(2));
    t.is(await host.master(), master);
  },
);

test.serial('A starting agent starts no second HAProxy if the runtime folder was removed', async (t) => {
  const { host, agent } = await served(t);
  const [load, master] = [new Load(t, host.place()), await host.master()];
  await agent.stop();
  await removeFolder(dirname(host.paths.masterSocket));
  await host.serve({ members: [host.address(12)] });
  await host.start();
  t.is(await host.master(), master);
  await host.until('the change is carried out', async () => (await ask(host.place())) === host.address(12));
  await load.answered(30);
  t.deepEqual((await load.stop()).failures, []);
});

test.serial('A starting agent adopts the running HAProxy if both sockets were removed', async (t) => {
  const { host, agent } = await served(t);
  const [load, master] = [new Load(t, host.place()), await host.master()];
  await agent.stop();
  await unlink(host.paths.adminSocket);
  await unlink(host.paths.masterSocket);
  await host.serve({ members: [host.address(12)] });
  const next = await host.launch();
  await host.soon('it is ready', () => next.isReady());
  await host.until('the change is carried out', async () => (await ask(host.place())) === host.address(12));
  t.true(next.hasLogged('its sockets were removed'));
  t.is(await host.master(), master);
  t.is(await host.reloads(), 1);
  await load.answered(30);
  t.deepEqual((await load.stop()).failures, []);
  await host.serve({ name: 'shop', address: host.address(2) });
  await host.until('a new Service is served', () => host.answers(2));
});

test.serial(
  "The agent reloads HAProxy by signal while the connections of its master's socket are taken",
  async (t) => {
    const { host, agent } = await served(t);
    const [load, master] = [new Load(t, host.place()), await host.master()];
    // The master takes ten connections, and a reload closes them.
    const sockets = await Promise.all(
      Array.from({ length: 12 }, () => idleConnection(host.paths.masterSocket)),
    );
    t.teardown(() => {
      for (const socket of sockets) socket.destroy();
    });
    await host.serve({ name: 'shop', address: host.address(2) });
    await host.until('the new Service is served', () => host.answers(2));
    t.true(agent.hasLogged('Reloading HAProxy by signal, because its master cannot be reached'));
    await host.until('nothing is reported', async () => (await host.status()).fault === '');
    t.is(await host.master(), master);
    await load.answered(30);
    t.deepEqual((await load.stop()).failures, []);
  },
);

test.serial(
  "The agent reloads HAProxy by signal if another file took the place of its master's socket",
  async (t) => {
    const { host, agent } = await served(t);
    const master = await host.master();
    await unlink(host.paths.masterSocket);
    const other = createServer().listen(host.paths.masterSocket);
    await once(other, 'listening');
    // Without its file being removed, as after the end of a process that has replaced the socket.
    await rename(host.paths.masterSocket, `${host.paths.masterSocket}.dead`);
    other.close();
    await once(other, 'close');
    await rename(`${host.paths.masterSocket}.dead`, host.paths.masterSocket).catch(() => undefined);
    await host.serve({ name: 'shop', address: host.address(2) });
    await host.until('the new Service is served', () => host.answers(2));
    t.true(agent.hasLogged('by signal'));
    await host.until('nothing is reported', async () => (await host.status()).fault === '');
    t.is(await host.master(), master);
    await stillWorks(host);
  },
);

test.serial(
  'A second HAProxy with the same file is a fault that names it, and takes nothing from the first',
  async (t) => {
    const { host, agent } = await served(t);
    const [worker, master] = [await host.worker(), await host.master()];
    const other = spawn(host.haproxyProgram, ['-f', host.paths.config, '-db'], { stdio: 'ignore' });
    t.teardown(() => other.kill('SIGKILL'));
    await host.until('it has taken the admin socket', async () => (await host.worker()) === other.pid);
    const names = async (): Promise<boolean> => (await host.status()).fault.includes(`process ${other.pid}:`);
    await host.until('it is reported', names);
    t.is((await host.status()).haproxy.workerPid, worker);
    await host.until(
      'the statistics are those of the first',
      async () => (await agent.metrics())('headgate_listener_open_connections') !== undefined,
    );
    await agent.stop();
    await host.start();
    t.is((await host.status()).haproxy.workerPid, worker, 'An agent that starts adopts the first');
    await host.until('it is reported', names);
    other.kill('SIGKILL');
    await once(other, 'exit');
    await host.until('nothing is reported', async () => (await host.status()).fault === '');
    await host.serve({ members: [host.address(12)] });
    await host.until('the change is carried out', async () => (await ask(host.place())) === host.address(12));
    await host.serve({ name: 'shop', address: host.address(2) });
    await host.until('a new Service is served', () => host.answers(2));
    t.is(await host.master(), master);
  },
);

test.serial('A reload beside a second HAProxy takes the worker of the own master', async (t) => {
  const { host, agent } = await served(t);
  const master = await host.master();
  const other = spawn(host.haproxyProgram, ['-f', host.paths.config, '-db'], { stdio: 'ignore' });
  t.teardown(() => other.kill('SIGKILL'));
  await host.until('it is reported', async () =>
    (await host.status()).fault.includes(`process ${other.pid}:`),
  );
  const workers = [(await host.status()).haproxy.workerPid];
  const reloaded = async (reason: string): Promise<void> => {
    await host.until('HAProxy is reloaded', async () => {
      const reloads = (await agent.metrics())('headgate_haproxy_reloads_total', { reason, result: 'done' });
      return (reloads ?? 0) > 0;
    });
    const { haproxy, fault } = await host.status();
    t.false([...workers, other.pid].includes(haproxy.workerPid));
    t.true(fault.includes(`process ${other.pid}:`));
    workers.push(haproxy.workerPid);
  };
  // A reload without a change of the file: the second HAProxy has the same description as the new worker.
  await unlink(host.paths.masterSocket);
  await reloaded('socket-lost');
  await host.serve({ name: 'shop', address: host.address(2) });
  await reloaded('listener-added');
  t.true(await host.answers(2));
  other.kill('SIGKILL');
  await once(other, 'exit');
  await host.until('nothing is reported', async () => (await host.status()).fault === '');
  t.is(await host.master(), master);
  await stillWorks(host);
});

test.serial('The agent detects a reload by another process and repairs nothing', async (t) => {
  const { host, agent } = await served(t);
  const [load, worker] = [new Load(t, host.place()), await host.worker()];
  await reloadedBySomeoneElse(host);
  await host.until('the agent speaks to the new worker', async () => {
    const { serving, workerPid } = (await host.status()).haproxy;
    return serving && workerPid !== worker && workerPid === (await host.worker());
  });
  t.true(agent.hasLogged('Another process reloaded HAProxy'));
  await stillWorks(host);
  await load.answered(30);
  t.deepEqual((await load.stop()).failures, []);
});

for (const [what, sockets] of [
  ['another file', true],
  ["another file without the agent's socket", false],
] as const) {
  test.serial(`The agent soon undoes a reload with ${what}`, async (t) => {
    const { host } = await served(t);
    const own = sockets ? `\n    stats socket ${host.paths.adminSocket} mode 600 level admin` : '';
    const foreign = `global${own}
    maxconn 500
defaults
    mode tcp
    timeout connect 1s
    timeout client 5s
    timeout server 5s
listen somebody-elses
    bind ${host.address(9)}:17080
    server one ${host.address(11)}:17090
`;
    t.true(await host.answers());
    await host.until('it is there', async () => {
      await reloadedBySomeoneElse(host, () => writeFile(host.paths.config, foreign));
      return host.answers(9);
    });
    await host.soon('the Service is served', () => host.answers());
    await host.until('nothing else is', async () => !(await host.answers(9)));
    await host.until('the agent is content', async () => (await host.status()).fault === '');
    t.regex(await host.config(), /description headgate:/);
    await stillWorks(host);
  });
}

interface Served {
  readonly host: TestHost;
  readonly agent: RunningAgent;
}

/** `default/web` at address 1; members at 11 and 12, of which the first one serves. */
async function served(t: ExecutionContext<unknown>): Promise<Served> {
  const host = await TestHost.create(t);
  await startMembers(t, host, 2);
  await host.serve();
  await writeFile(settingsFile(host), 'auditInterval: 1h\n');
  const agent = await host.start(['--config', settingsFile(host)]);
  t.true(await host.answers());
  // After its start the master of HAProxy 2.6 executes itself again: it misses signals and binds its socket again.
  await host.until('HAProxy has settled', async () =>
    /^Uptime_sec: [1-9]/m.test(await host.haproxy('show info')),
  );
  return { host, agent };
}

const settingsFile = ({ directory }: TestHost): string => join(directory, 'settings.yaml');

async function recovered(host: TestHost, agent: RunningAgent, what: string): Promise<void> {
  await host.soon('there is traffic again', () => host.answers());
  await host.until('the agent is ready', () => agent.isReady());
  await host.until(
    'it is counted',
    async () => (await agent.metrics())('headgate_repairs_total', { what }) === 1,
  );
}

async function idleConnection(path: string): Promise<Socket> {
  const socket = connect(path).on('error', () => undefined);
  // Closed by an error if the queue is full: then the connections before it have taken all places.
  await new Promise((resolve) => socket.once('connect', resolve).once('close', resolve));
  return socket;
}

async function reloadedBySomeoneElse(host: TestHost, before?: () => Promise<void>): Promise<void> {
  const reloads = await host.reloads();
  await before?.();
  process.kill(await host.master(), 'SIGUSR2');
  await host.until('the master has reloaded', async () => (await host.reloads()) > reloads);
}

/** Commands and reloads work. */
async function stillWorks(host: TestHost): Promise<void> {
  for (const last of [12, 11]) {
    await host.serve({ members: [host.address(last)] });
    await host.until('a change is carried out', async () => (await ask(host.place())) === host.address(last));
  }
  await host.serve({ name: 'shop', address: host.address(2) });
  await host.until('a new Service is served', () => host.answers(2));
}
