// Removes objects that several tests of one file share after the last test, the newest first, as AVA does for one test.

import type { ExecutionContext } from 'ava';

type Step = () => unknown;

export class Teardowns implements Pick<ExecutionContext<unknown>, 'teardown'> {
  readonly #steps: Step[] = [];

  teardown(step: Step): void {
    this.#steps.unshift(step);
  }

  async run(): Promise<void> {
    for (const step of this.#steps.splice(0)) await step();
  }
}
