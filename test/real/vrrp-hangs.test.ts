// A keepalived that hangs, and a keepalived that the agent has not started, in network namespaces.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, rm, unlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import ava, { type ExecutionContext } from 'ava';
import { inNamespace } from '../../agent/host/namespace.ts';
import { findKeepalived, vrrpProcess } from '../../agent/vips/keepalived/process/process.ts';
import { requires } from '../support/basics/requirements.ts';
import { signal } from '../support/host/agent.ts';
import { removeFolder } from '../support/host/remove-folder.ts';
import { keepalivedExecutable } from '../support/vrrp/keepalived.ts';
import {
  createPair,
  type Pair,
  type PairHost,
  startPair,
  until,
  vip,
  vips,
} from '../support/vrrp/vrrp-pair.ts';

const test = requires(ava, { root: true, programs: ['keepalived', 'ip', 'nft', 'nsenter', 'sysctl'] });

/** Searches for keepalived while its pid file appears and disappears. */
const LOOKS = 200;

test.serial('The agent kills a keepalived that hangs, and removes its addresses', async (t) => {
  const pair = await startPair(t, vips(0, 50));
  const { a, b } = pair;
  const hung = await b.vrrpPid();
  process.kill(hung, 'SIGSTOP');
  await until('a is master', async () => a.state() === 'master', pair);
  t.is((await b.held()).length, 52);
  await until('b holds nothing', async () => (await b.held()).length === 0, pair);
  await until('b is backup', async () => b.state() === 'backup', pair);
  t.not(await b.vrrpPid(), hung);
  t.regex(b.log, /keepalived hangs: the agent kills it/);
  t.is(b.dataplane.status().fault, '');
  t.is(a.state(), 'master');
});

test.serial(
  'The agent kills a keepalived that hangs on the standby, and the master stays master',
  async (t) => {
    const pair = await startPair(t, vips(0, 3));
    const { a, b } = pair;
    const { becameMaster } = await b.ask();
    const hung = await a.vrrpPid();
    process.kill(hung, 'SIGSTOP');
    await until('a has another one', async () => (await a.vrrpPid().catch(() => hung)) !== hung, pair);
    await until('a is backup', async () => a.state() === 'backup', pair);
    t.is((await b.ask()).becameMaster, becameMaster);
    t.is(b.state(), 'master');
  },
);

// keepalived 2.2.7 answers the agent and stays backup, but its sockets belong to the old interface.
test.serial('The standby takes over after its interface was renamed and renamed back', async (t) => {
  const pair = await startPair(t, vips(0, 3));
  const { network, a, b } = pair;
  const link = (...words: readonly string[]) => network.run('a', 'ip', 'link', 'set', ...words);
  await link('eth0', 'down');
  await link('eth0', 'name', 'other');
  await link('other', 'name', 'eth0');
  await link('eth0', 'up');
  // A question of the test would wake keepalived as an advertisement does.
  const fault = 'keepalived sends and receives no advertisements of vrrp-51';
  // Newer ones follow the interface by themselves.
  const isDeaf = a.dataplane.status().version.startsWith('2.2.');
  if (isDeaf) {
    await until('the agent reloads it', async () => a.log.includes(`${fault}: the agent reloads it`), pair);
    // The peer reads that this host could not take over.
    t.is(a.dataplane.roles()['vrrp-51'], 'fault');
  }
  await until('the fault is over', async () => a.dataplane.status().fault === '', pair);
  const { advertsReceived } = await a.ask();
  await until('a receives', async () => (await a.ask()).advertsReceived > advertsReceived + 5, pair);
  t.is(b.state(), 'master');
  await network.cut('b');
  await until('a is master', async () => a.state() === 'master', pair);
});

test.serial('The standby takes over after its interface was deleted and made again', async (t) => {
  const pair = await startPair(t, vips(0, 3));
  const { network, a, b } = pair;
  const reloads = () => a.counted.get('reload done') ?? 0;
  const before = reloads();
  await network.remake('a');
  await until('the agent reloads keepalived', async () => reloads() > before, pair);
  await until('the fault is over', async () => a.dataplane.status().fault === '', pair);
  await until('a is backup', async () => a.state() === 'backup', pair);
  const { advertsReceived } = await a.ask();
  await until('a receives', async () => (await a.ask()).advertsReceived > advertsReceived + 5, pair);
  t.is(b.state(), 'master');
  await network.cut('b');
  await until('a is master', async () => a.state() === 'master', pair);
});

