// Tells two masters from a change of master. A master that takes over hears the last words of the one before it; one
// that goes on hearing another's advertisements is not alone. Pure: the time comes in as an argument, in milliseconds.

/** A change of master is over within so many advertisements. */
const HANDOVER = 2;
/** A rival that has not been heard for so many advertisements is gone. */
const SILENCE = 5;

export class Rivals {
  readonly #interval: () => number;
  /** By instance: since when advertisements of another master have been heard, and the last one. */
  readonly #heard = new Map<string, { readonly since: number; readonly last: number }>();

  /** Of the advertisements. */
  constructor(interval: () => number) {
    this.#interval = interval;
  }

  /** This instance, a master, has heard another one. */
  heard(instance: string, now: number): void {
    const before = this.#heard.get(instance);
    const since = before === undefined || this.#isOver(before.last, now) ? now : before.since;
    this.#heard.set(instance, { since, last: now });
  }

  /** The instances that have a second master. */
  current(now: number): readonly string[] {
    return [...this.#heard]
      .filter(
        ([, { since, last }]) => last - since >= HANDOVER * this.#interval() && !this.#isOver(last, now),
      )
      .map(([instance]) => instance);
  }

  #isOver(last: number, now: number): boolean {
    return now - last > SILENCE * this.#interval();
  }
}
