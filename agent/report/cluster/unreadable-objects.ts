// The objects of the Gateway API that cannot be read now, with the reason, and by what they are attached to: whether their status
// is this agent's depends on that.

import { isStatusKind } from '../../kubernetes/status-kinds.ts';
import type { Problem } from '../../model/load-balancer.ts';
import { type StatusName, subjectOfName } from '../../model/object-statuses.ts';

const NONE: readonly never[] = [];

export class UnreadableObjects {
  #messages = new Map<StatusName, string>();
  /** `Gateway default/edge` → the objects that name it, perhaps also some that no longer do. */
  readonly #attached = new Map<StatusName, Set<StatusName>>();

  get isEmpty(): boolean {
    return this.#messages.size === 0;
  }

  /** `problems`: all of them. Gives the objects of which the reason has changed. */
  update(problems: readonly Problem[]): ReadonlySet<StatusName> {
    const before = this.#messages;
    this.#messages = new Map();
    for (const { object, reason, message } of problems) {
      if (reason !== 'InvalidObject' || !isStatusKind(subjectOfName(object).kind)) continue;
      const prefix = `${object}: `;
      this.#messages.set(object, message.startsWith(prefix) ? message.slice(prefix.length) : message);
    }
    if (this.#messages.size === 0) this.#attached.clear();
    const all = new Set([...before.keys(), ...this.#messages.keys()]);
    return new Set([...all].filter((object) => before.get(object) !== this.#messages.get(object)));
  }

  /** Why it cannot be read; undefined if it can. */
  messageOf(object: StatusName): string | undefined {
    return this.#messages.get(object);
  }

  attach(object: StatusName, parents: Iterable<StatusName>): void {
    for (const parent of parents) {
      const objects = this.#attached.get(parent) ?? new Set();
      this.#attached.set(parent, objects.add(object));
    }
  }

  attachedTo(parent: StatusName): Iterable<StatusName> {
    return this.#attached.get(parent) ?? NONE;
  }
}