test.serial(
  'The agent finds a keepalived whose pid files are lost or wrong, and starts no second one',
  async (t) => {
    const pair = await startPair(t, vips(0, 3));
    const { b } = pair;
    const parent = await b.pid();
    const { pidFile, vrrpPidFile } = b.paths;
    const losses = [
      () => unlink(vrrpPidFile),
      () => writeFile(pidFile, `${process.pid}\n`),
      () => unlink(pidFile),
    ];
    for (const [at, lose] of losses.entries()) {
      await lose();
      b.want(vips(0, 4 + at));
      await until('it is reloaded', async () => (await b.held()).length === 2 + 4 + at, pair);
    }
    // A new agent finds it as well.
    await b.restart(vips(0, 3));
    await until('it is reloaded', async () => (await b.held()).length === 5, pair);
    t.is(b.dataplane.status().pid, parent);
    t.is(b.state(), 'master');
    t.notRegex(b.log, /has ended|Started keepalived.*Started keepalived/s);
    // A keepalived that hangs is killed without pid files.
    const hung = await vrrpProcess(parent);
    process.kill(hung ?? 0, 'SIGSTOP');
    await until('it is ended', async () => /keepalived hangs: the agent kills it/.test(b.log), pair);
    await until('b is backup', async () => b.state() === 'backup' && (await b.held()).length === 0, pair);
  },
);

test.serial('The agent finds keepalived at any time while its pid files appear and disappear', async (t) => {
  const pair = await startPair(t, vips(0, 3));
  const { b } = pair;
  const parent = await b.pid();
  const { pidFile } = b.paths;
  let isOver = false;
  const coming = (async () => {
    for (let turn = 0; !isOver; turn++) {
      await rm(pidFile, { force: true });
      await delay(turn % 7);
      await writeFile(pidFile, `${parent}\n`);
      await delay(turn % 5);
    }
  })();
  for (let look = 0; look < LOOKS; look++) t.is(await findKeepalived(b.paths), parent);
  isOver = true;
  await coming;
  t.is(b.dataplane.status().pid, parent);
  t.is(b.state(), 'master');
  t.notRegex(b.log, /has ended|Started keepalived.*Started keepalived/s);
});

test.serial('The agent reports a second keepalived with the same files, and its end', async (t) => {
  const pair = await startPair(t, vips(0, 3), { b: { auditInterval: 500 } });
  const { b } = pair;
  const pid = await b.pid();
  const { pidFile, vrrpPidFile } = b.paths;
  const names = new Map<string, string>();
  for (const file of [pidFile, vrrpPidFile]) names.set(file, await readFile(file, 'utf8'));
  await startWithoutPidFiles(t, b);
  await until('it names itself', async () => (await b.pid().catch(() => pid)) !== pid, pair);
  await until('and its child', async () => (await b.vrrpPid().catch(() => 0)) > 0, pair);
  for (const [file, text] of names) await writeFile(file, text);
  const said = (): readonly number[] =>
    /"kill -KILL ([\d ]+)"$/.exec(b.dataplane.status().fault)?.[1]?.split(' ').map(Number) ?? [];
  // A young keepalived is not reported, because it may be about to end; its child is younger than itself.
  await until('it is said, and its child', async () => said().length === 2, pair);
  const pids = said();
  t.false(pids.includes(pid) || pids.includes(await b.vrrpPid()));
  t.is(b.dataplane.status().pid, pid);
  for (const each of pids) signal(each, 'SIGKILL');
  await until('it is over', async () => b.dataplane.status().fault === '', pair);
  t.regex(b.log, /There is one keepalived again/);
  t.is(await b.pid(), pid);
  // The start of the second one may have made b backup: two hosts of one priority then elect again.
  const standing = async (host: PairHost) => `${host.state()} ${(await host.held()).length}`;
  await until(
    'one of the hosts holds the VIPs',
    async () => {
      const both = await Promise.all([pair.a, b].map(standing));
      return both.sort().join() === 'backup 0,master 5';
    },
    pair,
  );
});

test.serial('The agent restores the standing file after another process has changed it', async (t) => {
  const pair = await startPair(t, vips(0, 3));
  const { a, b } = pair;
  await until('it is told', async () => (await a.ask()).priority === 200, pair);
  const changes = [() => unlink(a.paths.standing), () => writeFile(a.paths.standing, '153\n')];
  for (const [index, change] of changes.entries()) {
    await change();
    await until('it is seen', async () => a.counted.get('file') === index + 1, pair);
    await until('it is not', async () => (await a.ask()).priority === 200, pair);
  }
  b.dataplane.standing(['maintenance']);
  await until('a takes over', async () => a.state() === 'master', pair);
  t.is(a.counted.get('file'), changes.length);
});

test.serial(
  'keepalived continues after all its runtime files are deleted, and the agent receives its notifications again',
  async (t) => {
    const pair = await startPair(t, vips(0, 3));
    const { a, b } = pair;
    const pid = await b.pid();
    await removeFolder(b.paths.directory);
    await until('it is reloaded', async () => b.counted.get('reload done') === 1, pair);
    t.is(await findKeepalived(b.paths), pid);
    t.is(b.state(), 'master');
    a.dataplane.standing([]);
    b.dataplane.standing(['maintenance']);
    await until('a takes over', async () => a.state() === 'master', pair);
    await until('b is backup', async () => b.state() === 'backup', pair);
    // The files may also be lost while no agent runs.
    await b.dataplane.close();
    await removeFolder(b.paths.directory);
    await b.restart(vips(0, 3));
    b.dataplane.standing([]);
    a.dataplane.standing(['maintenance']);
    await until('b takes over', async () => b.state() === 'master', pair);
    t.is(await findKeepalived(b.paths), pid);
  },
);

