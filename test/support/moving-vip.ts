// Starts the client of moving-vip-client.ts on the host `client` of a test's network.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import type { MovingVipResult } from './moving-vip-client.ts';
import type { TestNetwork } from './namespaces.ts';

const PROGRAM = fileURLToPath(new URL('moving-vip-client.ts', import.meta.url));

/** It makes connections until its result is asked for, and keeps one to the first address. */
export async function startMovingVipClient(
  t: ExecutionContext<unknown>,
  network: TestNetwork,
  port: number,
  addresses: readonly string[],
): Promise<{ readonly result: () => Promise<MovingVipResult> }> {
  const child = network.start('client', process.execPath, PROGRAM, String(port), ...addresses);
  t.teardown(() => void child.kill('SIGKILL'));
  await said(child);
  return {
    result: async () => {
      const answer = said(child);
      child.kill('SIGTERM');
      return JSON.parse(await answer) as MovingVipResult;
    },
  };
}

/** The next that a process says. */
export async function said({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error('Its output is not read');
  const [chunk] = (await once(stdout, 'data')) as [Buffer];
  return chunk.toString();
}
