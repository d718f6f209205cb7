// What several tests of one file share is taken away after the last of them, in the order that AVA has for one test:
// the newest first.

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
