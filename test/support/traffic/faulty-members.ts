// Members by HTTP that can be broken on purpose: each answers requests and probes alike.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';

export const FAULTS = ['answers 500', 'hangs', 'resets'] as const;
export type Fault = (typeof FAULTS)[number];

export interface FaultyMember {
  /** `address:port`. */
  readonly place: string;
  fault: Fault | undefined;
  /** Requests with a path below `/`, well answered or not; probes have the path `/`. */
  requests: number;
  probes: number;
}

/** `count` members of 127.0.0.1, until the end of the test. */
export function startFaultyMembers(
  t: Pick<ExecutionContext<unknown>, 'teardown'>,
  count: number,
): Promise<readonly FaultyMember[]> {
  return Promise.all(Array.from({ length: count }, () => start(t)));
}

async function start(t: Pick<ExecutionContext<unknown>, 'teardown'>): Promise<FaultyMember> {
  const member: { -readonly [K in keyof FaultyMember]: FaultyMember[K] } = {
    place: '',
    fault: undefined,
    requests: 0,
    probes: 0,
  };
  const server: Server = createServer((request, response) => {
    if (request.url === '/') member.probes++;
    else member.requests++;
    if (member.fault === 'hangs') return;
    if (member.fault === 'resets') request.socket.resetAndDestroy();
    else {
      response.statusCode = member.fault === undefined ? 200 : 500;
      response.end(member.place);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  member.place = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return member;
}
