// Starts prober-process.ts in a network and sends it orders.

import { beforeOthers, clientFlags } from '../support/client-start.ts';
import { startModule } from '../support/processes.ts';
import type { Scratch } from '../support/scratch.ts';
import type { ProbeOrder, ProbeResult } from './prober-process.ts';

const ANSWER_TIMEOUT_MS = 20_000;

export class Prober {
  readonly #send: (order: ProbeOrder) => void;
  readonly #waiting = new Map<number, (result: ProbeResult) => void>();
  #id = 0;

  constructor(scratch: Scratch, name: string, within: readonly string[] = []) {
    const module = new URL('prober-process.ts', import.meta.url);
    const { child } = startModule(
      scratch,
      `prober-${name}`,
      module,
      [],
      [...within, ...beforeOthers()],
      clientFlags,
    );
    this.#send = (order) => child.send(order);
    child.on('message', (result: ProbeResult) => this.#waiting.get(result.id)?.(result));
  }

  /**
   * Resolves with the time of the first answer with `body`, by monotonic(). `every` is the milliseconds between two
   * requests. Errors: no such answer within `most` milliseconds.
   */
  async answered(
    address: string,
    port: number,
    body: string,
    { every = 1, most = ANSWER_TIMEOUT_MS } = {},
  ): Promise<number> {
    const id = ++this.#id;
    const result = await new Promise<ProbeResult>((resolve) => {
      this.#waiting.set(id, resolve);
      this.#send({ id, address, port, body, every, most });
    });
    this.#waiting.delete(id);
    if (result.answered !== undefined) return result.answered;
    throw new Error(`${address}:${port} does not answer "${body}" within ${most} ms: ${result.last}`);
  }
}
