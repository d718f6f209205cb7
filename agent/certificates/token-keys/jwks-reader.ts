// Reads a JWKS from a URL. The only file that imports jose, once a URL is read. A redirect is an error: it could lead anywhere.

import { MAX_JWKS_BYTES } from './token-keys.ts';

const TIMEOUT_MS = 5_000;

export interface ReadJwks {
  readonly text: string;
  /** Seconds for which it may be kept, by `Cache-Control` (RFC 9111); undefined if that does not say. */
  readonly maxAge: number | undefined;
}

/** Rejects with whatever keeps it from being read. */
export async function readJwks(url: string, fetchFrom: typeof fetch = fetch): Promise<ReadJwks> {
  const { createRemoteJWKSet, customFetch } = await import('jose');
  let maxAge: number | undefined;
  const set = createRemoteJWKSet(new URL(url), {
    timeoutDuration: TIMEOUT_MS,
    [customFetch]: async (from: string, options: RequestInit) => {
      const response = await fetchFrom(from, options);
      maxAge = maxAgeOf(response.headers.get('cache-control') ?? '');
      return bounded(response);
    },
  });
  await set.reload();
  return { text: JSON.stringify(set.jwks()), maxAge };
}

function maxAgeOf(control: string): number | undefined {
  if (/(?:^|[\s,])no-(?:cache|store)(?:$|[\s,=])/i.test(control)) return 0;
  const [, seconds] = /(?:^|[\s,])max-age="?(\d{1,9})/i.exec(control) ?? [];
  return seconds === undefined ? undefined : Number(seconds);
}

async function bounded(response: Response): Promise<Response> {
  const { status } = response;
  if (status !== 200) {
    await response.body?.cancel();
    const isRedirect = status >= 300 && status < 400;
    throw new Error(
      `it answers with status ${status}${isRedirect ? ', and a redirect is not followed' : ''}`,
    );
  }
  const parts: Uint8Array[] = [];
  let bytes = 0;
  // A body of unknown length could fill the memory.
  for await (const part of response.body ?? []) {
    bytes += part.byteLength;
    if (bytes > MAX_JWKS_BYTES) throw new Error(`it has more than ${MAX_JWKS_BYTES} bytes`);
    parts.push(part);
  }
  const text = Buffer.concat(parts).toString();
  // The message of a parser would have a part of the answer.
  if (!isJson(text)) throw new Error('its answer is not JSON');
  return new Response(text);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
