// A member of the demonstration that is ready and answers 500: how many requests fail before it gets no more, and how soon it
// gets some again after it is well. The members are in this process.

import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { DemoAgent } from './demo-agent.ts';
import { manifestText, writeManifest } from './demo-manifest.ts';

export interface EjectionReport {
  readonly requests: number;
  readonly failed: number;
  /** Milliseconds from the end of the fault to the member's next request. */
  readonly back: number;
}

const MEMBERS = 5;
const REQUESTS = 300;
const PATIENCE_MS = 20_000;

/** `port` of 127.0.0.1 for the Service, `memberPort` of addresses that no other member has. */
export async function showEjection(
  agent: DemoAgent,
  port: number,
  memberPort: number,
): Promise<EjectionReport> {
  let isBroken = false;
  /** Requests of the member that breaks; probes have the path `/`. */
  let used = 0;
  const servers: Server[] = [];
  const addresses = Array.from({ length: MEMBERS }, (_, at) => `127.0.1.${at + 1}`);
  for (const [at, address] of addresses.entries()) {
    const server = createServer((incoming, response) => {
      if (at === 0 && incoming.url !== '/') used++;
      response.statusCode = at === 0 && isBroken ? 500 : 200;
      response.end();
    }).listen(memberPort, address);
    await once(server, 'listening');
    servers.push(server);
  }
  const endpoints = addresses.map((address, at) => ({
    name: `api-${at + 1}`,
    address,
    state: 'ready' as const,
  }));
  const text = manifestText('api', port, memberPort, endpoints, { mode: 'http' });
  await writeManifest(join(agent.manifests, 'api.yaml'), text);
  const end = performance.now() + PATIENCE_MS;
  const isLate = (): boolean => performance.now() > end;
  for (; !(await succeeds(port)); await delay(5))
    if (isLate()) throw new Error('The Service api does not answer');
  isBroken = true;
  let failed = 0;
  for (let sent = 0; sent < REQUESTS; sent++) if (!(await succeeds(port))) failed++;
  isBroken = false;
  const [began, before] = [performance.now(), used];
  while (used === before && !isLate()) await succeeds(port);
  const back = performance.now() - began;
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  return { requests: REQUESTS, failed, back };
}

/** True for status 200, on a new connection. */
function succeeds(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    request({ host: '127.0.0.1', port, path: '/api', agent: false }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode === 200));
    })
      .once('error', () => resolve(false))
      .end();
  });
}
