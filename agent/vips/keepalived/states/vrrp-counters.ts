// What is counted of each VRRP instance, over every keepalived and every agent: kept in a file, which an agent that
// starts reads first, so that no count goes back. What cannot be read counts as nothing.

import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { listOf, number, object, oneOf, string, wholeNumber } from '../../../base/validate.ts';
import { writeAtomically } from '../../../host/atomic-file.ts';
import { makeFolder } from '../../../host/make-directory.ts';
import { VRRP_STATES, type VrrpStateName } from '../../vrrp.ts';

export interface Adverts {
  readonly sent: number;
  readonly received: number;
}

export interface InstanceCounts {
  readonly name: string;
  /** The last state that it was in. */
  readonly state: VrrpStateName;
  readonly adverts: Adverts;
  /** What the keepalived that ran had counted itself when it last told. */
  readonly counted: Adverts;
  /** Transitions by the state that was reached. */
  readonly reached: Readonly<Record<VrrpStateName, number>>;
}

const adverts = object({ sent: number(), received: number() });
const counts = object({
  version: wholeNumber(1, 1),
  instances: listOf(
    object({
      name: string(),
      state: oneOf(...VRRP_STATES),
      adverts,
      counted: adverts,
      reached: object({ master: number(), backup: number(), fault: number(), unknown: number() }),
    }),
  ),
});

export class VrrpCounters {
  readonly #path: string;
  #next: readonly InstanceCounts[] | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
  }

  read(): readonly InstanceCounts[] {
    try {
      return counts.parse(JSON.parse(readFileSync(this.#path, 'utf8'))).instances;
    } catch {
      return [];
    }
  }

  /** One after the other, and of several that wait the last; resolves also where it fails, for the next one to do it. */
  write(instances: readonly InstanceCounts[]): Promise<void> {
    if (instances.length > 0) this.#next = instances;
    this.#writing = this.#writing.then(() => this.#write()).catch(() => undefined);
    return this.#writing;
  }

  async #write(): Promise<void> {
    if (this.#next === undefined) return;
    const content = `${JSON.stringify({ version: 1, instances: this.#next })}\n`;
    this.#next = undefined;
    await makeFolder(dirname(this.#path), 0o700);
    await writeAtomically(this.#path, [content]);
  }
}
