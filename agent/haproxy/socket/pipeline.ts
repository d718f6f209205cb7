// One connection to HAProxy's command line in prompt mode: lines go out without waiting for replies, replies come
// back in order and are told apart by the prompt. Two lanes: what is urgent goes out before what is bulk.
// Owns the socket and one timer.

import type { Socket } from 'node:net';
import { HeadgateError } from '../../base/errors.ts';

/** Order is kept within a lane only. */
export type Lane = 'urgent' | 'bulk';

/** Bytes sent whose replies are due. Above what HAProxy's buffer takes (16 KB), so that it never waits for us. */
const MOST_BYTES = 64 * 1024;
/** Commands of the bulk lane under way: what an urgent command may have to wait for, some 2 ms of HAProxy's time. */
const MOST_BULK = 64;
/** Characters of one reply; `show stat` of 42,000 servers has 9.5 million. */
const LONGEST_REPLY = 128 * 1024 * 1024;

interface Batch {
  readonly lines: readonly string[];
  readonly lane: Lane;
  sent: number;
  readonly texts: string[];
  readonly resolve: (texts: readonly string[]) => void;
  readonly reject: (error: HeadgateError) => void;
}

export class Pipeline {
  /** Settles once, never rejects: undefined after close(), otherwise why the connection ended. */
  readonly closed: Promise<HeadgateError | undefined>;

  readonly #socket: Socket;
  readonly #timeoutMs: number;
  readonly #waiting: { readonly [lane in Lane]: Batch[] } = { urgent: [], bulk: [] };
  /** The batch of each line that was sent and whose reply is due, in order. */
  readonly #due: Batch[] = [];
  #dueBytes = 0;
  #dueBulk = 0;
  readonly #replies: Replies;
  #timer: NodeJS.Timeout | undefined;
  /** When a reply was last owed afresh or bytes last came, by performance.now(). */
  #progressAt = 0;
  #end: ((error: HeadgateError | undefined) => void) | undefined;

