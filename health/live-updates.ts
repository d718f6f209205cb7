// Sends the content of the status page to the browsers that show it, as server-sent events
// (https://html.spec.whatwg.org/#server-sent-events): at each interval each part that has changed. An event holds a whole
// part, so a slow browser misses nothing if one is left out. Without browsers it does nothing.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { Rounds } from '../agent/base/rounds.ts';

export interface LiveUpdatesOptions {
  /** The content of a page, by its query: one event for each field. */
  readonly look: (query: URLSearchParams) => Promise<object>;
  readonly intervalMs?: number;
}

interface Browser {
  /** The address of its host. */
  readonly source: string;
  readonly query: URLSearchParams;
  readonly response: ServerResponse;
  /** The last text of each event, by the event's name. */
  readonly sent: Map<string, string>;
  /** On performance.now()'s clock. */
  lastSentAt: number;
}

const INTERVAL_MS = 1_000;
/** A further browser takes the place of one of the host that has the most, or is asked to retry. */
const MAX_BROWSERS = 16;
const MAX_QUERY_LENGTH = 2_000;
/** A silent connection gets a comment this often, so that a broken one is noticed. */
const KEEPALIVE_INTERVAL_MS = 15_000;
/** Bytes that may wait for a slow browser, and for how long. */
const MAX_BACKLOG_BYTES = 64 * 1024;
const BACKLOG_TIMEOUT_MS = 30_000;

export class LiveUpdates {
  readonly #look: LiveUpdatesOptions['look'];
  readonly #browsers = new Set<Browser>();
  readonly #rounds: Rounds;

  constructor({ look, intervalMs = INTERVAL_MS }: LiveUpdatesOptions) {
    this.#look = look;
    this.#rounds = new Rounds({
      intervalMs: () => intervalMs,
      work: async () => {
        for (const browser of this.#browsers) await this.#update(browser);
      },
      onFailed: () => undefined,
    });
  }

  get browsers(): number {
    return this.#browsers.size;
  }

  /** Answers the request with events until the browser closes the connection. */
  add(request: IncomingMessage, response: ServerResponse, query: URLSearchParams): void {
    const text = { 'content-type': 'text/plain' };
    if (query.toString().length > MAX_QUERY_LENGTH) {
      response.writeHead(414, text).end(`The query is longer than ${MAX_QUERY_LENGTH} characters\n`);
      return;
    }
    const source = request.socket.remoteAddress ?? '';
    if (this.#browsers.size >= MAX_BROWSERS && !this.#makesRoom(source)) {
      response.writeHead(503, { ...text, 'retry-after': '5' }).end('Too many pages are open\n');
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    response.write('retry: 2000\n\n');
    const browser: Browser = { source, query, response, sent: new Map(), lastSentAt: performance.now() };
    this.#browsers.add(browser);
    response.once('close', () => {
      this.#browsers.delete(browser);
      if (this.#browsers.size === 0) this.#rounds.close();
    });
    this.#rounds.start();
    void this.#rounds.now();
  }

  /** Closes the oldest page of the host that has the most, unless that is `source` itself; false if none is closed. */
  #makesRoom(source: string): boolean {
    const bySource = Map.groupBy(this.#browsers, (browser) => browser.source);
    const most = [...bySource.values()].reduce((a, b) => (b.length > a.length ? b : a));
    if (most.length <= (bySource.get(source)?.length ?? 0) + 1) return false;
    const [oldest] = most;
    if (oldest === undefined) return false;
    this.#browsers.delete(oldest);
    oldest.response.destroy();
    return true;
  }

  close(): void {
    for (const { response } of this.#browsers) response.destroy();
  }

  async #update(browser: Browser): Promise<void> {
    const { response, sent, query } = browser;
    const now = performance.now();
    if (response.writableLength > MAX_BACKLOG_BYTES) {
      if (now - browser.lastSentAt > BACKLOG_TIMEOUT_MS) response.destroy();
      return;
    }
    try {
      for (const [name, part] of Object.entries(await this.#look(query))) {
        const text = JSON.stringify(part ?? null);
        if (sent.get(name) === text) continue;
        sent.set(name, text);
        this.#write(browser, `event: ${name}\ndata: ${text}\n\n`);
      }
      if (performance.now() - browser.lastSentAt >= KEEPALIVE_INTERVAL_MS)
        this.#write(browser, ': keepalive\n\n');
    } catch {
      // The browser reconnects automatically.
      response.destroy();
    }
  }

  #write(browser: Browser, text: string): void {
    if (browser.response.destroyed) return;
    browser.response.write(text);
    browser.lastSentAt = performance.now();
  }
}
