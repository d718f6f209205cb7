// Brings Services in the API to what is wanted of them: status, conditions, finalizer. Takes wishes at any time and
// returns at once; writes while this agent leads, only what differs, each Service for itself, slowly enough.
// Owns a queue with its timer; talks only through KubernetesApi.

import { type Clock, secondTime } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import { sameValue } from '../../base/same-value.ts';
import type { Log } from '../../host/log.ts';
import { refusalText, waitAsked } from '../api/api-answer.ts';
import type { ApiResponse, KubernetesApi } from '../api/kubernetes-api.ts';
import { type CurrentService, readCurrentService } from '../current-service.ts';
import { type DesiredService, FINALIZER, servicePatch } from './service-patch.ts';
import { type WriteOutcome, WriteQueue } from './write-queue.ts';

export interface StatusWriterOptions {
  readonly api: KubernetesApi;
  readonly clock: Clock;
  readonly log: Log;
  /** Asked at each write, besides lead(): by the clock, so that no write goes out late. */
  readonly isLeader: () => boolean;
  /** The Service as the watch shows it, for comparing without a question; without it each write begins with a GET. */
  readonly currentService?: (key: string) => CurrentService | undefined;
  /** Whether to add the finalizer; default true. Where it is, it is removed after the teardown in any case. */
  readonly addFinalizer?: boolean;
  /** Milliseconds that a teardown may take before the finalizer goes all the same. */
  readonly escapeAfter?: number;
  /** Milliseconds that the dataplane has to make up its mind before its silence is written. */
  readonly patience?: number;
  /** Writes a second, and at once. */
  readonly rate?: number;
  readonly burst?: number;
  readonly random?: () => number;
  /** After each write: for Events and for whoever waits. */
  readonly onWritten?: (before: CurrentService, after: CurrentService) => void;
  readonly metrics?: StatusWriterMetrics;
}

export interface StatusWriterMetrics {
  /** `dropped`: the Service is gone, or the API server refuses what we want of it. */
  statusWritten(result: 'done' | 'conflict' | 'failed' | 'dropped'): void;
}

/** Milliseconds between two writes of one Service: what wants to flap, or fights with us, gets no faster. */
const SPACING = 250;

interface Wish {
  readonly wish: DesiredService;
  /** When what it waits for began (silence of the dataplane, a teardown), by the monotonic clock. */
  readonly since: number;
  /** The API server has it so, or will not have it: without a watch nothing is asked until something moves. */
  isSettled: boolean;
}

/** What we wrote, until the watch shows it. */
interface Written {
  readonly service: CurrentService;
  /** The version that the watch showed when we wrote. */
  readonly shown: string | undefined;
}

interface Waiting {
  readonly uid: string;
  readonly promise: Promise<boolean>;
  readonly resolve: (isClaimed: boolean) => void;
}

export class StatusWriter {
  readonly #options: StatusWriterOptions;
  readonly #queue: WriteQueue;
  /** Service key → what is wanted of it. */
  readonly #wishes = new Map<string, Wish>();
  readonly #written = new Map<string, Written>();
  /** Keys whose cached Service has proved old. */
  readonly #stale = new Set<string>();
  readonly #waiting = new Map<string, Waiting[]>();
  readonly #fault = new Fault();

