// Leader election with a Lease (coordination.k8s.io/v1): one agent of many writes to the cluster.
// Each write is guarded by resourceVersion. A Lease has expired when it has not changed for its duration by this host's
// monotonic clock, so that the clocks of two hosts are never compared.
// Owns its timers; uses the network only through KubernetesApi.

import { microTime } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import { accept } from '../api/api-answer.ts';
import type { ApiResponse } from '../api/kubernetes-api.ts';
import type { WriterOptions } from './write-queue.ts';

/** The name of the Lease, as in deploy/kubernetes/rbac.yaml. */
export const LEASE = 'headgate';

/** Forbidden; no such namespace. */
const BARRED_STATUSES = [403, 404];

export interface LeaseOptions extends Omit<WriterOptions, 'isLeader'> {
  readonly namespace: string;
  readonly name: string;
  /** The same after a restart, and different on every host. */
  readonly identity: string;
  readonly times?: LeaseTimes;
  /**
   * True if this agent knows which Services are served, as by default. Otherwise it releases the Lease, and takes it only
   * if no other agent does.
   */
  readonly isFit?: () => boolean;
  /** Called at each change, the first time with true. */
  readonly onLeader: (isLeader: boolean) => void;
  /** `isBarred` has changed. */
  readonly onBarred?: () => void;
}

export interface LeaseTimes {
  /** Whole seconds: another agent takes over so long after the last renewal. */
  readonly durationMs: number;
  /** Less than `durationMs`: this agent leads for so long after its last confirmed renewal. */
  readonly renewDeadlineMs: number;
  /** Between two attempts. */
  readonly retryMs: number;
}

const TIMES: LeaseTimes = { durationMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000 };

/** The Lease in the last answer. */
interface SeenLease {
  readonly resourceVersion: string;
  /** '' if it is free. */
  readonly holder: string;
  readonly durationMs: number;
  readonly acquireTime: string;
  readonly transitions: number;
  /** When this resourceVersion was first seen, by the monotonic clock. */
  readonly since: number;
}

export class Lease {
  readonly #options: Required<LeaseOptions>;
  readonly #path: string;
  #lastSeen: SeenLease | undefined;
  /** When the last confirmed renewal was sent; other agents have seen it later. */
  #confirmed = Number.NEGATIVE_INFINITY;
  #wasLeader = false;
  /** The agent was fit at an attempt since it last offered the Lease to other agents. */
  #wasFit = false;
  readonly #fault = new Fault();
  #isBarred = false;
  /** The status of the last answer; 0 if there was none. */
  #status = 0;
  #isClosed = false;
  #attempting: Promise<void> = Promise.resolve();
  #cancelAttempt = () => {};
  #cancelDeadline = () => {};

