// Opens a stream of the API server that cannot hang: silence ends it, and so does whoever has a reason to.
// What is no success is an error that says what the API server said.

import { HeadgateError } from '../../base/errors.ts';
import { isMapping } from '../../base/validate.ts';
import { retryAfter } from './api-answer.ts';
import type { ApiRequest, ApiStream, ApiStreams } from './kubernetes-api.ts';

export interface StreamGuard<Reason extends string> {
  /** To be called for each chunk. */
  readonly heard: () => void;
  /** Ends the stream: whoever reads it gets Stopped. */
  readonly stop: (reason: Reason) => void;
}

export interface GuardOptions {
  /** Ends the request from outside. */
  readonly give: AbortController;
  /** Milliseconds without a chunk after which the connection counts as dead. */
  readonly silence: number;
  /** `Cannot list services`, for messages. */
  readonly doing: string;
}

/**
 * `use` gets answers with status 200 and 410. Errors: Refusal for any other status, Stopped after silence (reason
 * `silence`) and `stop()`, API_UNREACHABLE, API_CREDENTIALS.
 */
export async function openGuarded<R, Reason extends string>(
  api: ApiStreams,
  request: ApiRequest,
  { give, silence, doing }: GuardOptions,
  use: (stream: ApiStream, guard: StreamGuard<Reason | 'silence'>) => Promise<R>,
): Promise<R> {
  let stopped: Stopped | undefined;
  const stop = (reason: Reason | 'silence') => {
    stopped ??= new Stopped(`${doing}: the answer stopped`, reason);
    give.abort();
  };
  let silent: NodeJS.Timeout | undefined;
  try {
    const stream = await api.open({ ...request, signal: give.signal });
    if (stream.status !== 200 && stream.status !== 410) throw await refusalOf(stream, doing);
    silent = setTimeout(stop, silence, 'silence');
    const result = await use(stream, { heard: () => silent?.refresh(), stop });
    if (stream.status === 410) give.abort();
    return result;
  } catch (error) {
    throw stopped ?? error;
  } finally {
    clearTimeout(silent);
  }
}

/** We ended it ourselves. */
export class Stopped extends HeadgateError {
  readonly reason: string;

  constructor(message: string, reason: string) {
    super('API_UNREACHABLE', message);
    this.reason = reason;
  }
}

/** The API server answered, but not with what we asked for. */
export class Refusal extends HeadgateError {
  readonly status: number;
  /** Milliseconds. */
  readonly retryAfter: number;

  constructor(message: string, status: number, retryAfter: number) {
    super('API_REFUSED', message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** Bytes of an answer that are read for its message. */
const LONGEST_MESSAGE = 16 * 1024;

async function refusalOf({ status, headers, chunks }: ApiStream, doing: string): Promise<Refusal> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    parts.push(chunk);
    length += chunk.length;
    if (length > LONGEST_MESSAGE) break;
  }
  const message = messageIn(Buffer.concat(parts).toString('utf8'));
  return new Refusal(
    `${doing}: ${status}${message === '' ? '' : ` ${message}`}`,
    status,
    retryAfter(headers['retry-after']),
  );
}

/** Of a Status. */
function messageIn(text: string): string {
  try {
    const status: unknown = JSON.parse(text);
    const message = isMapping(status) ? status.message : undefined;
    return typeof message === 'string' ? message.slice(0, 300) : '';
  } catch {
    return '';
  }
}
