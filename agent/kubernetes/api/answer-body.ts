// The answer of the API server as it comes in: in chunks, in lines, or whole.

import type { IncomingMessage } from 'node:http';
import { HeadgateError } from '../../base/errors.ts';
import { Lines } from '../../base/lines.ts';
import type { ApiResponse, ApiStream } from './kubernetes-api.ts';

/** Bytes. */
const LARGEST = 64 * 1024 * 1024;

export function streamOf(answer: IncomingMessage): ApiStream {
  const headers = Object.entries(answer.headers).map(([name, value]) => [name, String(value)]);
  return { status: answer.statusCode ?? 0, headers: Object.fromEntries(headers), chunks: chunksOf(answer) };
}

async function* chunksOf(answer: IncomingMessage): AsyncGenerator<Uint8Array, void, void> {
  try {
    yield* answer as AsyncIterable<Uint8Array>;
  } catch (cause) {
    throw new HeadgateError('API_UNREACHABLE', 'The answer of the API server broke off', {
      retry: 'later',
      cause,
    });
  }
}

export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, void> {
  const lines = new Lines();
  for await (const chunk of chunks) yield* lines.push(chunk);
  const rest = lines.rest();
  if (rest !== '') yield rest;
}

export async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    parts.push(chunk);
    length += chunk.length;
    if (length > LARGEST) {
      throw new HeadgateError('API_UNREACHABLE', `The API server sent more than ${LARGEST} bytes`);
    }
  }
  return Buffer.concat(parts).toString('utf8');
}

export function bodyOf(text: string, headers: ApiResponse['headers']): unknown {
  if (!headers['content-type']?.startsWith('application/json')) return text;
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new HeadgateError('API_UNREACHABLE', 'The API server sent JSON that is none', { cause });
  }
}
