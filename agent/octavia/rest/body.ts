// Reads the body of a request up to a limit, so that no client fills the memory.

import type { IncomingMessage } from 'node:http';

/** The body is longer than allowed; the rest of it is not read. */
export class BodyTooLarge extends Error {
  readonly limit: number;

  constructor(limit: number) {
    super(`The body has more than ${limit} bytes`);
    this.limit = limit;
  }
}

/** Errors: BodyTooLarge; any other if the connection ends before the body. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw new BodyTooLarge(maxBytes);
  const chunks: Buffer[] = [];
  let size = 0;
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const onData = (chunk: Buffer): void => {
    size += chunk.length;
    if (size <= maxBytes) {
      chunks.push(chunk);
      return;
    }
    request.off('data', onData).pause();
    reject(new BodyTooLarge(maxBytes));
  };
  request
    .on('data', onData)
    .once('end', () => resolve(Buffer.concat(chunks)))
    .once('error', reject)
    .once('close', () => reject(new Error('The connection ended before the body')));
  return await promise;
}
