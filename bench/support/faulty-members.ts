// Members by HTTP in this process that can be broken on purpose, for requests and probes alike, and a client that sends one
// request after the other.

import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import type { MemberSpec } from './objects.ts';

export const FAULTS = ['answers 500', 'hangs', 'resets'] as const;
export type Fault = (typeof FAULTS)[number];

export interface FaultyMember {
  fault: Fault | undefined;
  /** Requests, without probes, which have the path `/`. */
  requests: number;
  readonly server: Server;
}

export async function startFaultyMember({ address, port }: MemberSpec): Promise<FaultyMember> {
  const member: FaultyMember = {
    fault: undefined,
    requests: 0,
    server: createServer((incoming, response) => {
      if (incoming.url !== '/') member.requests++;
      if (member.fault === 'hangs') return;
      if (member.fault === 'resets') incoming.socket.resetAndDestroy();
      else {
        response.statusCode = member.fault === undefined ? 200 : 500;
        response.end(address);
      }
    }).listen(port, address),
  };
  await once(member.server, 'listening');
  return member;
}

/** True if the answer has status 200; on a new connection. */
export function succeeds(host: string, port: number, path: string): Promise<boolean> {
  return new Promise((resolve) => {
    request({ host, port, path, agent: false }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode === 200));
      response.once('error', () => resolve(false));
    })
      .once('error', () => resolve(false))
      .end();
  });
}
