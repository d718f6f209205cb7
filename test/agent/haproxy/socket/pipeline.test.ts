import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { askOnce } from '../../../../agent/haproxy/socket/ask-once.ts';
import { Pipeline } from '../../../../agent/haproxy/socket/pipeline.ts';
import { processorTime } from '../../../support/measure/processor-time.ts';

test('Pipeline cuts replies at the prompt at the beginning of a line, however the stream is cut', async (t) => {
  // A prompt within a line is text; a line of an answer never begins with one.
  const reply = fc
    .array(fc.constantFrom('', 'a > b', 'x> ', '>', 'é >', '\t> c'), { maxLength: 4 })
    .map((lines) => lines.join('\n'));
  await fc.assert(
    fc.asyncProperty(
      fc.array(reply, { minLength: 1, maxLength: 8 }),
      fc.infiniteStream(fc.integer({ min: 1, max: 5 })),
      async (replies, cuts) => {
        const { pipeline, peer, stop } = await pair(t);
        try {
          const texts = pipeline.send(
            replies.map((_, at) => `line ${at}`),
            'urgent',
          );
          const stream = Buffer.from(replies.map((text) => `${text}\n> `).join(''));
          for (let from = 0; from < stream.length; ) {
            const length = cuts.next().value ?? 1;
            peer.write(stream.subarray(from, from + length));
            from += length;
            await turn();
          }
          return JSON.stringify(await texts) === JSON.stringify(replies);
        } finally {
          stop();
        }
      },
    ),
    { numRuns: 30 },
  );
  t.pass();
});

test.serial('Pipeline reads a reply of many megabytes in time proportional to its length', async (t) => {
  const time = async (megabytes: number): Promise<number> => {
    const { pipeline, peer, stop } = await pair(t);
    const text = 'a line with a > prompt in it, and some more\n'.repeat((megabytes * 1024 * 1024) / 44);
    const begun = processorTime();
    const [reply = ''] = await Promise.all([pipeline.send(['show'], 'bulk'), peer.end(`${text}\n> `)]).then(
      ([replies]) => replies,
    );
    t.is(reply, text);
    stop();
    return processorTime() - begun;
  };
  await time(2);
  const small = await time(4);
  const large = await time(32);
  t.true(large < small * 8 * 5, `4 MB in ${small} ms, 32 MB in ${large} ms`);
});

test('Pipeline has at most 64 KB and 64 bulk lines under way, and sends urgent lines first', async (t) => {
  const { pipeline, peer, received } = await pair(t);
  const bulk = pipeline.send(
    Array.from({ length: 200 }, (_, at) => `bulk ${at}`),
    'bulk',
  );
  await received(64);
  const urgent = pipeline.send(['urgent 1', 'urgent 2'], 'urgent');
  await received(66);
  const wide = pipeline.send(
    Array.from({ length: 20 }, () => 'w'.repeat(10_000)),
    'urgent',
  );
  const lines = await received(72);
  t.deepEqual(
    lines.slice(60, 68).map((line) => line.slice(0, 8)),
    ['bulk 60', 'bulk 61', 'bulk 62', 'bulk 63', 'urgent 1', 'urgent 2', 'wwwwwwww', 'wwwwwwww'],
  );
  t.true(lines.join('\n').length <= 64 * 1024);
  peer.on('data', (chunk: Buffer) => peer.write('\n> '.repeat(chunk.toString().split('\n').length - 1)));
  peer.write('\n> '.repeat(72));
  t.deepEqual([(await bulk).length, (await urgent).length, (await wide).length], [200, 2, 20]);
});

test('Pipeline sends nothing for an empty batch', async (t) => {
  const { pipeline } = await pair(t);
  t.deepEqual(await pipeline.send([], 'urgent'), []);
});

