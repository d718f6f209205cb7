// Reads a JWKS from a URL. The only file that imports jose. A redirect is an error: it could lead anywhere.

import { createRemoteJWKSet, customFetch } from 'jose';
import { MAX_JWKS_BYTES } from './token-keys.ts';

const TIMEOUT_MS = 5_000;

/** The text of the JWKS. Rejects with whatever keeps it from being read. */
export async function readJwks(url: string, fetchFrom: typeof fetch = fetch): Promise<string> {
  const set = createRemoteJWKSet(new URL(url), {
    timeoutDuration: TIMEOUT_MS,
    [customFetch]: async (from: string, options: RequestInit) => bounded(await fetchFrom(from, options)),
  });
  await set.reload();
  return JSON.stringify(set.jwks());
}

async function bounded(response: Response): Promise<Response> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  // A body of unknown length could fill the memory.
  for await (const part of response.body ?? []) {
    bytes += part.byteLength;
    if (bytes > MAX_JWKS_BYTES) throw new Error(`it has more than ${MAX_JWKS_BYTES} bytes`);
    parts.push(part);
  }
  const { status } = response;
  return status === 200 ? new Response(Buffer.concat(parts)) : new Response(null, { status: safe(status) });
}

/** Some statuses cannot be made. */
function safe(status: number): number {
  return status >= 400 ? status : 404;
}
