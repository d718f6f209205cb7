// A process that scrapes as Prometheus does. It counts the bytes of an answer and keeps only the end of it.

import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { answer, over } from './parent.ts';

export interface ScrapeOrder {
  readonly url: string;
  readonly gzip: boolean;
}

export interface ScrapeResult {
  readonly ms: number;
  /** As sent, possibly compressed. */
  readonly bytes: number;
  /** Age of the statistics in seconds; NaN with gzip. */
  readonly age: number;
}

/** Repeats a request that costs the agent almost nothing. */
export interface ProbeOrder {
  /** The agent's URL of /metrics. */
  readonly probe: string;
  readonly seconds: number;
}

export interface ProbeResult {
  /** Milliseconds of the slowest request. */
  readonly slowest: number;
}

/** The end of an answer, with the age of the statistics. */
const END_BYTES = 4_096;
/** All answers are read into one buffer, so that this process leaves the processors to the agent. */
const memory = Buffer.allocUnsafeSlow(256 * 1024);

/** Uses HTTP/1.0, so that the answer has no chunks and ends with the connection. */
function fetched(url: string, gzip: boolean): Promise<{ readonly bytes: number; readonly end: string }> {
  const { hostname, port, pathname } = new URL(url);
  const { promise, resolve, reject } = Promise.withResolvers<{ bytes: number; end: string }>();
  let bytes = 0;
  let end = '';
  let isGood = false;
  const callback = (length: number): boolean => {
    if (bytes === 0) isGood = /^HTTP\/1\.[01] 200 /.test(memory.toString('latin1', 0, Math.min(length, 13)));
    bytes += length;
    end = `${end}${memory.toString('latin1', Math.max(0, length - END_BYTES), length)}`.slice(-END_BYTES);
    return true;
  };
  const socket = connect({ host: hostname, port: Number(port), onread: { buffer: memory, callback } });
  socket.once('end', () =>
    isGood ? resolve({ bytes, end }) : reject(new Error(`${url} does not answer with 200`)),
  );
  socket.once('error', reject);
  socket.write(
    `GET ${pathname} HTTP/1.0\r\nhost: ${hostname}:${port}\r\n${gzip ? 'accept-encoding: gzip\r\n' : ''}\r\n`,
  );
  return promise;
}

process.on('message', async (order: ScrapeOrder | ProbeOrder) => {
  const result = 'probe' in order ? await probed(order) : await scraped(order);
  answer(result);
});
await over;
process.exit();

async function scraped({ url, gzip }: ScrapeOrder): Promise<ScrapeResult> {
  const began = performance.now();
  const { bytes, end } = await fetched(url, gzip);
  const ms = performance.now() - began;
  return { ms, bytes, age: Number(/^headgate_haproxy_statistics_age_seconds (\S+)$/m.exec(end)?.[1]) };
}

async function probed({ probe, seconds }: ProbeOrder): Promise<ProbeResult> {
  const url = probe.replace('/metrics', '/healthz');
  let slowest = 0;
  for (const until = performance.now() + 1_000 * seconds; performance.now() < until; await delay(1)) {
    const began = performance.now();
    await fetched(url, false);
    slowest = Math.max(slowest, performance.now() - began);
  }
  return { slowest };
}