  /**
   * `socket` gives texts (text-socket.ts). `prompt` is what HAProxy writes at the beginning of a line when it is ready
   * for the next: `> `, or `PID> ` through the master. The connection is given up when a reply is due and nothing comes
   * for `timeoutMs`.
   */
  constructor(socket: Socket, prompt: string, timeoutMs: number) {
    this.#socket = socket;
    this.#timeoutMs = timeoutMs;
    this.#replies = new Replies(`\n${prompt}`);
    this.closed = new Promise((resolve) => {
      this.#end = resolve;
    });
    socket.on('data', (chunk: string) => this.#receive(chunk));
    socket.on('error', (cause) => this.#fail(closedError('HAProxy closed the connection', cause)));
    socket.on('close', () => this.#fail(closedError('HAProxy closed the connection')));
  }

  /**
   * One reply per line, in order, without the prompt. Lines are ASCII without line feeds.
   * Rejects with RUNTIME_CLOSED or RUNTIME_TIMEOUT; what had been done by then is unknown.
   */
  send(lines: readonly string[], lane: Lane): Promise<readonly string[]> {
    if (lines.length === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      if (this.#end === undefined) return reject(closedError('The connection to HAProxy is closed'));
      this.#waiting[lane].push({ lines, lane, sent: 0, texts: [], resolve, reject });
      this.#pump();
    });
  }

  get isClosed(): boolean {
    return this.#end === undefined;
  }

  close(): void {
    this.#fail(undefined);
  }

  /** Writes as much as may be under way, urgent lines first. */
  #pump(): void {
    const wasIdle = this.#due.length === 0;
    let text = '';
    for (let batch = this.#next(); batch !== undefined; batch = this.#next()) {
      const line = `${batch.lines[batch.sent]}\n`;
      if (this.#dueBytes > 0 && this.#dueBytes + line.length > MOST_BYTES) break;
      text += line;
      batch.sent++;
      if (batch.sent === batch.lines.length) this.#waiting[batch.lane].shift();
      this.#due.push(batch);
      this.#dueBytes += line.length;
      if (batch.lane === 'bulk') this.#dueBulk++;
    }
    if (text === '') return;
    this.#socket.write(text, 'latin1');
    if (wasIdle) this.#progressAt = performance.now();
    this.#timer ??= setTimeout(() => this.#watch(), this.#timeoutMs);
  }

  #next(): Batch | undefined {
    return this.#waiting.urgent[0] ?? (this.#dueBulk < MOST_BULK ? this.#waiting.bulk[0] : undefined);
  }

  #receive(chunk: string): void {
    this.#progressAt = performance.now();
    for (const reply of this.#replies.feed(chunk)) {
      const batch = this.#due.shift();
      if (batch === undefined) {
        this.#fail(closedError('HAProxy sent a reply to nothing'));
        return;
      }
      this.#dueBytes -= (batch.lines[batch.texts.length]?.length ?? 0) + 1;
      if (batch.lane === 'bulk') this.#dueBulk--;
      batch.texts.push(reply);
      if (batch.texts.length === batch.lines.length) batch.resolve(batch.texts);
    }
    if (this.#replies.pendingLength > LONGEST_REPLY)
      this.#fail(closedError('HAProxy sent a reply without end'));
    else this.#pump();
  }

  #watch(): void {
    this.#timer = undefined;
    if (this.#due.length === 0) return;
    const left = this.#progressAt + this.#timeoutMs - performance.now();
    if (left > 0) {
      this.#timer = setTimeout(() => this.#watch(), left);
      return;
    }
    // If it was us who were busy, the reply may wait in the socket: read first, judge then.
    const before = this.#progressAt;
    setImmediate(() => {
      if (this.#due.length === 0 || this.#timer !== undefined) return;
      if (this.#progressAt > before) return this.#watch();
      const message = `HAProxy does not answer within ${this.#timeoutMs} ms`;
      this.#fail(new HeadgateError('RUNTIME_TIMEOUT', message, { retry: 'now' }));
    });
  }

  #fail(error: HeadgateError | undefined): void {
    if (this.#end === undefined) return;
    const end = this.#end;
    this.#end = undefined;
    clearTimeout(this.#timer);
    this.#socket.destroy();
    const batches = new Set([...this.#due, ...this.#waiting.urgent, ...this.#waiting.bulk]);
    this.#due.length = this.#waiting.urgent.length = this.#waiting.bulk.length = 0;
    for (const batch of batches) batch.reject(error ?? closedError('The connection to HAProxy is closed'));
    end(error);
  }
}

/**
 * Cuts a stream into replies. The delimiter is the prompt at the beginning of a line; no output of HAProxy has a line
 * that begins with `> `, and within a line it does not count. Takes time proportional to the stream.
 */
class Replies {
  readonly #delimiter: string;
  /** The reply that is coming in; a delimiter may begin in `#tail` only. */
  #parts: string[] = [];
  #tail = '';
  #length = 0;

  constructor(delimiter: string) {
    this.#delimiter = delimiter;
  }

  get pendingLength(): number {
    return this.#length;
  }

  feed(chunk: string): readonly string[] {
    const replies: string[] = [];
    const text = this.#tail + chunk;
    let from = 0;
    for (let at = text.indexOf(this.#delimiter); at !== -1; at = text.indexOf(this.#delimiter, from)) {
      this.#parts.push(text.slice(from, at));
      replies.push(this.#parts.join(''));
      this.#parts = [];
      this.#length = 0;
      from = at + this.#delimiter.length;
    }
    const tailFrom = Math.max(from, text.length - this.#delimiter.length + 1);
    this.#parts.push(text.slice(from, tailFrom));
    this.#length += tailFrom - from;
    this.#tail = text.slice(tailFrom);
    return replies;
  }
}

function closedError(message: string, cause?: unknown): HeadgateError {
  return new HeadgateError('RUNTIME_CLOSED', message, { retry: 'now', cause });
}