  constructor(options: StatusWriterOptions) {
    this.#options = options;
    const { clock, rate = 20, burst = 50, random = Math.random } = options;
    this.#queue = new WriteQueue({
      write: (key) => this.#write(key),
      check: (key) => this.#wait(key),
      clock,
      rate,
      burst,
      random,
      spacing: SPACING,
    });
  }

  /** Services that are yet to be written, as far as it is known. */
  get waiting(): number {
    return this.#queue.size;
  }

  /** Why the last write failed, '' where it did not. */
  get fault(): string {
    return this.#fault.text;
  }

  /** What is wanted of a Service from now on; undefined: nothing, it is gone or was never ours. */
  set(key: string, wish: DesiredService | undefined): void {
    if (wish === undefined) {
      this.#forget(key);
      return;
    }
    const before = this.#wishes.get(key);
    const isStillWaiting = before !== undefined && isTentative(before.wish) && sameWait(before.wish, wish);
    const since = isStillWaiting ? before.since : this.#options.clock.monotonic();
    const isSettled = before?.isSettled === true && sameValue(before.wish, wish);
    this.#wishes.set(key, { wish, since, isSettled });
    if (wish.kind === 'release') this.#answer(key, undefined);
    if (!isSettled) this.#queue.add(key);
  }

  /** Of the Service of which something is wanted. */
  uidOf(key: string): string | undefined {
    return this.#wishes.get(key)?.wish.uid;
  }

  /** The Service has changed: if that was somebody else and concerns what is ours, it is written again. */
  observed(key: string): void {
    const entry = this.#wishes.get(key);
    if (entry === undefined) return;
    entry.isSettled = false;
    this.#queue.add(key);
  }

  /**
   * True once the Service is known to carry our finalizer (or is not to), so that something outside may be done for
   * it; false where it is gone, another one by now, being deleted or released, or where this agent does not lead.
   */
  requestFinalizer(key: string, uid: string): Promise<boolean> {
    if (!this.#options.isLeader()) return Promise.resolve(false);
    if (this.#options.addFinalizer === false) return Promise.resolve(true);
    const waiting = this.#waiting.get(key) ?? [];
    // Whoever asks again, having lost patience, waits for the same answer.
    const known = waiting.find((each) => each.uid === uid);
    if (known !== undefined) {
      this.observed(key);
      return known.promise;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#waiting.set(key, [...waiting, { uid, promise, resolve }]);
    const before = this.#wishes.get(key)?.wish;
    if (before?.uid === uid && before.kind !== 'release') this.observed(key);
    else this.set(key, { kind: 'finalizer', uid });
    return promise;
  }

  /** This agent begins or ceases to lead. All wishes are looked at again: another may have written meanwhile. */
  lead(isLeader: boolean): void {
    this.#fault.clear();
    if (!isLeader) {
      this.#queue.pause();
      for (const key of [...this.#waiting.keys()]) this.#answer(key, undefined);
      return;
    }
    this.#written.clear();
    for (const key of this.#wishes.keys()) this.observed(key);
    this.#queue.resume();
  }

  async close(): Promise<void> {
    await this.#queue.close();
    for (const key of [...this.#waiting.keys()]) this.#answer(key, undefined);
  }

  /** Milliseconds until it is time for this key, Infinity where there is nothing to write. */
  #wait(key: string): number {
    const entry = this.#wishes.get(key);
    if (entry === undefined) return Number.POSITIVE_INFINITY;
    const current = this.#stale.has(key) ? undefined : this.#current(key);
    if (
      current !== undefined &&
      current.uid === entry.wish.uid &&
      this.#patch(current, entry.wish) === undefined
    ) {
      entry.isSettled = true;
      this.#answer(key, current);
      return Number.POSITIVE_INFINITY;
    }
    const { patience = 2_000, escapeAfter = 120_000, clock } = this.#options;
    if (!isTentative(entry.wish) || this.#waiting.has(key)) return 0;
    const limit = entry.wish.kind === 'release' ? escapeAfter : patience;
    return Math.max(0, entry.since + limit - clock.monotonic());
  }

  /** Reads what is there, unless the watch shows it, and writes the difference. */
  async #write(key: string): Promise<WriteOutcome> {
    const { isLeader } = this.#options;
    if (!isLeader()) return 'done';
    try {
      const current = (this.#stale.has(key) ? undefined : this.#current(key)) ?? (await this.#get(key));
      // Asked for after the answer: what is wanted may have changed meanwhile.
      const wish = this.#wishes.get(key)?.wish;
      if (wish === undefined || !isLeader()) return 'done';
      if (current === undefined || current.uid !== wish.uid) {
        // What the watch shows may be the one before.
        if (current !== undefined && !this.#stale.has(key) && this.#options.currentService !== undefined)
          return this.#refresh(key);
        this.#note('dropped', '');
        this.#forget(key);
        return 'done';
      }
      // Such as to a release, which has time until the teardown is done.
      const wait = this.#wait(key);
      if (wait > 0) {
        if (wait < Number.POSITIVE_INFINITY) this.#queue.add(key, wait);
        return 'done';
      }
      return await this.#send(key, current, wish);
    } catch (error) {
      this.#note('failed', messageOf(error));
      return { later: true };
    }
  }

  async #send(key: string, current: CurrentService, wish: DesiredService): Promise<WriteOutcome> {
    const body = this.#patch(current, wish);
    if (body === undefined) {
      this.#stale.delete(key);
      this.#settled(key, wish);
      this.#answer(key, current);
      return 'done';
    }
    if (wish.kind === 'release' && !wish.isTornDown)
      this.#options.log.warn('The teardown was not confirmed in time; the Service is let go', {
        service: key,
      });
    const shown = this.#options.currentService?.(key)?.resourceVersion;
    const response = await this.#options.api.request({
      method: 'PATCH',
      path: `${pathOf(key)}/status`,
      query: { fieldManager: 'headgate' },
      contentType: 'application/merge-patch+json',
      body,
    });
    return this.#settle(key, current, wish, response, shown);
  }

  #settle(
    key: string,
    before: CurrentService,
    wish: DesiredService,
    response: ApiResponse,
    shown: string | undefined,
  ): WriteOutcome {
    const { status } = response;
    if (status === 200) {
      this.#note('done', '');
      this.#stale.delete(key);
      this.#settled(key, wish);
      const after = readCurrentService(response.body);
      if (after === undefined) return 'done';
      const isOver = wish.kind === 'release' && this.#wishes.get(key)?.wish === wish;
      if (isOver || !this.#wishes.has(key)) this.#forget(key);
      else if (this.#options.currentService !== undefined) this.#written.set(key, { service: after, shown });
      this.#answer(key, after);
      this.#options.onWritten?.(before, after);
      return 'done';
    }
    if (status === 409 || status === 404) {
      this.#note('conflict', '');
      return this.#refresh(key);
    }
    if (status === 400 || status === 422) {
      // Trying again would not help; the next wish, or a change of the Service, may.
      this.#note('dropped', refusalText(response));
      this.#settled(key, wish);
      this.#answer(key, undefined);
      return 'done';
    }
    this.#note('failed', refusalText(response));
    const wait = waitAsked(response);
    return { later: true, ...(wait === undefined ? {} : { wait }) };
  }

  #refresh(key: string): WriteOutcome {
    // Forgotten while the answer was on its way.
    if (!this.#wishes.has(key)) return 'done';
    this.#stale.add(key);
    this.#written.delete(key);
    return 'again';
  }

  async #get(key: string): Promise<CurrentService | undefined> {
    const response = await this.#options.api.request({ method: 'GET', path: pathOf(key) });
    if (response.status === 404) return undefined;
    if (response.status !== 200) throw new Error(refusalText(response));
    return readCurrentService(response.body);
  }

  /** The newest that is known without asking. */
  #current(key: string): CurrentService | undefined {
    const shown = this.#options.currentService?.(key);
    const written = this.#written.get(key);
    if (written === undefined) return shown;
    if (shown?.resourceVersion === written.shown) return written.service;
    this.#written.delete(key);
    return shown;
  }

  #patch(current: CurrentService, wish: DesiredService): ReturnType<typeof servicePatch> {
    const { clock, addFinalizer = true } = this.#options;
    return servicePatch(current, wish, { now: secondTime(clock.wall()), addFinalizer });
  }

  #settled(key: string, wish: DesiredService): void {
    const entry = this.#wishes.get(key);
    if (entry?.wish === wish) entry.isSettled = true;
  }

  #forget(key: string): void {
    this.#wishes.delete(key);
    this.#written.delete(key);
    this.#stale.delete(key);
    this.#queue.delete(key);
    this.#answer(key, undefined);
  }

  #answer(key: string, service: CurrentService | undefined): void {
    const waiting = this.#waiting.get(key);
    if (waiting === undefined) return;
    this.#waiting.delete(key);
    for (const { uid, resolve } of waiting)
      resolve(service?.uid === uid && !service.isDeleting && service.finalizers.includes(FINALIZER));
  }

  #note(result: 'done' | 'conflict' | 'failed' | 'dropped', fault: string): void {
    this.#options.metrics?.statusWritten(result);
    if (result !== 'conflict' && this.#fault.set(fault) && fault !== '')
      this.#options.log.warn(`Cannot write the status of a Service: ${fault}`);
  }
}

/** It may look different in a moment, so there is no hurry. */
function isTentative(wish: DesiredService): boolean {
  if (wish.kind === 'serve') return !wish.status.isSettled;
  return wish.kind === 'release' && !wish.isTornDown;
}

function sameWait(before: DesiredService, wish: DesiredService): boolean {
  return before.kind === wish.kind && before.uid === wish.uid;
}

function pathOf(key: string): string {
  const [namespace = '', name = ''] = key.split('/', 2);
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/services/${encodeURIComponent(name)}`;
}
