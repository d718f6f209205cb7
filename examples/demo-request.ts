// Sends one HTTP request. Used by the load and by the demonstration itself.

import { type Agent, request } from 'node:http';

export interface Answer {
  readonly member: string;
  readonly status: number;
  /** Whether the request was sent again, because a kept connection ended before the answer. */
  readonly resent: boolean;
}

const TIMEOUT_MS = 10_000;

/**
 * `agent: false` opens a new connection. The server may close a kept connection just when the client sends; the request is
 * then sent once more, as clients do (RFC 9110, section 9.2.2). `onBegun` is called when the answer begins.
 */
export async function get(url: string, agent: Agent | false, onBegun?: () => void): Promise<Answer> {
  try {
    return await once(url, agent, onBegun);
  } catch (error) {
    if (!(error instanceof KeptConnectionEnded)) throw error;
    return { ...(await once(url, false)), resent: true };
  }
}

class KeptConnectionEnded extends Error {}

function once(url: string, agent: Agent | false, onBegun?: () => void): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { agent, timeout: TIMEOUT_MS }, (response) => {
      onBegun?.();
      const { statusCode: status = 0, headers } = response;
      response.resume();
      response.once('end', () => resolve({ member: String(headers['x-member']), status, resent: false }));
      response.once('error', reject);
    });
    outgoing.once('timeout', () => outgoing.destroy(new Error(`No answer within ${TIMEOUT_MS} ms`)));
    outgoing.once('error', (error: NodeJS.ErrnoException) => {
      const isEnded = error.code === 'ECONNRESET' || error.code === 'EPIPE';
      reject(outgoing.reusedSocket && isEnded ? new KeptConnectionEnded(error.message) : error);
    });
    outgoing.end();
  });
}
