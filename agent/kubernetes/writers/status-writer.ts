// Brings Services in the API to their desired state: status, conditions, finalizer. `set()` returns at once; the agent
// that leads writes each difference, in a limited number of requests per second.
// Owns a queue with its timer; uses the network only through KubernetesApi.

import { secondTime } from '../../base/clock.ts';
import { sameValue } from '../../base/same-value.ts';
import { refusalText } from '../api/api-answer.ts';
import { type CurrentService, readCurrentService } from '../current-service.ts';
import { LatestObjects } from './latest-objects.ts';
import { type DesiredService, FINALIZER, type ServicePatch, servicePatch } from './service-patch.ts';
import {
  failedBy,
  type WriteOutcome,
  WriteQueue,
  type WriteResult,
  type WriterOptions,
} from './write-queue.ts';

export interface StatusWriterOptions extends WriterOptions {
  /** The Service as the watch shows it; undefined if it does not: the writer reads it then. */
  readonly currentService: (key: string) => CurrentService | undefined;
  /** Whether to add the finalizer; default true. It is removed after the teardown in any case. */
  readonly addFinalizer?: boolean;
  /** After this time the finalizer is removed although the dataplane has not confirmed the teardown. */
  readonly teardownLimitMs?: number;
  /** The time until an address is stored and the dataplane has confirmed; after it the status reports what is missing. */
  readonly confirmationMs?: number;
  /** Writes per second, and at once. */
  readonly rate?: number;
  readonly burst?: number;
  /** After each write. */
  readonly onWritten?: (before: CurrentService, after: CurrentService) => void;
  /** `dropped`: the Service is gone, or the API server refuses its desired status. */
  readonly metrics?: { statusWritten(result: WriteResult): void };
}

/** Between a status and the next write of the Service, so that one that flaps, or a second writer, costs few requests. */
const SPACING_MS = 250;

interface Entry {
  readonly desired: DesiredService;
  /** When the wait for the dataplane or for a teardown began, by the monotonic clock. */
  readonly since: number;
  /** The API server has it, or refuses it: no request until something changes. */
  isSettled: boolean;
}

export class StatusWriter {
  readonly #options: StatusWriterOptions;
  readonly #queue: WriteQueue;
  /** By the Service's key. */
  readonly #entries = new Map<string, Entry>();
  readonly #services: LatestObjects<CurrentService>;
  /** Key → the calls of requestFinalizer() that wait for the Service with the UID of the entry. */
  readonly #requests = new Map<string, PromiseWithResolvers<boolean>>();