test('Pipeline rejects all batches and closes the connection if HAProxy hangs', async (t) => {
  const { pipeline } = await pair(t, 50);
  const error = { code: 'RUNTIME_TIMEOUT', message: 'HAProxy does not answer within 50 ms' };
  await Promise.all([
    t.throwsAsync(pipeline.send(['one', 'two'], 'urgent'), error),
    t.throwsAsync(pipeline.send(['three'], 'bulk'), error),
  ]);
  t.like(await pipeline.closed, { code: 'RUNTIME_TIMEOUT', retry: 'now' });
  await t.throwsAsync(pipeline.send(['four'], 'urgent'), { code: 'RUNTIME_CLOSED' });
});

test('Pipeline keeps the connection to a HAProxy that answers slowly', async (t) => {
  const { pipeline, peer } = await pair(t, 60);
  const replies = pipeline.send(['one', 'two', 'three', 'four', 'five'], 'urgent');
  const tick = setInterval(() => peer.write('\n> '), 30);
  t.teardown(() => clearInterval(tick));
  t.is((await replies).length, 5);
});

test('Pipeline does not count a stall of its own process as silence', async (t) => {
  const { pipeline, peer } = await pair(t, 50);
  const reply = pipeline.send(['one'], 'urgent');
  await new Promise((resolve) => peer.write('\n> ', resolve));
  for (const until = performance.now() + 120; performance.now() < until; );
  t.deepEqual(await reply, ['']);
});

test('Pipeline has no timeout while it is idle', async (t) => {
  const { pipeline, peer } = await pair(t, 20);
  const one = pipeline.send(['one'], 'urgent');
  peer.write('\n> ');
  await one;
  await new Promise((resolve) => setTimeout(resolve, 60));
  t.false(pipeline.isClosed);
  const two = pipeline.send(['two'], 'urgent');
  peer.write('\n> ');
  t.deepEqual(await two, ['']);
});

test('Pipeline closes the connection after a reply to nothing', async (t) => {
  const { pipeline, peer } = await pair(t);
  peer.write('surprise\n> ');
  t.like(await pipeline.closed, { code: 'RUNTIME_CLOSED', message: 'HAProxy sent a reply to nothing' });
});

test('Pipeline rejects a batch if the connection breaks in the middle of a reply', async (t) => {
  const { pipeline, peer } = await pair(t);
  const broken = t.throwsAsync(pipeline.send(['one', 'two'], 'urgent'), { code: 'RUNTIME_CLOSED' });
  peer.end('\n> half');
  await broken;
});

test('askOnce() rejects with RUNTIME_TIMEOUT or RUNTIME_CONNECT', async (t) => {
  const { path, peer } = await pair(t);
  await t.throwsAsync(askOnce(path, 'show info', { timeoutMs: 30 }), { code: 'RUNTIME_TIMEOUT' });
  await t.throwsAsync(askOnce(`${path}.not`, 'show info'), { code: 'RUNTIME_CONNECT', message: /\.not"$/ });
  peer.destroy();
});

interface Pair {
  readonly path: string;
  readonly pipeline: Pipeline;
  /** HAProxy's end. */
  readonly peer: Socket;
  /** The lines that have arrived, when there are at least `count`. */
  readonly received: (count: number) => Promise<readonly string[]>;
  readonly stop: () => void;
}

async function pair(t: ExecutionContext, timeoutMs = 5_000): Promise<Pair> {
  const directory = await mkdtemp(join(tmpdir(), 'headgate-pipeline-'));
  const path = join(directory, 'socket');
  const server = createServer().listen(path);
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  const pipeline = await Pipeline.connect(path, '> ', timeoutMs);
  const [peer] = (await accepted) as [Socket];
  peer.on('error', () => undefined);
  let text = '';
  peer.on('data', (chunk) => {
    text += chunk;
    peer.emit('more');
  });
  const received = async (count: number): Promise<readonly string[]> => {
    while (text.split('\n').length <= count) await once(peer, 'more');
    return text.split('\n').slice(0, -1);
  };
  const stop = (): void => {
    pipeline.close();
    peer.destroy();
    server.close();
  };
  t.teardown(async () => {
    stop();
    await rm(directory, { recursive: true, force: true });
  });
  return { path, pipeline, peer, received, stop };
}
