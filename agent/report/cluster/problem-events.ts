// Sends Events on the problems of Services and other objects: each problem when it appears, and all present ones when this
// agent becomes the leader, because those that appeared without a leader were never sent. Owns a timer.

import type { Clock } from '../../base/clock.ts';
import type { EventRecorder, EventSubject } from '../../kubernetes/writers/events.ts';
import { problemEvents } from '../../kubernetes/writers/service-events.ts';
import type { Problem } from '../../model/load-balancer.ts';
import { wholeFailure } from '../operating/operating-status.ts';

export interface ProblemEventsOptions {
  readonly events: Pick<EventRecorder, 'record' | 'waiting'>;
  readonly clock: Clock;
  /** Keys of all Services that may have problems. */
  readonly keys: () => Iterable<string>;
  /** The present problems and the object of the Events; undefined if the API has no such object. */
  readonly problemsOf: (key: string) => ServiceProblems | undefined;
}

export interface ServiceProblems {
  readonly subject: EventSubject;
  readonly problems: readonly Problem[];
}

/** What was sent about one Service. */
interface Sent {
  readonly uid: string;
  readonly problems: readonly Problem[];
}

/** One value for the many Services without problems. */
const NOTHING: Sent = { uid: '', problems: [] };

/**
 * The failures of clients wait so long, longer than a round of the counts: while the last members fail, it is "a part" for a
 * round, and then "all", which is one cause.
 */
const FAILURES_SETTLE_MS = 15_000;
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
  /** Keys with failures of clients that wait. */
  readonly #settling = new Map<string, { readonly isOver: boolean; readonly cancel: () => void }>();

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
      this.#endSettling(key);
      return;
    }
    const { subject, problems } = now;
    const sent = this.#sent.get(key);
    const isStanding = sent === undefined && this.#state === 'present';
    const before = sent?.uid === subject.uid ? sent.problems : [];
    const settled = isStanding ? problems : this.#settled(key, before, problems);
    const toReport = settled.filter(({ message }) => !wasReported(before, wholeFailure(message)));
    for (const text of problemEvents(before, toReport)) events.record(subject, text, { isStanding });
    this.#sent.set(key, settled.length > 0 ? { uid: subject.uid, problems: settled } : NOTHING);
  }

  /** Without the new failures of clients, for which touched() is called again. */
  #settled(key: string, before: readonly Problem[], problems: readonly Problem[]): readonly Problem[] {
    const isNew = ({ reason, message }: Problem): boolean =>
      reason === 'MembersFail' &&
      !wasReported(before, message) &&
      !wasReported(before, wholeFailure(message));
    const known = this.#settling.get(key);
    if (known?.isOver || !problems.some(isNew)) {
      this.#endSettling(key);
      return problems;
    }
    if (known === undefined) {
      const wait = { isOver: false, cancel: () => {} };
      wait.cancel = this.#options.clock.after(FAILURES_SETTLE_MS, () => {
        wait.isOver = true;
        this.touched(key);
      });
      this.#settling.set(key, wait);
    }
    return problems.filter((problem) => !isNew(problem));
  }

  #endSettling(key: string): void {
    this.#settling.get(key)?.cancel();
    this.#settling.delete(key);
  }

  lead(leads: boolean): void {
    this.#cancel();
    this.#state = 'silent';
    this.#sent.clear();
    for (const key of this.#settling.keys()) this.#endSettling(key);
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

function wasReported(problems: readonly Problem[], message: string): boolean {
  return problems.some((each) => each.message === message);
}
