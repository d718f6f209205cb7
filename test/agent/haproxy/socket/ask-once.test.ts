import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { askOnce } from '../../../../agent/haproxy/socket/ask-once.ts';

/** Listens like HAProxy; answers each question with `answer`, or not at all. */
async function listening(t: ExecutionContext, answer?: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-ask-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const path = join(directory, 'sock');
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => {
      if (answer !== undefined) socket.end(answer);
    });
  });
  server.listen(path);
  await once(server, 'listening');
  t.teardown(() => server.close());
  return path;
}

test('askOnce() returns the whole answer without line feeds at its end', async (t) => {
  t.is(await askOnce(await listening(t, 'Name: HAProxy\nPid: 1\n\n'), 'show info'), 'Name: HAProxy\nPid: 1');
});

test('askOnce() rejects if HAProxy does not answer', async (t) => {
  const asking = askOnce(await listening(t), 'show info', { timeoutMs: 40 });
  await t.throwsAsync(asking, { code: 'RUNTIME_TIMEOUT', message: /within 40 ms/ });
});

test('askOnce() does not count a stall of its own process as silence', async (t) => {
  const asking = askOnce(await listening(t, 'well'), 'show info', { timeoutMs: 1_000 });
  for (const end = performance.now() + 1_100; performance.now() < end; );
  t.is(await asking, 'well');
});
