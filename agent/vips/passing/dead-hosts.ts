// Since when hosts are dead, the last one being the most likely owner of a connection that no living host has. Outlives the agent
// in a file in memory.

import type { Clock } from '../../base/clock.ts';
import type { HostGroup } from '../../model/host-group.ts';

const LINE = /^([a-z0-9-]{1,63}) (\d{1,15})$/;

export class DeadHosts {
  readonly #clock: Pick<Clock, 'wall' | 'monotonic'>;
  /** By name, by the monotonic clock. */
  #since: ReadonlyMap<string, number> = new Map();

  constructor(clock: Pick<Clock, 'wall' | 'monotonic'>) {
    this.#clock = clock;
  }

  /** For how many milliseconds, by name. */
  ages(): ReadonlyMap<string, number> {
    const now = this.#clock.monotonic();
    return new Map(Array.from(this.#since, ([name, since]) => [name, now - since]));
  }

  /** From text(); a line that is not valid is left out, and a time in the future is now. */
  restore(text: string): void {
    const now = this.#clock.monotonic();
    const found = text.split('\n').flatMap((line): readonly (readonly [string, number])[] => {
      const [, name, wall] = LINE.exec(line) ?? [];
      return name === undefined ? [] : [[name, now - Math.max(0, this.#clock.wall() - Number(wall))]];
    });
    this.#since = new Map(found);
  }

  /** A line for each: the name, and milliseconds since the epoch. */
  text(): string {
    const now = this.#clock.wall();
    return Array.from(this.ages(), ([name, age]) => `${name} ${Math.round(now - age)}\n`).join('');
  }

  /** True if a host has died or lives again. */
  follow({ hosts }: HostGroup, living: ReadonlySet<string>): boolean {
    const before = this.#since;
    const now = this.#clock.monotonic();
    const dead = hosts.filter(({ name }) => !living.has(name));
    this.#since = new Map(dead.map(({ name }) => [name, before.get(name) ?? now]));
    return before.size !== dead.length || dead.some(({ name }) => !before.has(name));
  }
}
