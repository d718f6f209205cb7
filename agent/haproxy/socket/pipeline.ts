// One connection to HAProxy's command line in prompt mode: sends lines without waiting for replies, and cuts the stream
// of replies at the prompt. Lines of the urgent lane go before lines of the bulk lane. Owns the socket and its timeout.

import { connect, type Socket } from 'node:net';
import { HeadgateError } from '../../base/errors.ts';
import { ReadFirstTimeout } from '../../base/read-first-timeout.ts';

/** Order is kept within a lane only. */
export type Lane = 'urgent' | 'bulk';

/** Bytes that were sent and have no reply yet. More than HAProxy's buffer (16 KB), so that HAProxy never idles. */
const MAX_BYTES_UNDER_WAY = 64 * 1024;
/** Bulk commands under way, behind which an urgent command has to wait. */
const MAX_BULK_UNDER_WAY = 64;
/** Characters; `show stat` of 42,000 servers has 9.5 million. */
const MAX_REPLY_LENGTH = 128 * 1024 * 1024;

interface Batch {
  readonly lines: readonly string[];
  readonly lane: Lane;
  sent: number;
  readonly texts: string[];
  readonly resolve: (texts: readonly string[]) => void;
  readonly reject: (error: HeadgateError) => void;
}

export class Pipeline {
  /** Resolves once, never rejects: undefined after close(), otherwise why the connection ended. */
  readonly closed: Promise<HeadgateError | undefined>;

  readonly #socket: Socket;
  readonly #timeoutMs: number;
  readonly #timeout: ReadFirstTimeout;
  readonly #waiting: { readonly [lane in Lane]: Batch[] } = { urgent: [], bulk: [] };
  /** The batch of each line that was sent and has no reply yet, in order. */
  readonly #due: Batch[] = [];
  #dueBytes = 0;
  #dueBulk = 0;
  readonly #replies: Replies;
  #end: ((error: HeadgateError | undefined) => void) | undefined;

  /**
   * `prompt`: what HAProxy writes at the beginning of a line when it is ready for the next, `> ` or, through the master,
   * `PID> `. The connection is closed if a reply is due and HAProxy sends nothing for `timeoutMs`.
   * Errors: RUNTIME_CONNECT.
   */
  static connect(socketPath: string, prompt: string, timeoutMs: number): Promise<Pipeline> {
    return new Promise((resolve, reject) => {
      const socket = connect(socketPath).setEncoding('utf8');
      socket.once('connect', () => resolve(new Pipeline(socket, prompt, timeoutMs)));
      socket.once('error', (cause) =>
        reject(new HeadgateError('RUNTIME_CONNECT', `Cannot connect to "${socketPath}"`, { cause })),
      );
    });
  }

  private constructor(socket: Socket, prompt: string, timeoutMs: number) {
    this.#socket = socket;
    this.#timeoutMs = timeoutMs;
    this.#timeout = new ReadFirstTimeout(() => {
      const message = `HAProxy does not answer within ${timeoutMs} ms`;
      this.#fail(new HeadgateError('RUNTIME_TIMEOUT', message, { retry: 'now' }));
    });
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
   * Rejects with RUNTIME_CLOSED or RUNTIME_TIMEOUT; HAProxy may have carried out some of the lines.
   */
  send(lines: readonly string[], lane: Lane): Promise<readonly string[]> {
    if (lines.length === 0) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      if (this.#end === undefined) return reject(closedError('The connection to HAProxy is closed'));
      this.#waiting[lane].push({ lines, lane, sent: 0, texts: [], resolve, reject });
      this.#write();
    });
  }

  get isClosed(): boolean {
    return this.#end === undefined;
  }

  close(): void {
    this.#fail(undefined);
  }

  /** Writes as many lines as may be under way, urgent lines first. */
  #write(): void {
    let text = '';
    for (let batch = this.#next(); batch !== undefined; batch = this.#next()) {
      const line = `${batch.lines[batch.sent]}\n`;
      if (this.#dueBytes > 0 && this.#dueBytes + line.length > MAX_BYTES_UNDER_WAY) break;
      text += line;
      batch.sent++;
      if (batch.sent === batch.lines.length) this.#waiting[batch.lane].shift();
      this.#due.push(batch);
      this.#dueBytes += line.length;
      if (batch.lane === 'bulk') this.#dueBulk++;
    }
    if (text === '') return;
    this.#socket.write(text, 'latin1');
    if (!this.#timeout.isWaiting) this.#timeout.wait(this.#timeoutMs);
  }

  #next(): Batch | undefined {
    const mayBeBulk = this.#dueBulk < MAX_BULK_UNDER_WAY;
    return this.#waiting.urgent[0] ?? (mayBeBulk ? this.#waiting.bulk[0] : undefined);
  }

  #receive(chunk: string): void {
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
    if (this.#replies.pendingLength > MAX_REPLY_LENGTH) {
      this.#fail(closedError('HAProxy sent a reply without end'));
      return;
    }
    if (this.#due.length > 0) this.#timeout.wait(this.#timeoutMs);
    else this.#timeout.end();
    this.#write();
  }

  #fail(error: HeadgateError | undefined): void {
    if (this.#end === undefined) return;
    const end = this.#end;
    this.#end = undefined;
    this.#timeout.end();
    this.#socket.destroy();
    const batches = new Set([...this.#due, ...this.#waiting.urgent, ...this.#waiting.bulk]);
    this.#due.length = this.#waiting.urgent.length = this.#waiting.bulk.length = 0;
    for (const batch of batches) batch.reject(error ?? closedError('The connection to HAProxy is closed'));
    end(error);
  }
}

/**
 * Cuts a stream into replies. The delimiter is the prompt at the beginning of a line, with which no line of a reply
 * begins. Takes time proportional to the stream.
 */
class Replies {
  readonly #delimiter: string;
  /** The begin of the next reply; a delimiter can begin in `#tail` only. */
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
