// The counters of each VRRP instance in a file, so that they continue after a restart of keepalived or of the agent. A
// file that cannot be read counts as empty.

import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { serial } from '../../../base/serial.ts';
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
  /** The last state. */
  readonly state: VrrpStateName;
  readonly adverts: Adverts;
  /** keepalived's own counters in its last dump; they start at 0 with each keepalived. */
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
  readonly #turns = serial();
  #next: readonly InstanceCounts[] | undefined;

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

  /** Writes the newest counters. Never rejects: the next write follows soon. */
  write(instances: readonly InstanceCounts[]): Promise<void> {
    if (instances.length > 0) this.#next = instances;
    return this.#turns.run(() => this.#write()).catch(() => undefined);
  }

  async #write(): Promise<void> {
    if (this.#next === undefined) return;
    const content = `${JSON.stringify({ version: 1, instances: this.#next })}\n`;
    this.#next = undefined;
    await makeFolder(dirname(this.#path), 0o700);
    await writeAtomically(this.#path, [content]);
  }
}
