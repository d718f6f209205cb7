import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { allColumns } from '../../../../agent/haproxy/stats/columns.ts';
import { Ledger } from '../../../../agent/haproxy/stats/counter-totals.ts';
import { DuePools, MEMBERS, POOLS } from '../../../../agent/haproxy/stats/due-pools.ts';
import { SocketReader } from '../../../../agent/haproxy/stats/socket-reader.ts';
import { readWorker } from '../../../../agent/haproxy/stats/worker-reading.ts';

const LISTENER = 'default:web:tcp:80:v4';
const HEADER = `# pxname,svname,${allColumns.join(',')},status,check_status,mode,`;

/** Answers as HAProxy does while one worker takes the place of another: either of them may take a connection. */
class Workers {
  sessions = 0;
  /** Who takes connections for one line, and for prompt mode. */
  pids = { line: 1, prompt: 1 };
  isLeaving = false;

  answer(command: string, pid: number): string {
    if (command === 'show info')
      return `Name: HAProxy\nVersion: 2.6.12\nPid: ${pid}\nStart_time_sec: 7\nStopping: ${this.isLeaving ? 1 : 0}\n\n`;
    const row = (server: string, type: number): string => {
      const values = { type, stot: this.sessions, scur: 0 };
      const numbers = allColumns.map((name) => (values as Record<string, number>)[name] ?? 0);
      return `${LISTENER},${server},${numbers.join(',')},UP,,tcp,\n`;
    };
    const kinds = Number(command.split(' ').at(-2));
    const rows = [row('FRONTEND', 0), row('BACKEND', 1), row('10.0.0.1:80', 2)];
    return `${HEADER}\n${rows.filter((_, at) => kinds & (1 << at)).join('')}\n`;
  }
}

async function start(t: ExecutionContext<unknown>) {
  const directory = await mkdtemp(join(tmpdir(), 'hg-'));
  const adminSocket = join(directory, 'admin.sock');
  const workers = new Workers();
  const server = createServer((socket) => {
    let isPrompted = false;
    socket.on('error', () => undefined);
    socket.on('data', (chunk) => {
      for (const line of `${chunk}`.trim().split('\n')) {
        const { pids } = workers;
        isPrompted ||= line === 'prompt';
        const commands = line === 'prompt' ? [] : line.split(';');
        const texts = commands.map((each) => workers.answer(each, isPrompted ? pids.prompt : pids.line));
        if (isPrompted) socket.write(`${texts.join('')}\n> `);
        else socket.end(texts.join(''));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(adminSocket, resolve));
  t.teardown(async () => {
    server.close();
    await rm(directory, { recursive: true });
  });
  const ledger = new Ledger();
  const options = {
    adminSocket,
    wanted: new Map(),
    kinds: POOLS + MEMBERS,
    ledger,
    due: new DuePools({ changesOf: () => 0 }),
    sockets: new SocketReader(),
  };
  const read = (isAnyone = false) => readWorker({ ...options, isAnyone });
  const sessions = (): number[] =>
    (['listener', 'pool', 'member'] as const).flatMap((kind) =>
      ledger.blocks(kind).flatMap(({ rows }) => rows.map(({ values }) => values[0] as number)),
    );
  return { workers, read, sessions };
}

test('What has changed is asked for by its name, and is of the same worker as the listeners', async (t) => {
  const { workers, read, sessions } = await start(t);
  await read();
  workers.sessions = 3;
  t.is((await read()).pid, 1);
  t.deepEqual(sessions(), [3, 3, 3]);
  workers.sessions = 5;
  workers.pids.prompt = 2;
  await t.throwsAsync(read(), { code: 'RUNTIME_CLOSED', message: 'Another worker has taken over' });
  workers.pids.line = 2;
  t.is((await read()).pid, 2);
  t.deepEqual(
    sessions(),
    [10, 8, 8],
    'Of the first one only the listener was told in the reading that broke off',
  );
});

test('A worker that is on its way out is read only where there is no other', async (t) => {
  const { workers, read } = await start(t);
  workers.isLeaving = true;
  await t.throwsAsync(read(), { message: 'Another worker has taken over' });
  t.true((await read(true)).stopping);
});
