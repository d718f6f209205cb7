// Members by HTTP that can be broken on purpose: each answers requests and probes alike.

import { createServer, type RequestListener, request, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';
import type { Place } from './traffic.ts';

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

/** `count` members of 127.0.0.1, until the end of the test. `pem`: the key and certificate of members with TLS. */
export function startFaultyMembers(
  t: Pick<ExecutionContext<unknown>, 'teardown'>,
  count: number,
  pem = '',
): Promise<readonly FaultyMember[]> {
  return Promise.all(Array.from({ length: count }, () => startFaultyMember(t, '127.0.0.1', 0, pem)));
}

/** `port`: 0 for a free one. */
export async function startFaultyMember(
  t: Pick<ExecutionContext<unknown>, 'teardown'>,
  address: string,
  port: number,
  pem = '',
): Promise<FaultyMember> {
  const member: { -readonly [K in keyof FaultyMember]: FaultyMember[K] } = {
    place: '',
    fault: undefined,
    requests: 0,
    probes: 0,
  };
  const answer: RequestListener = (request, response) => {
    if (request.url === '/') member.probes++;
    else member.requests++;
    if (member.fault === 'hangs') return;
    if (member.fault === 'resets') request.socket.resetAndDestroy();
    else {
      response.statusCode = member.fault === undefined ? 200 : 500;
      response.end(member.place);
    }
  };
  const server: Server = pem === '' ? createServer(answer) : createTlsServer({ key: pem, cert: pem }, answer);
  await new Promise<void>((resolve) => server.listen(port, address, resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  member.place = `${address}:${(server.address() as AddressInfo).port}`;
  return member;
}

/** The status of one request on a new connection; 0 without an answer. */
export function statusOf({ address, port }: Place, path: string, host = 'test'): Promise<number> {
  return new Promise((resolve) => {
    request({ host: address, port, path, headers: { host }, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
      response.on('error', () => resolve(0));
    })
      .on('error', () => resolve(0))
      .end();
  });
}
