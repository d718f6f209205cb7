import test, { type ExecutionContext } from 'ava';
import { SOCKET_GROUPS } from '../../../../agent/haproxy/config/socket-groups.ts';
import { SocketReader } from '../../../../agent/haproxy/stats/socket-reader.ts';

/** Answers as a worker with one listener in each group; a group that is `broken` gets an answer that is none. */
class Worker {
  pid = 1;
  broken = 0;
  readonly sessions = new Map<number, number>();

  readonly ask = async (lines: readonly string[]): Promise<readonly string[]> =>
    lines.map((line) => {
      const group = Number(/^show stat -1 8 (\d+)$/.exec(line)?.[1]);
      if (group === this.broken) return 'Permission denied';
      const sessions = this.sessions.get(group) ?? 0;
      return `# pxname,svname,scur,stot,bin,bout,iid,conn_tot,dcon,dses,\ndefault:web-${group}:tcp:80:v4,sock-1,0,${sessions},0,0,${group},${sessions},0,0,`;
    });
}

function start(t: ExecutionContext<unknown>): { worker: Worker; differing: () => Promise<number[]> } {
  const worker = new Worker();
  const reader = new SocketReader();
  const differing = async (): Promise<number[]> => {
    const { rows, differ } = await reader.read(`${worker.pid}`, worker.ask);
    t.is(rows.length, SOCKET_GROUPS);
    return [...differ].map(({ id }) => id);
  };
  return { worker, differing };
}

test('Of one worker only what has changed since the reading before differs', async (t) => {
  const { worker, differing } = start(t);
  t.is((await differing()).length, SOCKET_GROUPS);
  t.deepEqual(await differing(), []);
  worker.sessions.set(3, 1).set(20, 4);
  t.deepEqual(await differing(), [3, 20]);
});

test('Everything differs in a worker that has taken over, also where its rows are the same by chance', async (t) => {
  const { worker, differing } = start(t);
  await differing();
  worker.pid = 2;
  t.is((await differing()).length, SOCKET_GROUPS);
  t.deepEqual(await differing(), []);
});

test('What a reading had found to differ before it broke off is not lost', async (t) => {
  const { worker, differing } = start(t);
  await differing();
  await differing();
  worker.sessions.set(1, 1);
  worker.broken = SOCKET_GROUPS;
  await t.throwsAsync(differing, { message: /^Cannot read HAProxy's statistics/ });
  worker.broken = 0;
  t.true((await differing()).includes(1));
  t.deepEqual(await differing(), []);
});
