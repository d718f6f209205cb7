// How other hosts announce a VIP, asked and answered in the reports between the hosts: a report names the VIP that its sender asks
// for, and the next reports of the others have their answers.

import { type Clock, systemClock } from '../../base/clock.ts';
import type { PairReport, VipsReport } from './report.ts';

export type VipSeen = VipsReport['answers'][number];

export interface VipQuestionsOptions {
  /** How this host announces an address. */
  readonly announcement: (address: string) => VipSeen;
  /** The report of this host has changed. */
  readonly send: () => void;
  readonly clock?: Clock;
}

/** For an answer of each host. */
const ANSWER_TIMEOUT_MS = 1_000;
/** A question that is asked again after this time is new. */
const ANSWERED_MS = 500;
/** In one report. */
const MOST_ANSWERS = 2;

type Reports = ReadonlyMap<string, PairReport>;

export class VipQuestions {
  readonly #options: VipQuestionsOptions;
  readonly #clock: Clock;
  #asks = '';
  /** Address → when it was answered last; the oldest first. */
  readonly #answered = new Map<string, number>();
  /** What the others asked for in their last reports. */
  #asked: ReadonlySet<string> = new Set();
  #wake: () => void = () => undefined;
  /** The question that is open, so that one follows the other. */
  #last: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(options: VipQuestionsOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  get report(): VipsReport {
    const { announcement } = this.#options;
    return { asks: this.#asks, answers: [...this.#answered.keys()].map(announcement) };
  }

  /** The answers by the name of the host, of those in `reports()` that answer in time. */
  ask(address: string, reports: () => Reports): Promise<ReadonlyMap<string, VipSeen>> {
    const asked = this.#last.then(() => this.#ask(address, reports));
    this.#last = asked.catch(() => undefined);
    return asked;
  }

  /** Reports have come. */
  heard(reports: Reports): void {
    const asked = new Set([...reports.values()].map(({ vips }) => vips.asks).filter((asks) => asks !== ''));
    const now = this.#clock.monotonic();
    for (const [address, at] of this.#answered)
      if (!asked.has(address) && now - at > ANSWERED_MS) this.#answered.delete(address);
    const isNews = [...asked].some((address) => !this.#asked.has(address));
    this.#asked = asked;
    for (const address of asked) {
      this.#answered.delete(address);
      this.#answered.set(address, now);
    }
    for (const address of this.#answered.keys())
      if (this.#answered.size > MOST_ANSWERS) this.#answered.delete(address);
    if (isNews) this.#options.send();
    this.#wake();
  }

  close(): void {
    this.#isClosed = true;
    this.#wake();
  }

  async #ask(address: string, reports: () => Reports): Promise<ReadonlyMap<string, VipSeen>> {
    // The last report of a host that is gone may have an answer to an earlier question.
    const before = reports();
    this.#asks = address;
    this.#options.send();
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(ANSWER_TIMEOUT_MS, resolve);
    let isLate = false;
    const timeout = late.then(() => {
      isLate = true;
    });
    try {
      for (;;) {
        const all = [...reports()];
        const answers = all.flatMap(([name, report]) =>
          report === before.get(name)
            ? []
            : report.vips.answers
                .filter((each) => each.address === address)
                .map((each) => [name, each] as const),
        );
        if (answers.length === all.length || isLate || this.#isClosed) return new Map(answers);
        const { promise: news, resolve: wake } = Promise.withResolvers<void>();
        this.#wake = wake;
        await Promise.race([news, timeout]);
      }
    } finally {
      cancel();
      this.#asks = '';
      this.#options.send();
    }
  }
}
