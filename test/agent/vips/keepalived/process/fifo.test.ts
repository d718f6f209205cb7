import { closeSync, fstatSync, openSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import test from 'ava';

const fifo = new URL('../../../../../agent/vips/keepalived/process/fifo.ts', import.meta.url).href;

// Opens and closes the FIFO, reports the number of the descriptor, and ends at a message.
const USER = `
  import { readdirSync, readlinkSync } from 'node:fs';
  import { parentPort, workerData } from 'node:worker_threads';
  import { NotifyFifo } from ${JSON.stringify(fifo)};

  const descriptor = () => {
    for (const fd of readdirSync('/proc/self/fd')) {
      try {
        if (readlinkSync('/proc/self/fd/' + fd) === workerData) return Number(fd);
      } catch {}
    }
  };
  const fifo = new NotifyFifo(workerData, () => undefined);
  await fifo.open();
  const fd = descriptor();
  fifo.close();
  while (descriptor() !== undefined) await new Promise((resolve) => setImmediate(resolve));
  parentPort.once('message', () => parentPort.close());
  parentPort.postMessage(fd);
`;

test('NotifyFifo closes its descriptor once, and not a later file with the same number', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'fifo-'));
  t.teardown(() => rm(directory, { recursive: true }));
  // As in the main thread of the agent; a second close would show at the end of the worker.
  const source = new URL(`data:text/javascript,${encodeURIComponent(USER)}`);
  const user = new Worker(source, { trackUnmanagedFds: false, workerData: join(directory, 'notify') });
  const fd = await new Promise<number>((resolve, reject) => user.on('message', resolve).on('error', reject));
  const opened: number[] = [];
  t.teardown(() => opened.forEach(closeSync));
  while (opened.at(-1) !== fd && opened.length < 200) opened.push(openSync('/dev/null', 'r'));
  t.is(opened.at(-1), fd);

  const exit = new Promise((resolve) => user.on('exit', resolve));
  user.postMessage('end');
  await exit;
  t.true(fstatSync(fd).isCharacterDevice());
});
