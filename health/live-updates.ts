// Sends what a page shows to the browsers that look at it, as server-sent events (https://html.spec.whatwg.org/#server-sent-events):
// each part only when it has changed, at most once a second. While nobody looks, nothing is done at all.
// Every event holds a part as a whole: one that a slow browser could not take yet is left out, and nothing is missed.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { PageView } from './page-model.ts';

export interface LiveUpdatesOptions {
  /** Brings what is shown up to date, and gives what a page sees that asks for this; in slices. */
  readonly look: (asked: URLSearchParams) => Promise<PageView>;
  /** Browsers at a time; others are told to come again. */
  readonly most?: number;
  /** Milliseconds between two updates of one browser. */
  readonly every?: number;
}

interface Watcher {
  readonly asked: URLSearchParams;
  readonly response: ServerResponse;
  /** What it was sent last, by the event's name. */
  readonly sent: Map<string, string>;
  /** When it is looked at again, and when it was sent something. */
  due: number;
  heard: number;
}

/** Milliseconds after which a silent connection gets a sign of life, by which a broken one is noticed. */
const SILENCE = 15_000;
/** Bytes that may wait for a slow browser, and milliseconds that they may. */
const BACKLOG = 64 * 1024;
const PATIENCE = 30_000;
/** Characters that a page may ask with. */
const LONGEST_QUESTION = 2_000;

export class LiveUpdates {
  readonly #options: Required<LiveUpdatesOptions>;
  readonly #watchers = new Set<Watcher>();
  #wake: () => void = () => undefined;
  #isRunning = false;

  constructor({ look, most = 16, every = 1_000 }: LiveUpdatesOptions) {
    this.#options = { look, most, every };
  }

  /** Browsers that look. */
  get watchers(): number {
    return this.#watchers.size;
  }

  take(request: IncomingMessage, response: ServerResponse, asked: URLSearchParams): void {
    const text = { 'content-type': 'text/plain' };
    if (asked.toString().length > LONGEST_QUESTION) {
      response.writeHead(414, text).end('That is too long a question\n');
      return;
    }
    if (this.#watchers.size >= this.#options.most) {
      response.writeHead(503, { ...text, 'retry-after': '5' }).end('Too many pages are open\n');
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' });
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    response.write('retry: 2000\n\n');
    const watcher: Watcher = { asked, response, sent: new Map(), due: 0, heard: performance.now() };
    this.#watchers.add(watcher);
    response.once('close', () => {
      this.#watchers.delete(watcher);
      this.#wake();
    });
    if (this.#isRunning) this.#wake();
    else void this.#run();
  }

  close(): void {
    for (const { response } of this.#watchers) response.destroy();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#watchers.size > 0) {
      for (const watcher of this.#watchers) if (watcher.due <= performance.now()) await this.#show(watcher);
      const next = Math.min(...[...this.#watchers].map(({ due }) => due));
      if (next < Infinity) await this.#sleep(next - performance.now());
    }
    this.#isRunning = false;
  }

  async #show(watcher: Watcher): Promise<void> {
    const { response, sent, asked } = watcher;
    const began = performance.now();
    watcher.due = began + this.#options.every;
    if (response.writableLength > BACKLOG) {
      if (began - watcher.heard > PATIENCE) response.destroy();
      return;
    }
    try {
      for (const [name, part] of Object.entries(await this.#options.look(asked))) {
        const text = JSON.stringify(part ?? null);
        if (sent.get(name) === text) continue;
        sent.set(name, text);
        this.#write(watcher, `event: ${name}\ndata: ${text}\n\n`);
      }
      if (performance.now() - watcher.heard >= SILENCE) this.#write(watcher, ': nothing has changed\n\n');
    } catch {
      // The browser comes again by itself.
      response.destroy();
    }
  }

  #write(watcher: Watcher, text: string): void {
    if (watcher.response.destroyed) return;
    watcher.response.write(text);
    watcher.heard = performance.now();
  }

  #sleep(milliseconds: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, Math.max(0, milliseconds));
    timer.unref();
    this.#wake = resolve;
    return promise.finally(() => clearTimeout(timer));
  }
}