  constructor(options: StatusWriterOptions) {
    this.#options = options;
    this.#services = new LatestObjects({
      api: options.api,
      shown: options.currentService,
      pathOf,
      parse: readCurrentService,
    });
    this.#queue = new WriteQueue({
      ...options,
      write: (key) => this.#write(key),
      check: (key) => this.#waitMs(key),
      faultTitle: 'Cannot write the status of a Service',
      onResult: (result) => options.metrics?.statusWritten(result),
      spacingMs: SPACING_MS,
    });
  }

  /** The number of Services that may have to be written. */
  get waiting(): number {
    return this.#queue.size;
  }

  /** Why the last write failed, '' if it did not. */
  get fault(): string {
    return this.#queue.fault;
  }

  /** The desired Service from now on; undefined: it is gone, or was never this agent's. */
  set(key: string, desired: DesiredService | undefined): void {
    if (desired === undefined) {
      this.#forget(key);
      return;
    }
    const before = this.#entries.get(key);
    const isStillWaiting =
      before !== undefined && isTentative(before.desired) && isSameWait(before.desired, desired);
    const since = isStillWaiting ? before.since : this.#options.clock.monotonic();
    const isSettled = before?.isSettled === true && sameValue(before.desired, desired);
    if (desired.kind === 'release' || desired.uid !== before?.desired.uid) this.#answer(key, undefined);
    this.#entries.set(key, { desired, since, isSettled });
    if (!isSettled) this.#queue.add(key);
  }

  /** The UID in the desired Service. */
  uidOf(key: string): string | undefined {
    return this.#entries.get(key)?.desired.uid;
  }

  /** The Service has changed: if it differs from the desired one now, it is written again. */
  observed(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.isSettled = false;
    this.#queue.add(key);
  }

  /**
   * True once the Service has the finalizer, or needs none: then something outside the cluster may be done for it.
   * False if it is gone, replaced, being deleted or released, or if this agent does not lead.
   */
  async requestFinalizer(key: string, uid: string): Promise<boolean> {
    const { isLeader, addFinalizer = true } = this.#options;
    if (!isLeader()) return false;
    if (!addFinalizer) return true;
    const desired = this.#entries.get(key)?.desired;
    if (desired?.uid !== uid || desired.kind === 'release') this.set(key, { kind: 'choosing', uid });
    const request = this.#requests.get(key) ?? Promise.withResolvers<boolean>();
    this.#requests.set(key, request);
    // The Service may have the finalizer already, which answers the request at once.
    this.observed(key);
    return request.promise;
  }

  /** This agent begins or ceases to lead. It checks all Services, because another agent may have written them. */
  lead(isLeader: boolean): void {
    this.#services.clear();
    if (isLeader) for (const key of this.#entries.keys()) this.observed(key);
    else this.#refuseRequests();
    this.#queue.lead(isLeader);
  }

  async close(): Promise<void> {
    await this.#queue.close();
    this.#refuseRequests();
  }

  /** Milliseconds to wait with this key; Infinity if there is nothing to write. */
  #waitMs(key: string): number {
    const entry = this.#entries.get(key);
    if (entry === undefined) return Number.POSITIVE_INFINITY;
    const { desired, since } = entry;
    const current = this.#services.get(key);
    if (current?.uid === desired.uid && this.#patch(current, desired) === undefined) {
      this.#settle(key, desired, current);
      return Number.POSITIVE_INFINITY;
    }
    const { confirmationMs = 2_000, teardownLimitMs = 120_000, clock } = this.#options;
    if (!isTentative(desired) || this.#requests.has(key)) return 0;
    const limitMs = desired.kind === 'release' ? teardownLimitMs : confirmationMs;
    return Math.max(0, since + limitMs - clock.monotonic());
  }

  async #write(key: string): Promise<WriteOutcome> {
    const { isLeader } = this.#options;
    if (!isLeader()) return { result: 'unchanged' };
    const uid = this.uidOf(key);
    const known = this.#services.get(key);
    // The watch may still show the Service that this one replaced.
    const current = known?.uid === uid ? known : await this.#services.read(key);
    // A change during the read has added the key again.
    const desired = this.#entries.get(key)?.desired;
    if (desired === undefined || desired.uid !== uid || !isLeader()) return { result: 'unchanged' };
    if (current?.uid !== uid) {
      this.#forget(key);
      return { result: 'dropped' };
    }
    // It may have become a release, which has time until the teardown is done.
    const waitMs = this.#waitMs(key);
    if (waitMs === 0) return this.#send(key, current, desired);
    if (waitMs < Number.POSITIVE_INFINITY) this.#queue.add(key, waitMs);
    return { result: 'unchanged' };
  }

  async #send(key: string, current: CurrentService, desired: DesiredService): Promise<WriteOutcome> {
    const body = this.#patch(current, desired);
    if (body === undefined) {
      this.#settle(key, desired, current);
      return { result: 'unchanged' };
    }
    const { log } = this.#options;
    if (desired.kind === 'release' && !desired.isTornDown)
      log.warn('The dataplane did not confirm the teardown in time; releasing the Service', { service: key });
    const response = await this.#services.request(key, {
      method: 'PATCH',
      path: `${pathOf(key)}/status`,
      query: { fieldManager: 'headgate' },
      contentType: 'application/merge-patch+json',
      body,
    });
    const { status } = response;
    if (status === 200) return this.#written(key, current, desired);
    if (status === 409 || status === 404) {
      // `set()` may have removed it in the meantime.
      if (!this.#entries.has(key)) return { result: 'unchanged' };
      await this.#services.read(key);
      return { result: 'conflict' };
    }
    if (status === 400 || status === 422) {
      this.#settle(key, desired, undefined);
      return { result: 'dropped', fault: refusalText(response) };
    }
    return failedBy(response);
  }

  #written(key: string, before: CurrentService, desired: DesiredService): WriteOutcome {
    const after = this.#services.get(key);
    this.#settle(key, desired, after);
    const entry = this.#entries.get(key);
    // While the answer was on its way, the watch may have shown that another writer put the agent's part back.
    const isReleased =
      entry?.desired === desired && desired.kind === 'release' && !this.#differs(after, desired);
    if (entry === undefined || isReleased) this.#forget(key);
    if (after !== undefined) this.#options.onWritten?.(before, after);
    // The first status follows the finalizer at once.
    return { result: 'done', isSpaced: desired.kind !== 'choosing' };
  }

  #differs(service: CurrentService | undefined, desired: DesiredService): boolean {
    return service !== undefined && this.#patch(service, desired) !== undefined;
  }

  #patch(current: CurrentService, desired: DesiredService): ServicePatch | undefined {
    const { clock, addFinalizer = true } = this.#options;
    return servicePatch(current, desired, { now: secondTime(clock.wall()), addFinalizer });
  }

  #settle(key: string, desired: DesiredService, service: CurrentService | undefined): void {
    const entry = this.#entries.get(key);
    if (entry?.desired === desired) entry.isSettled = true;
    this.#answer(key, service);
  }

  #forget(key: string): void {
    this.#entries.delete(key);
    this.#services.delete(key);
    this.#queue.delete(key);
    this.#answer(key, undefined);
  }

  /** Resolves the Service's requests: true if it has the finalizer and is not being deleted. */
  #answer(key: string, service: CurrentService | undefined): void {
    const isOfEntry = service !== undefined && service.uid === this.uidOf(key);
    const hasFinalizer = isOfEntry && !service.isDeleting && service.finalizers.includes(FINALIZER);
    this.#requests.get(key)?.resolve(hasFinalizer);
    this.#requests.delete(key);
  }

  #refuseRequests(): void {
    for (const key of [...this.#requests.keys()]) this.#answer(key, undefined);
  }
}

/** It may change in a moment: the dataplane has yet to confirm something, or the address is not stored yet. */
function isTentative(desired: DesiredService): boolean {
  if (desired.kind === 'choosing') return true;
  return desired.kind === 'serve' ? !desired.status.isSettled : !desired.isTornDown;
}

function isSameWait(before: DesiredService, desired: DesiredService): boolean {
  return before.kind === desired.kind && before.uid === desired.uid;
}

function pathOf(key: string): string {
  const [namespace = '', name = ''] = key.split('/', 2);
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/services/${encodeURIComponent(name)}`;
}
