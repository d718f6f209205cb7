// A daemon that a test can be: it appends the text of its file to another one when it starts and at SIGHUP.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { startedWith } from '../../../../agent/host/daemon/find.ts';
import { KeptDaemon, type KeptDaemonHooks } from '../../../../agent/host/daemon/kept-daemon.ts';
import { type DaemonKind, startDaemon } from '../../../../agent/host/daemon/start.ts';
import { sendSignal } from '../../../../agent/host/daemon/stop.ts';
import { createLog } from '../../../../agent/host/log.ts';
import { eventually } from '../../../support/basics/eventually.ts';

const KIND: DaemonKind = { name: 'the daemon', missing: 'KEEPALIVED_MISSING', failed: 'KEEPALIVED_START' };
const SCRIPT = `
  const { appendFileSync, readFileSync } = require('node:fs');
  const [config, seen] = process.argv.slice(1);
  const read = () => {
    const text = readFileSync(config, 'utf8');
    if (text === 'wrong') process.exit(3);
    appendFileSync(seen, text + '\\n');
  };
  process.on('SIGHUP', read);
  read();
  setInterval(() => undefined, 60_000);
`;

// The agent's timers do not keep a process alive.
const alive = setInterval(() => undefined, 60_000);
test.after.always(() => clearInterval(alive));

interface Case {
  readonly folder: string;
  readonly canReload?: boolean;
  readonly hooks?: KeptDaemonHooks;
  /** A supervisor starts the daemon. */
  readonly isExternal?: boolean;
}

/** `desired.text`: what the daemon must run with; `faults`: the reasons that were reported. */
function agent(t: ExecutionContext<unknown>, { folder, canReload, hooks = {}, isExternal }: Case) {
  const [config, seen] = [join(folder, 'the.conf'), join(folder, 'seen')];
  const desired: { text: string | undefined } = { text: 'one' };
  const faults: string[] = [];
  const logged: string[] = [];
  const seenTexts = () => readFile(seen, 'utf8').catch(() => '');
  const kept = new KeptDaemon({
    program: {
      kind: KIND,
      config,
      find: async () => [...(await startedWith((words) => words.includes(config))).keys()][0],
      start: async () => {
        const before = await seenTexts();
        const command = [process.execPath, ['-e', SCRIPT, config, seen]] as const;
        const find = async () => (await seenTexts()) !== before || undefined;
        const log = join(folder, 'log');
        const { child } = await startDaemon(KIND, { command, log, find, timeoutMs: 30_000, excerpt: String });
        return { child, pid: child.pid ?? 0 };
      },
      endTimeoutMs: 10_000,
      supervisorMs: isExternal ? 0 : undefined,
    },
    messages: join(folder, 'log'),
    text: async () => desired.text,
    ...(canReload && { reload: async (pid: number) => void sendSignal(KIND, pid, 'SIGHUP') }),
    hooks,
    onFault: (reason) => faults.push(reason),
    log: createLog({
      level: 'info',
      format: 'terminal',
      destination: { write: (line) => logged.push(line) },
    }),
  });
  t.teardown(async () => {
    await kept.close();
    await kept.end();
  });
  return {
    kept,
    desired,
    faults,
    logged,
    config,
    seen: async () => (await seenTexts()).split('\n').slice(0, -1),
  };
}

async function folderOf(t: ExecutionContext<unknown>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'kept-'));
  t.teardown(() => rm(folder, { recursive: true }));
  return folder;
}

test('KeptDaemon adopts a daemon whose file was removed while no agent ran', async (t) => {
  const folder = await folderOf(t);
  const first = agent(t, { folder, canReload: true });
  await first.kept.keep();
  await first.kept.close();
  await rm(first.config);
  const next = agent(t, { folder, canReload: true });
  await next.kept.keep();
  t.is(next.kept.pid, first.kept.pid);
  t.is(await readFile(next.config, 'utf8'), 'one');
});

