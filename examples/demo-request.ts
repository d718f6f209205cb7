// One HTTP request as clients make them. Used by the load and by the demonstration itself.

import { type Agent, request } from 'node:http';

export interface Answer {
  readonly member: string;
  readonly status: number;
  /** A kept connection ended before a byte of the answer, so the request went out once more on a new one. */
  readonly resent: boolean;
}

/** Milliseconds after which a request has failed. */
const DEADLINE = 10_000;

/**
 * `agent: false` makes a new connection. On a kept one the server may close just as the client sends; clients then
 * send again (RFC 9110, 9.2.2), and so does this one: once. `onBegun` is called when an answer begins.
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
    const outgoing = request(url, { agent, timeout: DEADLINE }, (response) => {
      onBegun?.();
      const { statusCode: status = 0, headers } = response;
      response.resume();
      response.once('end', () => resolve({ member: String(headers['x-member']), status, resent: false }));
      response.once('error', reject);
    });
    outgoing.once('timeout', () => outgoing.destroy(new Error(`No answer within ${DEADLINE} ms`)));
    outgoing.once('error', (error: NodeJS.ErrnoException) => {
      const isEnded = error.code === 'ECONNRESET' || error.code === 'EPIPE';
      reject(outgoing.reusedSocket && isEnded ? new KeptConnectionEnded(error.message) : error);
    });
    outgoing.end();
  });
}
