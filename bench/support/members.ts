// Starts and stops members, each as its own process, so that a benchmark can kill one as a pod is killed.

import { type OwnHaproxy, responder, startHaproxy } from './haproxy.ts';
import type { MemberSpec } from './objects.ts';
import type { Scratch } from './scratch.ts';

export class Members {
  readonly #scratch: Scratch;
  readonly #haproxy: string;
  readonly #running = new Map<string, OwnHaproxy>();
  #started = 0;

  constructor(scratch: Scratch, haproxy: string) {
    this.#scratch = scratch;
    this.#haproxy = haproxy;
  }

  /** Resolves when the member answers. */
  async start({ address, port }: MemberSpec): Promise<void> {
    const { body, globals } = responder(`${address}:${port}`);
    const name = `member-${++this.#started}`;
    this.#running.set(address, await startHaproxy(this.#scratch, name, this.#haproxy, body, { globals }));
  }

  /** A graceful stop: the member takes no more connections and finishes those it has. */
  end({ address }: MemberSpec): void {
    this.#signal(address, 'SIGUSR1');
  }

  kill({ address }: MemberSpec): void {
    this.#signal(address, 'SIGKILL');
  }

  #signal(address: string, signal: NodeJS.Signals): void {
    this.#running.get(address)?.child.kill(signal);
    this.#running.delete(address);
  }
}
