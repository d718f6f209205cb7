// Starts the client of moving-vip-client.ts on the host `client` of a test's network.

import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext } from 'ava';
import { Deadline } from '../basics/deadline.ts';
import type { TestNetwork } from '../host/namespaces.ts';
import type { MovingVipResult } from './moving-vip-client.ts';

const PROGRAM = fileURLToPath(new URL('moving-vip-client.ts', import.meta.url));

/** Long enough for a very busy machine. */
const WAIT_TIMEOUT_MS = 60_000;

export interface MovingVipClient {
  /** Its last result, a moment old. */
  readonly soFar: () => MovingVipResult;
  /** Waits until it has had so many answers from now on, on both kinds, or a failure, which the test judges. */
  readonly more: (connections: number, answers: number) => Promise<void>;
  /** Waits until its kept connection has ended; gives how. */
  readonly ended: () => Promise<string>;
  /** Ends it. */
  readonly result: () => Promise<MovingVipResult>;
}

/** Resolves when the kept connection to the first address has had an answer; with `kept` it opens no others. */
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
    for (const deadline = new Deadline(WAIT_TIMEOUT_MS, 30); !holds(); await deadline.pause())
      if (deadline.isOver)
        throw new Error(`Not within ${WAIT_TIMEOUT_MS} ms: ${what}: ${JSON.stringify(last)}`);
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

/** The first output of a process. */
export async function said({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error('Its output is not read');
  const [chunk] = (await once(stdout, 'data')) as [Buffer];
  return chunk.toString();
}