  constructor(options: LeaseOptions) {
    this.#options = {
      times: TIMES,
      isFit: () => true,
      onBarred: () => undefined,
      random: Math.random,
      ...options,
    };
    const { namespace } = options;
    this.#path = `/apis/coordination.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/leases`;
  }

  start(): void {
    this.#next(0);
  }

  /** By the clock, so that it is exact even if the event loop was blocked. */
  get isLeader(): boolean {
    const { clock, times } = this.#options;
    return !this.#isClosed && clock.monotonic() < this.#confirmed + times.renewDeadlineMs;
  }

  /** The last known holder's identity; '' if there is none, or it is unknown. */
  get holder(): string {
    return this.#lastSeen?.holder ?? '';
  }

  /** Why the last attempt failed, '' if it did not. */
  get fault(): string {
    return this.#fault.text;
  }

  /** The API server refuses the Lease to this agent, and so to all agents with the same rights. */
  get isBarred(): boolean {
    return this.#isBarred;
  }

  /** Stops, and releases the Lease if this agent holds it, so that another one need not wait for its expiry. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelAttempt();
    this.#cancelDeadline();
    this.#report();
    await this.#attempting;
    try {
      await this.#release();
    } catch (error) {
      this.#options.log.debug('Cannot release the Lease; it will expire', { error });
    }
  }

  #next(wait: number): void {
    if (this.#isClosed) return;
    this.#cancelAttempt = this.#options.clock.after(wait, () => {
      this.#attempting = this.#turn();
    });
  }

  async #turn(): Promise<void> {
    let wait: number | undefined;
    try {
      wait = await this.#attempt();
      this.#note('');
    } catch (error) {
      this.#note(messageOf(error));
    }
    this.#report();
    this.#reportBarred();
    const { times, random } = this.#options;
    // Agents that wait for the Lease do not all try at once.
    this.#next(wait ?? (this.isLeader ? times.retryMs : times.retryMs * (1 + random() * 0.2)));
  }

  /** Renews or takes the Lease if it may; gives the time until the next attempt, undefined for the usual one. */
  async #attempt(): Promise<number | undefined> {
    if (this.#options.isFit()) this.#wasFit = true;
    else if (this.#wasFit && this.isLeader) return this.#offer();
    if (this.#lastSeen?.holder === this.#options.identity && this.isLeader) {
      if (await this.#put(this.#lastSeen)) return undefined;
    }
    const response = await this.#request('GET');
    if (response.status === 404) {
      await this.#put();
      return undefined;
    }
    const seen = this.#see(accept(response));
    if (seen.holder !== this.#options.identity) this.#confirmed = Number.NEGATIVE_INFINITY;
    if (this.#isClosed || !this.#mayTake(seen)) return undefined;
    return (await this.#put(seen)) ? undefined : this.#options.times.retryMs * this.#options.random();
  }

  /** Releases the Lease once: if no other agent takes it, this one does again. */
  async #offer(): Promise<undefined> {
    this.#wasFit = false;
    this.#confirmed = Number.NEGATIVE_INFINITY;
    this.#report();
    await this.#release();
  }

  #mayTake({ holder, durationMs, since }: SeenLease): boolean {
    const { identity, clock, isFit } = this.#options;
    if (!isFit()) return clock.monotonic() >= since + Math.max(durationMs, this.#options.times.durationMs);
    return holder === '' || holder === identity || clock.monotonic() >= since + durationMs;
  }

  /** Remembers an answer; a known version keeps the time when it was first seen. */
  #see(body: unknown): SeenLease {
    const { metadata = {}, spec = {} } = body as LeaseJson;
    const { resourceVersion = '' } = metadata;
    const isKnown = this.#lastSeen?.resourceVersion === resourceVersion;
    const since = (isKnown ? this.#lastSeen?.since : undefined) ?? this.#options.clock.monotonic();
    this.#lastSeen = {
      resourceVersion,
      holder: spec?.holderIdentity ?? '',
      durationMs: (spec?.leaseDurationSeconds ?? 0) * 1000,
      acquireTime: spec?.acquireTime ?? '',
      transitions: spec?.leaseTransitions ?? 0,
      since,
    };
    return this.#lastSeen;
  }

  /** Creates, takes or renews the Lease; false if another agent was faster. */
  async #put(seen?: SeenLease): Promise<boolean> {
    const { identity, name, clock, times } = this.#options;
    const now = microTime(clock.wall());
    const isHolder = seen?.holder === identity;
    const sent = clock.monotonic();
    const spec: LeaseSpecJson = {
      holderIdentity: identity,
      leaseDurationSeconds: Math.max(1, Math.ceil(times.durationMs / 1000)),
      acquireTime: isHolder && seen.acquireTime !== '' ? seen.acquireTime : now,
      renewTime: now,
      leaseTransitions: seen === undefined ? 0 : seen.transitions + (isHolder ? 0 : 1),
    };
    const metadata = seen === undefined ? { name } : { name, resourceVersion: seen.resourceVersion };
    const response = await this.#request(seen === undefined ? 'POST' : 'PUT', body(metadata, spec));
    const { status } = response;
    // A 404 to a POST means that there is no namespace, which is a fault.
    if (status === 409 || (status === 404 && seen !== undefined)) return false;
    this.#see(accept(response));
    this.#confirmed = sent;
    return true;
  }

  async #release(): Promise<void> {
    const { identity, name, clock } = this.#options;
    for (let attempt = 0; attempt < 2; attempt++) {
      // A renewal without an answer may have changed the version.
      if (attempt > 0) this.#see(accept(await this.#request('GET')));
      const seen = this.#lastSeen;
      if (seen?.holder !== identity) return;
      const now = microTime(clock.wall());
      const { resourceVersion, transitions: leaseTransitions } = seen;
      const spec = { leaseDurationSeconds: 1, acquireTime: now, renewTime: now, leaseTransitions };
      const { status } = await this.#request('PUT', body({ name, resourceVersion }, spec));
      if (status !== 409) return;
    }
  }

  async #request(method: 'GET' | 'POST' | 'PUT', json?: unknown): Promise<ApiResponse> {
    const { api, name, times } = this.#options;
    const path = method === 'POST' ? this.#path : `${this.#path}/${encodeURIComponent(name)}`;
    this.#status = 0;
    const response = await api.request({
      method,
      path,
      timeoutMs: times.renewDeadlineMs / 2,
      ...(json ? { body: json } : {}),
    });
    this.#status = response.status;
    return response;
  }

  /** Reports a change of `isLeader`, and sets a timer that reports its end without any answer. */
  #report(): void {
    const { isLeader } = this;
    this.#cancelDeadline();
    if (isLeader) {
      const { clock, times } = this.#options;
      const left = this.#confirmed + times.renewDeadlineMs - clock.monotonic();
      this.#cancelDeadline = clock.after(Math.ceil(left), () => this.#report());
    }
    if (isLeader === this.#wasLeader) return;
    this.#wasLeader = isLeader;
    this.#options.log.info(
      isLeader ? 'This agent writes to the cluster now' : 'This agent no longer writes to the cluster',
    );
    this.#options.onLeader(isLeader);
  }

  /** A missing answer, or one that asks for a retry, changes nothing. */
  #reportBarred(): void {
    const isBarred = this.#fault.text !== '' && (BARRED_STATUSES.includes(this.#status) || this.#isBarred);
    if (isBarred === this.#isBarred) return;
    this.#isBarred = isBarred;
    this.#options.onBarred();
  }

  #note(fault: string): void {
    if (!this.#fault.set(fault) || fault === '') return;
    const { log } = this.#options;
    const message = `Cannot take part in the leader election: ${fault}`;
    // An API server that does not answer is already in the log, because it cannot be read either.
    if (this.#status === 0) log.debug(message);
    else log.warn(message);
  }
}

interface LeaseSpecJson {
  readonly holderIdentity?: string | null;
  readonly leaseDurationSeconds?: number | null;
  readonly acquireTime?: string | null;
  readonly renewTime?: string | null;
  readonly leaseTransitions?: number | null;
}

interface LeaseJson {
  readonly metadata?: { readonly resourceVersion?: string };
  readonly spec?: LeaseSpecJson | null;
}

function body(metadata: object, spec: LeaseSpecJson): object {
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec };
}
