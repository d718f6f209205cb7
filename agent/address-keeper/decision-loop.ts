// Collects what has changed, and lets addresses.ts decide on it: one decision at a time, large ones in slices, until
// nothing is left. Decides again when a held claim ends. Owns the timer.

import type { AddressClaim, Addresses, AddressesChange, AddressesOutcome } from '../addresses/addresses.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import { Slice } from '../base/slice.ts';

export interface DecisionLoopOptions {
  readonly addresses: Addresses;
  /** The next decision, from takeChanges(); undefined for none. */
  readonly next: () => AddressesChange | undefined;
  /** After a decision. Gives the Services whose addresses have changed. */
  readonly apply: (outcome: AddressesOutcome, change: AddressesChange) => ReadonlySet<string>;
  /** For Services that runNow() has not given. */
  readonly onChanged: (services: Iterable<string>) => void;
  readonly clock?: Clock;
}

/** What has changed since the last decision. */
export interface Changes {
  /** Keys of Services, and names of claims. */
  readonly services: Set<string>;
  readonly claims: Set<string>;
  readonly overruling: AddressClaim[];
  /** Name of a claim → the public address that the provisioner has answered. */
  readonly answers: Map<string, string>;
  havePoolsChanged: boolean;
  /** A held claim has ended. */
  hasExpired: boolean;
}

const MAX_TIMER_MS = 2 ** 31 - 1;

export class DecisionLoop {
  readonly #options: DecisionLoopOptions;
  #changes = noChanges();
  #isStarted = false;
  #isWorking = false;
  /** The decisions that are under way, or were last. */
  #work: Promise<void> = Promise.resolve();
  #isClosed = false;
  /** For runNow(), while it runs. */
  #answer: Set<string> | undefined;
  readonly #clock: Clock;
  #cancel: (() => void) | undefined;

  constructor(options: DecisionLoopOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** To add to, before run(). */
  get changes(): Changes {
    return this.#changes;
  }

  get hasChanges(): boolean {
    const { services, claims, overruling, answers, havePoolsChanged, hasExpired } = this.#changes;
    return (
      services.size + claims.size + overruling.length + answers.size > 0 || havePoolsChanged || hasExpired
    );
  }

  takeChanges(): Changes {
    const changes = this.#changes;
    this.#changes = noChanges();
    return changes;
  }

  /** Before it no decision is made. Resolves when everything is decided. */
  start(): Promise<void> {
    this.#isStarted = true;
    return this.run();
  }

  /** Decides until nothing is left; small decisions are complete when it returns, all when it resolves. */
  run(): Promise<void> {
    if (!this.#isWorking && this.#isStarted && !this.#isClosed) this.#work = this.#decide();
    return this.#work;
  }

  async #decide(): Promise<void> {
    const { addresses, next, apply } = this.#options;
    this.#isWorking = true;
    for (let change = next(); change !== undefined; change = next()) {
      const steps = addresses.steps(change, this.#clock.wall());
      const slice = new Slice();
      let step = steps.next();
      while (!step.done) {
        if (slice.isOver) {
          this.#answer = undefined;
          await slice.breathe();
        }
        step = steps.next();
      }
      this.#report(apply(step.value, change));
    }
    this.#isWorking = false;
    this.#setTimer();
  }

  /** Gives the Services whose addresses have changed; onChanged() gets those of large decisions later. */
  runNow(): ReadonlySet<string> {
    const answer = new Set<string>();
    this.#answer = answer;
    void this.run();
    this.#answer = undefined;
    return answer;
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  #report(services: ReadonlySet<string>): void {
    if (services.size === 0) return;
    if (this.#answer === undefined) this.#options.onChanged(services);
    else for (const key of services) this.#answer.add(key);
  }

  #setTimer(): void {
    this.#cancel?.();
    const next = this.#options.addresses.nextExpiry();
    if (next === Number.POSITIVE_INFINITY || this.#isClosed) return;
    const wait = Math.min(Math.max(0, next - this.#clock.wall()), MAX_TIMER_MS);
    this.#cancel = this.#clock.after(wait, () => {
      this.#changes.hasExpired = true;
      void this.run();
    });
  }
}

function noChanges(): Changes {
  return {
    services: new Set(),
    claims: new Set(),
    overruling: [],
    answers: new Map(),
    havePoolsChanged: false,
    hasExpired: false,
  };
}
