// One scrape after the other, in a process of its own, as Prometheus would: what comes is counted and dropped.

import { get } from 'node:http';
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

function fetched(url: string, gzip: boolean): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = gzip ? { 'accept-encoding': 'gzip' } : {};
    get(url, { agent: false, headers }, (response) => {
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.on('end', () => resolve(bytes));
      response.on('error', reject);
    }).on('error', reject);
  });
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
