// Members for tests with real traffic: small HTTP servers on loopback addresses that answer with their own name.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { MEMBER_PORT } from '../values/service-objects.ts';

export interface TestMember {
  readonly address: string;
  /** The number of accepted connections so far. */
  readonly accepted: () => number;
  /** The number of open connections. */
  readonly open: () => number;
  /** Acts like a killed process: connections break, new ones are refused. May be called twice. */
  readonly kill: () => Promise<void>;
}

/** Answers every request with its address; idle connections stay open. */
export async function startMember(address: string, port: number): Promise<TestMember> {
  const server = createServer({ keepAliveTimeout: 0 }, (_, response) => {
    response.end(address);
  });
  let accepted = 0;
  let open = 0;
  server.on('connection', (socket) => {
    accepted++;
    open++;
    socket.once('close', () => {
      open--;
    });
  });
  server.listen(port, address);
  await once(server, 'listening');
  return { address, accepted: () => accepted, open: () => open, kill: () => killed(server) };
}

/**
 * A listening process that is stopped and whose kernel queue is full, so that further connections get no answer, as from a
 * host without power. Ends with the test.
 */
export async function startHungMember(t: ExecutionContext<unknown>, address: string): Promise<void> {
  const listen = `require('node:net').createServer().listen({ host: '${address}', port: ${MEMBER_PORT}, backlog: 1 }, () => console.log())`;
  const child = spawn(process.execPath, ['-e', listen], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.teardown(() => {
    child.kill('SIGKILL');
  });
  await once(child.stdout, 'data');
  child.kill('SIGSTOP');
  for (let isFull = false; !isFull; ) {
    const filler = connect(MEMBER_PORT, address);
    filler.on('error', () => undefined);
    t.teardown(() => {
      filler.destroy();
    });
    isFull = await Promise.race([once(filler, 'connect').then(() => false), delay(300, true)]);
  }
}

/** Starts members at address 11 and the next ones; they end with the test. */
export async function startMembers(
  t: ExecutionContext<unknown>,
  host: { address(last: number): string },
  count = 1,
): Promise<readonly TestMember[]> {
  const members = await Promise.all(
    Array.from({ length: count }, (_, at) => startMember(host.address(11 + at), MEMBER_PORT)),
  );
  t.teardown(async () => {
    await Promise.all(members.map((member) => member.kill()));
  });
  return members;
}

async function killed(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}