test.serial('A reload that keepalived does not carry out is a fault until keepalived does', async (t) => {
  const pair = await startPair(t, vips(0, 3));
  const { b } = pair;
  // The process that takes the signals; the process that speaks VRRP continues.
  process.kill(await b.pid(), 'SIGSTOP');
  b.want(vips(0, 4));
  await until(
    'it is said',
    async () => /does not match keepalived.conf/.test(b.dataplane.status().fault),
    pair,
  );
  t.true((b.counted.get('reload failed') ?? 0) > 0);
  t.is(b.dataplane.status().vips, 0);
  process.kill(await b.pid(), 'SIGCONT');
  await until('it is done', async () => b.dataplane.status().vips === 4, pair);
  t.true((await b.held()).includes(vip(3)));
  t.is(b.state(), 'master');
});

test.serial('The agent does not take an idle keepalived for one that hangs', async (t) => {
  const pair = await startPair(t, vips(0, 3));
  const pids = [await pair.a.vrrpPid(), await pair.b.vrrpPid()];
  // Longer than a keepalived may be silent.
  const { advertsSent } = await pair.b.ask();
  await until('time has gone by', async () => (await pair.b.ask()).advertsSent > advertsSent + 20, pair);
  t.deepEqual([await pair.a.vrrpPid(), await pair.b.vrrpPid()], pids);
  t.notRegex(pair.a.log + pair.b.log, /hangs/);
});

test.serial(
  'The agent adopts and reloads a keepalived that a unit starts, and never starts one',
  async (t) => {
    const external = { keepalivedSupervisor: 'external' } as const;
    const pair = await createPair(t, { a: external, b: external });
    const { a, b } = pair;
    for (const host of [a, b]) {
      host.want(vips(0, 3));
      await host.dataplane.start();
      host.dataplane.standing([]);
      t.is(host.dataplane.status().fault, 'keepalived does not run');
      await unit(t, host);
    }
    await until('one is master', async () => [a.state(), b.state()].sort().join() === 'backup,master', pair);
    const [master, other] = a.state() === 'master' ? [a, b] : [b, a];
    await until('all is well', async () => master.dataplane.status().fault === '', pair);
    master.want(vips(0, 6));
    other.want(vips(0, 6));
    for (const host of [a, b])
      await until('keepalived has them', async () => (await host.ask()).addresses.size === 8, pair, 30_000);
    await until('it holds the new ones', async () => (await master.held()).length === 8, pair, 30_000);

    // As the kernel kills it if memory is short: the unit starts it again.
    const killed = await master.pid();
    for (const pid of [killed, await master.vrrpPid()]) signal(pid, 'SIGKILL');
    await until('the other one is master', async () => other.state() === 'master', pair);
    await until(
      'there is another keepalived',
      async () => (await master.pid().catch(() => killed)) !== killed,
      pair,
    );
    await until('it is backup and holds nothing', async () => isBackup(master), pair);
    for (const host of [a, b]) t.notRegex(host.log, /Started keepalived/);
    await isAlone(other, master, pair);
  },
);

async function isBackup(host: PairHost): Promise<boolean> {
  return host.state() === 'backup' && (await host.held()).length === 0;
}

async function isAlone(master: PairHost, backup: PairHost, pair: Pair): Promise<void> {
  await until(
    'one host has all',
    async () => (await master.held()).length === 8 && (await isBackup(backup)),
    pair,
  );
}

/** Like a unit of systemd: starts keepalived with the agent's file when the file is there, and restarts it. */
async function unit(t: ExecutionContext<unknown>, host: PairHost): Promise<ChildProcess> {
  const { paths } = host;
  await mkdir(dirname(paths.pidFile), { recursive: true });
  const loop = `trap 'kill $child; wait; exit' TERM
    while :; do rm -f ${paths.pidFile} ${paths.vrrpPidFile}; "$@" & child=$!; wait $child; sleep 1; done`;
  const [program, args] = startOf(host);
  const child = spawn('sh', ['-c', loop, 'sh', program, ...args], {
    stdio: 'ignore',
    env: { ...process.env, TMPDIR: paths.directory },
  });
  t.teardown(async () => {
    child.kill();
    await once(child, 'exit');
  });
  return child;
}

/** Like a keepalived that starts at the same moment as the agent's and finds no pid files yet. */
async function startWithoutPidFiles(t: ExecutionContext, host: PairHost): Promise<void> {
  for (const file of [host.paths.pidFile, host.paths.vrrpPidFile]) await unlink(file).catch(() => undefined);
  const [program, args] = startOf(host);
  const child = spawn(program, args, {
    stdio: 'ignore',
    env: { ...process.env, TMPDIR: host.paths.directory },
  });
  t.teardown(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
}

/** The command line of another program that starts keepalived with the agent's files. */
function startOf({ network, name, paths }: PairHost): ReturnType<typeof inNamespace> {
  const words = ['-n', '-l', '-G', '-f', paths.config, '-p', paths.pidFile, '-r', paths.vrrpPidFile];
  return inNamespace(network.netns(name), keepalivedExecutable, words);
}
