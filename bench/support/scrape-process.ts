// One scrape after the other, in a process of its own, as Prometheus would: what comes is counted and dropped.

import { connect } from 'node:net';
import { answer, over } from './parent.ts';

export interface ScrapeOrder {
  readonly url: string;
  readonly gzip: boolean;
  /** Whether to ask meanwhile, again and again, for something that costs the agent nothing. */
  readonly lag?: boolean;
}

export interface ScrapeResult {
  readonly ms: number;
  /** As they came. */
  readonly bytes: number;
  /** Milliseconds of the slowest of the small requests, 0 where there was none. */
  readonly lag: number;
}

/** Read into one piece of memory, and thrown away: what takes a scrape has a machine of its own. */
const memory = Buffer.allocUnsafeSlow(256 * 1024);

/** Bytes of the answer. It is asked for as HTTP/1.0 does, so that it is not cut into chunks and ends with the connection. */
function fetched(url: string, gzip: boolean): Promise<number> {
  const { hostname, port, pathname } = new URL(url);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  let bytes = 0;
  let isGood = false;
  const callback = (length: number): boolean => {
    if (bytes === 0) isGood = /^HTTP\/1\.[01] 200 /.test(memory.toString('latin1', 0, Math.min(length, 13)));
    bytes += length;
    return true;
  };
  const socket = connect({ host: hostname, port: Number(port), onread: { buffer: memory, callback } });
  socket.once('end', () => (isGood ? resolve(bytes) : reject(new Error(`${url} does not answer with 200`))));
  socket.once('error', reject);
  socket.write(
    `GET ${pathname} HTTP/1.0\r\nhost: ${hostname}:${port}\r\n${gzip ? 'accept-encoding: gzip\r\n' : ''}\r\n`,
  );
  return promise;
}

process.on('message', async ({ url, gzip, lag = false }: ScrapeOrder) => {
  let isOver = false;
  let slowest = 0;
  const probing = (async (): Promise<void> => {
    while (!isOver && lag) {
      const began = performance.now();
      await fetched(url.replace('/metrics', '/healthz'), false);
      slowest = Math.max(slowest, performance.now() - began);
    }
  })();
  const began = performance.now();
  const bytes = await fetched(url, gzip);
  const ms = performance.now() - began;
  isOver = true;
  await probing;
  const result: ScrapeResult = { ms, bytes, lag: slowest };
  answer(result);
});
await over;
process.exit();
