// An answer of the API server: its body, in chunks or whole, and what its status means.

import type { IncomingMessage } from 'node:http';
import { backoffMs } from '../../base/backoff.ts';
import { HeadgateError } from '../../base/errors.ts';
import { quote } from '../../base/quote.ts';
import { isMapping } from '../../base/validate.ts';
import type { ApiResponse, ApiStream } from './kubernetes-api.ts';

const MAX_BODY_BYTES = 64 * 1024 * 1024;
const FIRST_BACKOFF_MS = 800;
const MAX_BACKOFF_MS = 30_000;
/** A longer wait that the API server asks for is cut to this one. */
const MAX_RETRY_AFTER_MS = 120_000;

export function streamOf(answer: IncomingMessage): ApiStream {
  const headers = Object.entries(answer.headers).map(([name, value]) => [name, String(value)]);
  return { status: answer.statusCode ?? 0, headers: Object.fromEntries(headers), chunks: chunksOf(answer) };
}

async function* chunksOf(answer: IncomingMessage): AsyncGenerator<Uint8Array, void, void> {
  try {
    yield* answer as AsyncIterable<Uint8Array>;
  } catch (cause) {
    throw new HeadgateError('API_UNREACHABLE', 'The answer of the API server broke off', { cause });
  }
}

/** The value of JSON, otherwise the text. Errors: API_UNREACHABLE. */
export async function bodyOf({ headers, chunks }: ApiStream): Promise<unknown> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    parts.push(chunk);
    length += chunk.length;
    if (length > MAX_BODY_BYTES)
      throw new HeadgateError('API_UNREACHABLE', `The API server sent more than ${MAX_BODY_BYTES} bytes`);
  }
  const text = Buffer.concat(parts).toString('utf8');
  if (!headers['content-type']?.startsWith('application/json')) return text;
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new HeadgateError('API_UNREACHABLE', 'The API server sent invalid JSON', { cause });
  }
}

/** The body of a good answer. Errors: API_REFUSED. */
export function accept(response: ApiResponse): unknown {
  if (response.status >= 200 && response.status < 300) return response.body;
  throw new HeadgateError('API_REFUSED', refusalText(response));
}

/** `The API server answers 409 Conflict: the object has been modified`, from the Status object of a refusal. */
export function refusalText({ status, body }: ApiResponse): string {
  const { reason, message } = isMapping(body) ? body : {};
  const named = typeof reason === 'string' && reason !== '' ? `${status} ${reason}` : String(status);
  const text = typeof message === 'string' ? message : typeof body === 'string' && body ? quote(body) : '';
  return `The API server answers ${named}${text === '' ? '' : `: ${text}`}`;
}

/** Milliseconds that the header Retry-After asks for (RFC 9110, 10.2.3); undefined without a number of seconds. */
export function waitAsked({ headers }: Pick<ApiResponse, 'headers'>): number | undefined {
  const seconds = /^\d{1,9}$/.test(headers['retry-after'] ?? '') ? Number(headers['retry-after']) : 0;
  return Math.min(MAX_RETRY_AFTER_MS, seconds * 1000) || undefined;
}

/** Milliseconds until the next request after `failures` in a row, as in client-go. `random`: 0 to 1. */
export function apiBackoffMs(failures: number, random: () => number): number {
  return backoffMs(failures, { firstMs: FIRST_BACKOFF_MS, mostMs: MAX_BACKOFF_MS, random });
}
