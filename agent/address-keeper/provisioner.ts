// Calls the operator's program for each address that is given or released: one call at a time for each address, repeated
// with a back-off until it succeeds. A failure is a Problem, never an exception.

import type { ChildProcess } from 'node:child_process';
import { backoffMs } from '../base/backoff.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import { quote } from '../base/quote.ts';
import type { Log } from '../host/log.ts';
import type { Problem } from '../model/load-balancer.ts';
import { objectOf } from '../model/names.ts';
import { callProvisioner, killGroup, type ProvisionRequest } from './provisioner-call.ts';

export type { ProvisionRequest } from './provisioner-call.ts';

export interface ProvisionerOptions {
  readonly program: string;
  readonly log: Log;
  /** The other Services that have the address at the time of the call, which may be long after the request. */
  readonly others?: (request: ProvisionRequest) => readonly string[];
  readonly pace?: Partial<ProvisionerPace>;
  readonly clock?: Clock;
  /** A call has ended; `failure` says why it failed. */
  readonly onCall?: (request: ProvisionRequest, failure: string | undefined) => void;
  /** Gives why the answer cannot be used; undefined if it can. */
  readonly onAnswer?: (request: ProvisionRequest, answer: string | undefined) => string | undefined;
  /** The Problem of an address and Service has changed; undefined: it is solved. */
  readonly onProblem?: (request: ProvisionRequest, problem: Problem | undefined) => void;
}

export interface ProvisionerPace {
  /** For one call, milliseconds. */
  readonly deadline: number;
  /** From a failure to the next call, milliseconds. */
  readonly backOff: readonly [least: number, most: number];
  /** Calls at the same time. */
  readonly concurrency: number;
}

/** The requests for one address. */
interface Lane {
  /** Service → its last request that has not succeeded yet; those without a call yet come first, in order. */
  waiting: Map<string, ProvisionRequest>;
  /** Requests whose last call failed. */
  readonly failed: Set<ProvisionRequest>;
  /** Calls that failed in a row. */
  failures: number;
  isRunning: boolean;
  cancelRetry: (() => void) | undefined;
}

const PACE: ProvisionerPace = { deadline: 30_000, backOff: [1_000, 300_000], concurrency: 4 };

export class Provisioner {
  readonly #options: ProvisionerOptions;
  readonly #pace: ProvisionerPace;
  readonly #clock: Clock;
  readonly #lanes = new Map<string, Lane>();
  /** Addresses that are due for a call. */
  readonly #due = new Set<string>();
  readonly #children = new Set<ChildProcess>();
  /** Service → address → the Problem of its last call. */
  readonly #problems = new Map<string, Map<string, Problem>>();
  #running = 0;
  #isClosed = false;

  constructor(options: ProvisionerOptions) {
    this.#options = options;
    this.#pace = { ...PACE, ...options.pace };
    this.#clock = options.clock ?? systemClock;
  }

  /** Replaces an earlier request for the same address and Service that is not carried out yet. */
  request(request: ProvisionRequest): void {
    if (this.#isClosed) return;
    const { address, service } = request;
    const lane = this.#lanes.get(address) ?? {
      waiting: new Map(),
      failed: new Set(),
      failures: 0,
      isRunning: false,
      cancelRetry: undefined,
    };
    this.#lanes.set(address, lane);
    const replaced = lane.waiting.get(service);
    if (replaced !== undefined) lane.failed.delete(replaced);
    lane.waiting.delete(service);
    const others = [...lane.waiting];
    const hasFailed = ([, each]: readonly [string, ProvisionRequest]): boolean => lane.failed.has(each);
    lane.waiting = new Map([
      ...others.filter((each) => !hasFailed(each)),
      [service, request],
      ...others.filter(hasFailed),
    ]);
    // A new request does not wait for the back-off of others.
    lane.cancelRetry?.();
    lane.cancelRetry = undefined;
    this.#due.add(address);
    this.#next();
  }