test('KeptDaemon starts a daemon, and a later agent adopts it', async (t) => {
  const folder = await folderOf(t);
  const served: number[] = [];
  const first = agent(t, { folder, hooks: { onServes: async () => void served.push(first.kept.pid) } });
  await first.kept.keep();
  t.is(await readFile(first.config, 'utf8'), 'one');
  await first.kept.keep();
  t.deepEqual(served, [first.kept.pid]);
  await first.kept.close();
  const next = agent(t, { folder });
  await next.kept.keep();
  t.is(next.kept.pid, first.kept.pid);
  t.true(next.logged.some((line) => line.includes('Adopted the daemon, which runs already')));
  t.deepEqual(await next.seen(), ['one']);
  // Another agent has started it.
  await next.kept.close();
  await next.kept.stop();
  t.is(await readFile(next.config, 'utf8'), 'one');
});

test('KeptDaemon starts a daemon that has ended again', async (t) => {
  const { kept, faults, logged } = agent(t, { folder: await folderOf(t) });
  await kept.keep();
  const { pid } = kept;
  process.kill(pid, 'SIGKILL');
  await eventually(
    async () => kept.pid,
    (now) => ![0, pid].includes(now),
  );
  t.true(logged.some((line) => line.includes('The daemon has ended')));
  t.deepEqual(faults, []);
});

test('KeptDaemon replaces a daemon that cannot reload', async (t) => {
  const { kept, desired, seen } = agent(t, { folder: await folderOf(t) });
  await kept.keep();
  const { pid } = kept;
  desired.text = 'two';
  await kept.keep();
  t.not(kept.pid, pid);
  t.deepEqual(await seen(), ['one', 'two']);
});

test('KeptDaemon reloads a daemon that can, also one that it adopts', async (t) => {
  const folder = await folderOf(t);
  const first = agent(t, { folder, canReload: true });
  await first.kept.keep();
  const { pid } = first.kept;
  first.desired.text = 'two';
  await first.kept.keep();
  t.is(first.kept.pid, pid);
  await eventually(first.seen, ({ length }) => length === 2);
  t.deepEqual(await first.seen(), ['one', 'two']);
  await first.kept.close();
  // An agent that ended between the file and the reload.
  await writeFile(first.config, 'three');
  const next = agent(t, { folder, canReload: true });
  next.desired.text = 'three';
  await next.kept.keep();
  t.is(next.kept.pid, pid);
  await eventually(next.seen, ({ length }) => length === 3);
});

test('KeptDaemon reports once why its daemon does not run, and when it runs again', async (t) => {
  const { kept, desired, faults } = agent(t, { folder: await folderOf(t) });
  desired.text = 'wrong';
  await kept.keep();
  await kept.keep();
  t.is(faults.length, 1);
  t.regex(kept.fault, /^The daemon ended with exit status 3/);
  desired.text = 'right';
  await kept.keep();
  t.is(kept.fault, '');
  t.deepEqual(faults.slice(1), ['']);
});

test('KeptDaemon removes daemon and file if none is desired, also those of an earlier agent', async (t) => {
  const folder = await folderOf(t);
  const first = agent(t, { folder });
  await first.kept.keep();
  await first.kept.close();
  let removed = 0;
  const next = agent(t, { folder, hooks: { onRemoved: async () => void removed++ } });
  next.desired.text = undefined;
  await next.kept.keep();
  t.is(next.kept.pid, 0);
  t.is(removed, 1);
  t.is((await startedWith((words) => words.includes(next.config))).size, 0);
  await t.throwsAsync(readFile(next.config), { code: 'ENOENT' });
});

test('KeptDaemon never starts a daemon that a supervisor starts', async (t) => {
  const { kept, faults, config } = agent(t, { folder: await folderOf(t), isExternal: true });
  await kept.keep();
  t.deepEqual(faults, ['The daemon does not run']);
  t.is(await readFile(config, 'utf8'), 'one');
});
