// Sends Events on the problems of Services and other objects: each problem when it appears, and all present ones when this
// agent becomes the leader, because those that appeared without a leader were never sent. Owns a timer.

import type { Clock } from '../../base/clock.ts';
import type { EventRecorder, EventSubject } from '../../kubernetes/writers/events.ts';
import { problemEvents } from '../../kubernetes/writers/service-events.ts';
import type { Problem } from '../../model/load-balancer.ts';

export interface ProblemEventsOptions {
  readonly events: Pick<EventRecorder, 'record' | 'waiting'>;
  readonly clock: Clock;
  /** Of all Services that may have problems. */
  readonly keys: () => Iterable<string>;
  /** The present problems and the object of the Events; undefined if the API has no such object. */
  readonly problemsOf: (key: string) => ServiceProblems | undefined;
}

export interface ServiceProblems {
  readonly subject: EventSubject;
  readonly problems: readonly Problem[];
}

/** Of one Service. */
interface Sent {
  readonly uid: string;
  readonly problems: readonly Problem[];
}

/** One value for the many Services without problems. */
const NOTHING: Sent = { uid: '', problems: [] };

/** A new leader waits so long before it sends present problems: a missing decision, as on addresses, is made by then. */
const SETTLE_MS = 5_000;
const BATCH_SIZE = 50;
const BATCH_INTERVAL_MS = 100;
/** New problems wait behind these Events, and Events that find no room are dropped. */
const MAX_WAITING = 200;

export class ProblemEvents {
  readonly #options: ProblemEventsOptions;
  /** By the key of the Service. */
  readonly #sent = new Map<string, Sent>();
  /** `present`: the problems that were present when this agent became the leader are being sent. */
  #state: 'silent' | 'present' | 'new' = 'silent';
  #cancel = (): void => {};

  constructor(options: ProblemEventsOptions) {
    this.#options = options;
  }

  /** The problems of this Service may have changed. */
  touched(key: string): void {
    const { events, problemsOf } = this.#options;
    if (this.#state === 'silent') return;
    const now = problemsOf(key);
    if (now === undefined) {
      this.#sent.delete(key);
      return;
    }
    const { subject, problems } = now;
    const sent = this.#sent.get(key);
    const isStanding = sent === undefined && this.#state === 'present';
    const before = sent?.uid === subject.uid ? sent.problems : [];
    for (const text of problemEvents(before, problems)) events.record(subject, text, { isStanding });
    this.#sent.set(key, problems.length > 0 ? { uid: subject.uid, problems } : NOTHING);
  }

  lead(leads: boolean): void {
    this.#cancel();
    this.#state = 'silent';
    this.#sent.clear();
    if (!leads) return;
    this.#cancel = this.#options.clock.after(SETTLE_MS, () => {
      this.#state = 'present';
      this.#sendBatch([...this.#options.keys()][Symbol.iterator]());
    });
  }

  close(): void {
    this.lead(false);
  }

  #sendBatch(keys: Iterator<string>): void {
    for (let i = 0; i < BATCH_SIZE && this.#options.events.waiting < MAX_WAITING; i++) {
      const { value, done } = keys.next();
      if (done) {
        this.#state = 'new';
        return;
      }
      if (!this.#sent.has(value)) this.touched(value);
    }
    this.#cancel = this.#options.clock.after(BATCH_INTERVAL_MS, () => this.#sendBatch(keys));
  }
}
