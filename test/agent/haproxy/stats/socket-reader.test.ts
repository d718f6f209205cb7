import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { SOCKET_GROUPS } from '../../../../agent/haproxy/config/socket-groups.ts';
import { SocketReader } from '../../../../agent/haproxy/stats/socket-reader.ts';

/** Answers as a worker with one listener in each group; a group that is `broken` gets an answer that is none. */
class Worker {
  pid = 1;
  broken = 0;
  /** Another one answers in place of it from its next question on. */
  isLeaving = false;
  readonly sessions = new Map<number, number>();

  answer(line: string): string {
    return line
      .split(';')
      .map((command) => this.#answerOne(command))
      .join('\n');
  }

  #answerOne(command: string): string {
    if (command === 'show info') {
      const { pid } = this;
      if (this.isLeaving) this.pid = 3 - pid;
      return `Pid: ${pid}\nStart_time_sec: 7\nStopping: 0\n`;
    }
    const group = Number(/^show stat -1 8 (\d+)$/.exec(command)?.[1]);
    if (group === this.broken) return 'Permission denied\n';
    return `# pxname,svname,scur,stot,iid,\ndefault:web-${group}:tcp:80:v4,sock-1,0,${this.sessions.get(group) ?? 0},${group},\n`;
  }
}

async function start(
  t: ExecutionContext<unknown>,
): Promise<{ worker: Worker; differing: () => Promise<number[]> }> {
  const directory = await mkdtemp(join(tmpdir(), 'sockets-'));
  const path = join(directory, 'admin.sock');
  const worker = new Worker();
  const server = createServer((socket) =>
    socket.on('data', (line) => socket.end(worker.answer(`${line}`.trim()))),
  );
  await new Promise<void>((resolve) => server.listen(path, resolve));
  t.teardown(async () => {
    server.close();
    await rm(directory, { recursive: true });
  });
  const reader = new SocketReader();
  const differing = async (): Promise<number[]> => {
    const { rows, differ } = await reader.read(path, 5_000);
    t.is(rows.length, SOCKET_GROUPS);
    return [...differ].map(({ id }) => id);
  };
  return { worker, differing };
}

test('Of one worker only what has changed since the reading before differs', async (t) => {
  const { worker, differing } = await start(t);
  t.is((await differing()).length, SOCKET_GROUPS);
  t.deepEqual(await differing(), []);
  worker.sessions.set(3, 1).set(20, 4);
  t.deepEqual(await differing(), [3, 20]);
});

test('Everything differs in a worker that has taken over, also where its rows are the same by chance', async (t) => {
  const { worker, differing } = await start(t);
  await differing();
  worker.pid = 2;
  t.is((await differing()).length, SOCKET_GROUPS);
  t.deepEqual(await differing(), []);
});

test('What a reading had found to differ before it broke off is not lost', async (t) => {
  const { worker, differing } = await start(t);
  await differing();
  await differing();
  worker.sessions.set(1, 1);
  worker.broken = SOCKET_GROUPS;
  await t.throwsAsync(differing, { message: /^Cannot read HAProxy's statistics/ });
  worker.broken = 0;
  t.true((await differing()).includes(1));
  t.deepEqual(await differing(), []);
});

test('Rows of two workers are never taken for those of one', async (t) => {
  const { worker, differing } = await start(t);
  worker.isLeaving = true;
  await t.throwsAsync(differing, { message: 'Another worker has taken over' });
  worker.isLeaving = false;
  t.is((await differing()).length, SOCKET_GROUPS, 'What was read of it is forgotten');
});
