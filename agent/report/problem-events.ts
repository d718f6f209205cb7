// Tells the authors of Services by Events what is wrong: each problem when it comes up, and all that stand when this
// agent begins to lead, since nobody has told those that came up while nobody led. Who does not lead tells nothing.
// Owns a timer.

import type { Clock } from '../base/clock.ts';
import type { EventRecorder, EventSubject } from '../kubernetes/writers/events.ts';
import { problemEvents } from '../kubernetes/writers/service-events.ts';
import type { Problem } from '../model/load-balancer.ts';

export interface ProblemEventsOptions {
  readonly events: Pick<EventRecorder, 'record' | 'waiting'>;
  readonly clock: Clock;
  /** Of all that may have problems. */
  readonly keys: () => Iterable<string>;
  /** What is wrong now, and whose author is told; undefined where there is nobody to tell. */
  readonly problemsOf: (key: string) => ServiceProblems | undefined;
}

export interface ServiceProblems {
  readonly subject: EventSubject;
  readonly problems: readonly Problem[];
}

/** Of one Service. */
interface Told {
  readonly uid: string;
  readonly problems: readonly Problem[];
}

/** Whose it is makes no difference then, and of most Services there is nothing to tell. */
const NOTHING: Told = { uid: '', problems: [] };

/** Milliseconds of the lead until it is told what stands: what is only undecided, as addresses are, is decided by then. */
const SETTLING = 5_000;
/** Services that are gone through at once, and milliseconds to the next ones. */
const AT_ONCE = 50;
const PAUSE = 100;
/** Events that may wait meanwhile: what comes up now waits behind them, and what finds no room is dropped. */
const MOST_WAITING = 200;

export class ProblemEvents {
  readonly #options: ProblemEventsOptions;
  /** Service key → what was told last. */
  readonly #told = new Map<string, Told>();
  /** `standing`: what stands is being told. */
  #state: 'silent' | 'standing' | 'news' = 'silent';
  #cancel = (): void => {};

  constructor(options: ProblemEventsOptions) {
    this.#options = options;
  }

  /** Something may be wrong with this Service, or no longer. */
  touched(key: string): void {
    const { events, problemsOf } = this.#options;
    if (this.#state === 'silent') return;
    const now = problemsOf(key);
    if (now === undefined) {
      this.#told.delete(key);
      return;
    }
    const { subject, problems } = now;
    const told = this.#told.get(key);
    const isStanding = told === undefined && this.#state === 'standing';
    const before = told?.uid === subject.uid ? told.problems : [];
    for (const text of problemEvents(before, problems)) events.record(subject, text, { isStanding });
    this.#told.set(key, problems.length > 0 ? { uid: subject.uid, problems } : NOTHING);
  }

  lead(leads: boolean): void {
    this.#cancel();
    this.#state = 'silent';
    this.#told.clear();
    if (!leads) return;
    this.#cancel = this.#options.clock.after(SETTLING, () => {
      this.#state = 'standing';
      this.#tellSome([...this.#options.keys()][Symbol.iterator]());
    });
  }

  close(): void {
    this.lead(false);
  }

  #tellSome(keys: Iterator<string>): void {
    for (let i = 0; i < AT_ONCE && this.#options.events.waiting < MOST_WAITING; i++) {
      const { value, done } = keys.next();
      if (done) {
        this.#state = 'news';
        return;
      }
      if (!this.#told.has(value)) this.touched(value);
    }
    this.#cancel = this.#options.clock.after(PAUSE, () => this.#tellSome(keys));
  }
}