  /** By Service: of the addresses whose last call failed. */
  problems(): ReadonlyMap<string, readonly Problem[]> {
    return new Map([...this.#problems].map(([service, problems]) => [service, [...problems.values()]]));
  }

  problemsOf(service: string): readonly Problem[] {
    return [...(this.#problems.get(service)?.values() ?? [])];
  }

  /** How many requests have not succeeded yet. */
  get pending(): number {
    let count = 0;
    for (const { waiting } of this.#lanes.values()) count += waiting.size;
    return count;
  }

  /** Ends calls that are under way; no other call follows. */
  close(): void {
    this.#isClosed = true;
    for (const { cancelRetry } of this.#lanes.values()) cancelRetry?.();
    this.#lanes.clear();
    this.#due.clear();
    for (const child of this.#children) killGroup(child);
  }

  #next(): void {
    const { concurrency } = this.#pace;
    for (const address of this.#due) {
      if (this.#running >= concurrency) return;
      const lane = this.#lanes.get(address);
      const [request] = lane?.waiting.values() ?? [];
      if (lane?.isRunning) continue;
      this.#due.delete(address);
      if (lane === undefined || request === undefined) continue;
      lane.isRunning = true;
      this.#running++;
      void this.#call(request).then((failure) => {
        this.#running--;
        lane.isRunning = false;
        if (!this.#isClosed) {
          this.#options.onCall?.(request, failure);
          this.#settle(lane, request, failure);
        }
        this.#next();
      });
    }
  }

  #settle(lane: Lane, request: ProvisionRequest, failure: string | undefined): void {
    const { address, service, action } = request;
    const isLast = lane.waiting.get(service) === request;
    lane.failed.delete(request);
    if (failure === undefined) {
      lane.failures = 0;
      if (isLast) lane.waiting.delete(service);
      this.#setProblem(request, undefined);
    } else {
      lane.failures++;
      const message = `Cannot ${action} ${address}: program ${quote(this.#options.program)} ${failure}`;
      this.#setProblem(request, { object: objectOf(service), reason: 'ProvisionerFailed', message });
      // The other Services of the address come first now: a Service that always fails must not block them.
      if (isLast) {
        lane.failed.add(request);
        lane.waiting.delete(service);
        lane.waiting.set(service, request);
      }
    }
    if (lane.waiting.size === 0) this.#lanes.delete(address);
    else if (failure === undefined || !isLast) this.#due.add(address);
    else if (!this.#due.has(address)) this.#retryLater(address, lane);
  }

  #retryLater(address: string, lane: Lane): void {
    const [firstMs, mostMs] = this.#pace.backOff;
    const wait = backoffMs(lane.failures, { firstMs, mostMs });
    lane.cancelRetry = this.#clock.after(wait, () => {
      lane.cancelRetry = undefined;
      this.#due.add(address);
      this.#next();
    });
  }

  #setProblem(request: ProvisionRequest, problem: Problem | undefined): void {
    const { address, service } = request;
    const problems = this.#problems.get(service) ?? new Map<string, Problem>();
    const before = problems.get(address);
    if (problem === undefined) problems.delete(address);
    else problems.set(address, problem);
    if (problems.size === 0) this.#problems.delete(service);
    else this.#problems.set(service, problems);
    if (before?.message !== problem?.message) this.#options.onProblem?.(request, problem);
  }

  #call(request: ProvisionRequest): Promise<string | undefined> {
    const { program, log, others, onAnswer } = this.#options;
    const children = this.#children;
    return callProvisioner(
      {
        program,
        log,
        clock: this.#clock,
        deadlineMs: this.#pace.deadline,
        children,
        isClosed: () => this.#isClosed,
        onAnswer: (answer) => onAnswer?.(request, answer),
      },
      { ...request, others: others?.(request) ?? [] },
    );
  }
}
