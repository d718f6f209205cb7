import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { HeadgateError } from '../../../../agent/base/errors.ts';
import type { BootedWorker } from '../../../../agent/haproxy/booted-worker.ts';
import { Reloader, type ReloaderOptions } from '../../../../agent/haproxy/worker/reloader.ts';
import { silentLog } from '../../../support/values/silent-log.ts';

const worker = (ask: () => Promise<string>): BootedWorker =>
  ({ runtime: { ask }, booted: new Map(), structure: '' }) as unknown as BootedWorker;

/** What a reload of a worker needs until the file is written, which is noted down. */
function reloaderOf(
  serving: { worker: BootedWorker | undefined },
  prepare = async (): Promise<void> => undefined,
  globalAccepted: () => void = () => undefined,
  more: Partial<ReloaderOptions> = {},
) {
  const written: unknown[] = [];
  const directory = mkdtempSync(join(tmpdir(), 'headgate-reloader-'));
  process.once('exit', () => rmSync(directory, { recursive: true }));
  const options = {
    paths: { masterSocket: join(directory, 'm.sock') },
    workers: { active: () => serving.worker, otherWorker: () => undefined },
    desired: new Map(),
    hooks: { onReload: () => undefined, beforeOrder: async () => undefined, shortage: () => '' },
    log: silentLog(),
    ...more,
    config: {
      maker: {
        prepare: async () => {
          await prepare();
          return { chunks: [], structure: '' };
        },
        globalAccepted,
      },
      file: { keepBeside: async () => undefined, write: async (chunks: unknown) => written.push(chunks) },
      persister: { idle: async () => undefined, worked: () => undefined },
      ...more.config,
    },
  } as unknown as ReloaderOptions;
  return { reloader: new Reloader(options), written };
}

const refuses = async (): Promise<never> => {
  throw new HeadgateError('RUNTIME_REPLY', 'It does not take connections any more');
};

test('The fault of a failed reload ends with its worker', async (t) => {
  const serving: { worker: BootedWorker | undefined } = { worker: worker(refuses) };
  const { reloader } = reloaderOf(serving);
  t.is(await reloader.reload(new Set(['repair'])), 'failed');
  t.is(reloader.fault, 'It does not take connections any more');
  serving.worker = undefined;
  t.is(await reloader.reload(new Set(['repair'])), 'done');
  t.is(reloader.fault, '');
});

test('A refused reload names the descriptors that HAProxy lacks, also after the last good file is back', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'headgate-refusing-'));
  const paths = {
    masterSocket: join(directory, 'm.sock'),
    serverState: join(directory, 'servers.state'),
    log: join(directory, 'haproxy.log'),
  };
  const server = createServer((socket) =>
    socket.once('data', (line) =>
      socket.end(String(line).startsWith('reload') ? 'Success=0\n--\n[ALERT] Not enough\n' : masterText([])),
    ),
  ).listen(paths.masterSocket);
  t.teardown(() => {
    server.close();
    rmSync(directory, { recursive: true });
  });
  await once(server, 'listening');
  let needs = 'HAProxy needs 5000 file descriptors';
  const serving = {
    runtime: { ask: async () => '# table', worker: { pid: 2 } },
    running: { has: () => false },
    booted: new Map(),
    structure: 'old',
  } as unknown as BootedWorker;
  const { reloader } = reloaderOf({ worker: serving }, undefined, undefined, {
    paths,
    config: {
      maker: {
        prepare: async () => ({ chunks: [], structure: 'new', loadBalancers: new Map() }),
        refused: () => undefined,
        globalRefused: () => {
          needs = '';
        },
      },
      file: {
        keepBeside: async () => undefined,
        write: async () => undefined,
        restoreLastGood: async () => true,
      },
    },
    finder: { expect: async () => undefined, find: async () => undefined },
    faults: { rejectNamed: () => false },
    hooks: { onReload: () => undefined, beforeOrder: async () => undefined, shortage: () => needs },
  } as unknown as Partial<ReloaderOptions>);
  t.is(await reloader.reload(new Set(['listener-added'])), 'failed');
  t.is(reloader.fault, 'HAProxy refused the last reload; see the log. HAProxy needs 5000 file descriptors');
});

test('An unneeded reload proves that HAProxy serves with the global section', async (t) => {
  let accepted = 0;
  const serving = { worker: worker(async () => '# table') };
  const { reloader } = reloaderOf(serving, undefined, () => accepted++);
  t.is(await reloader.reload(new Set(['listener-added'])), 'unneeded');
  t.is(accepted, 1);
});

test('A reload that fails because its worker is lost is no fault and is not retried', async (t) => {
  const serving: { worker: BootedWorker | undefined } = { worker: undefined };
  serving.worker = worker(() => {
    serving.worker = undefined;
    return refuses();
  });
  const { reloader } = reloaderOf(serving);
  t.is(await reloader.reload(new Set(['listener-added'])), 'done');
  t.is(reloader.fault, '');
});

test('A reload that loses its worker before it writes the file leaves the file to the next start', async (t) => {
  const serving: { worker: BootedWorker | undefined } = { worker: worker(async () => '') };
  const { reloader, written } = reloaderOf(serving, async () => {
    serving.worker = undefined;
  });
  t.is(await reloader.reload(new Set(['listener-added'])), 'done');
  t.deepEqual(written, []);
});

/** The answer of a master to `show proc`. */
function masterText(oldWorkers: readonly number[]): string {
  const rows = oldWorkers.map((pid) => `${pid} worker 1 0d00h00m09s 2.6.12\n`).join('');
  return `#<PID> <type> <reloads> <uptime> <version>\n1 master 1 0d00h00m09s 2.6.12\n# workers\n2 worker 0 0d00h00m01s 2.6.12\n# old workers\n${rows}\n`;
}

/** A master that tells of these old workers, of any kind of process. */
async function masterOf(t: ExecutionContext, oldWorkers: readonly number[]): Promise<Reloader> {
  const text = masterText(oldWorkers);
  const directory = mkdtempSync(join(tmpdir(), 'headgate-master-'));
  const masterSocket = join(directory, 'm.sock');
  const server = createServer((socket) => socket.end(text)).listen(masterSocket);
  t.teardown(() => {
    server.close();
    rmSync(directory, { recursive: true, force: true });
  });
  await once(server, 'listening');
  return new Reloader({ paths: { masterSocket } } as unknown as ReloaderOptions);
}

test('pressure() counts draining workers above the budget and their shares of memory', async (t) => {
  const huge = Number.MAX_SAFE_INTEGER;
  // This process takes tens of megabytes.
  const two = await masterOf(t, [process.pid, process.pid]);
  const pressures = [3, 2, 1].map((most) => two.pressure({ most, memory: huge }));
  t.deepEqual(await Promise.all(pressures), [0, 1, 2]);
  const used = 2 * process.memoryUsage.rss();
  t.is(await two.pressure({ most: 3, memory: used * 2 }), 0);
  t.true((await two.pressure({ most: 3, memory: used / 4 })) >= 2);
  const none = await masterOf(t, []);
  t.is(await none.pressure({ most: 1, memory: 1 }), 0);
});

test('pressure() is 0 if the master does not answer', async (t) => {
  const gone = new Reloader({ paths: { masterSocket: '/nowhere' } } as unknown as ReloaderOptions);
  t.is(await gone.pressure({ most: 1, memory: 1 }), 0);
});
