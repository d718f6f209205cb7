// Starts and stops the members of the demonstration. Each is a process with its own loopback address; all have one port.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { end, nextMessage, start } from './demo-processes.ts';

export interface Member {
  /** The name of a pod, such as `web-1`. */
  readonly name: string;
  readonly address: string;
  readonly process: ChildProcess;
}

const program = fileURLToPath(new URL('member.ts', import.meta.url));

/** Starts the members with the numbers `from` to `to`; resolves when all of them listen. */
export function startMembers(from: number, to: number, port: number): Promise<readonly Member[]> {
  const numbers = Array.from({ length: to - from + 1 }, (_, at) => from + at);
  return Promise.all(
    numbers.map(async (number) => {
      const [name, address] = [`web-${number}`, `127.0.0.${number + 1}`];
      const process = start(globalThis.process.execPath, [program, address, String(port), name], {
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      });
      await nextMessage(process, `Member ${name}`);
      return { name, address, process };
    }),
  );
}

/** Ends a member with SIGTERM, as Kubernetes ends a pod; resolves when it has ended. */
export function stopMember({ process }: Member): Promise<void> {
  return end(process, 5_000);
}

/** Resolves when the member has ended; until then the kernel accepts connections for it. */
export async function killMember({ process }: Member): Promise<void> {
  const exited = once(process, 'exit');
  process.kill('SIGKILL');
  await exited;
}

/** Below Linux's range for clients, so that none of the demonstration's own connections takes one of them meanwhile. */
const [FIRST_PORT, LAST_PORT] = [10_000, 16_999];

/** Returns different ports that were free on all addresses a moment ago. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const ports = new Set<number>();
  for (let left = 50 * count; ports.size < count; left--) {
    const port = FIRST_PORT + Math.floor(Math.random() * (LAST_PORT - FIRST_PORT + 1));
    const server = createServer().listen(port, '0.0.0.0');
    try {
      await once(server, 'listening');
    } catch (error) {
      if (left <= 0) throw error;
      continue;
    }
    await once(server.close(), 'close');
    ports.add(port);
  }
  return [...ports];
}
