// Starts the client of moving-vip-client.ts on the host `client` of a test's network.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import type { TestNetwork } from '../host/namespaces.ts';
import type { MovingVipResult } from './moving-vip-client.ts';

const PROGRAM = fileURLToPath(new URL('moving-vip-client.ts', import.meta.url));

/** Milliseconds for what comes to pass on a machine that has hardly any time for it. */
const PATIENCE = 60_000;

export interface MovingVipClient {
  /** As it last said: a moment ago. */
  readonly soFar: () => MovingVipResult;
  /** Waits until it has been answered so often since now, on both kinds, or has failed; judging that is for the test. */
  readonly more: (connections: number, answers: number) => Promise<void>;
  /** Waits until the connection that it keeps has ended; how. */
  readonly ended: () => Promise<string>;
  /** Ends it. */
  readonly result: () => Promise<MovingVipResult>;
}

/**
 * It keeps a connection to the first address, which has been answered, and makes others until its result is asked for;
 * `kept`: no others.
 */
export async function startMovingVipClient(
  t: ExecutionContext<unknown>,
  network: TestNetwork,
  port: number,
  addresses: readonly string[],
  kind: 'both' | 'kept' = 'both',
): Promise<MovingVipClient> {
  const child = network.start('client', process.execPath, PROGRAM, String(port), kind, ...addresses);
  t.teardown(() => void child.kill('SIGKILL'));
  if (child.stdout === null) throw new Error('Its output is not read');
  const over = once(child, 'close');
  let last: MovingVipResult = { connections: 0, failures: [], answers: 0, end: '' };
  createInterface(child.stdout).on('line', (line) => {
    last = JSON.parse(line) as MovingVipResult;
  });
  const until = async (what: string, holds: () => boolean): Promise<void> => {
    for (const end = performance.now() + PATIENCE; !holds(); await delay(10))
      if (performance.now() > end)
        throw new Error(`Not within ${PATIENCE} ms: ${what}: ${JSON.stringify(last)}`);
  };
  const client: MovingVipClient = {
    soFar: () => last,
    more: async (connections, answers) => {
      const before = last;
      const isEnough = (): boolean =>
        last.connections >= before.connections + connections && last.answers >= before.answers + answers;
      await until('it is answered', () => isEnough() || last.failures.length > 0 || last.end !== '');
    },
    ended: async () => {
      await until('its connection ends', () => last.end !== '');
      return last.end;
    },
    result: async () => {
      child.kill('SIGTERM');
      await over;
      return last;
    },
  };
  await client.more(kind === 'both' ? 1 : 0, 1);
  return client;
}

/** The first that a process says. */
export async function said({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error('Its output is not read');
  const [chunk] = (await once(stdout, 'data')) as [Buffer];
  return chunk.toString();
}
