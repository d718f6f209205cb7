// Leader election over a Lease (coordination.k8s.io/v1): one agent of many writes to the cluster.
// Every write is guarded by resourceVersion; a Lease has expired when its record has not changed for its duration on our
// own monotonic clock, so that no two clocks are ever compared. Owns its timers; talks only through KubernetesApi.

import { type Clock, microTime } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import type { Log } from '../../host/log.ts';
import { accept } from '../api/api-answer.ts';
import type { ApiResponse, KubernetesApi } from '../api/kubernetes-api.ts';

/** Its name; deploy/rbac.yaml has it. */
export const LEASE = 'headgate';

/** Forbidden; no such namespace. */
const BARRED = [403, 404];

export interface LeaseOptions {
  readonly api: KubernetesApi;
  readonly clock: Clock;
  readonly log: Log;
  readonly namespace: string;
  readonly name: string;
  /** Who we are, the same after a restart and different on every host. */
  readonly identity: string;
  /** Milliseconds, whole seconds: others wait so long after the last renewal before they take over. */
  readonly duration?: number;
  /** Milliseconds, less than `duration`: so long after the last confirmed renewal we still count as the leader. */
  readonly renewDeadline?: number;
  /** Milliseconds between two attempts. */
  readonly retry?: number;
  /**
   * Whether this agent can tell how Services are served, default true. While it cannot it gives the Lease to others, and
   * takes it only where nobody else wants it.
   */
  readonly isFit?: () => boolean;
  /** Called at each change, beginning with the first true. */
  readonly onLeader: (isLeader: boolean) => void;
  /** `isBarred` is another one. */
  readonly onBarred?: () => void;
  readonly random?: () => number;
}

/** What the last answer said about the Lease. */
interface Seen {
  readonly resourceVersion: string;
  /** '' where it is free. */
  readonly holder: string;
  /** Milliseconds. */
  readonly duration: number;
  readonly acquireTime: string;
  readonly transitions: number;
  /** When this resourceVersion was seen first, by the monotonic clock. */
  readonly at: number;
}

export class Lease {
  readonly #options: Required<LeaseOptions>;
  readonly #path: string;
  #seen: Seen | undefined;
  /** When the renewal that was confirmed last was sent; what others saw of it, they saw later. */
  #confirmed = Number.NEGATIVE_INFINITY;
  #told = false;
  /** It was so at an attempt since the Lease was offered to others last. */
  #wasFit = false;
  readonly #fault = new Fault();
  #isBarred = false;
  /** Of the last answer, 0 before any. */
  #status = 0;
  #isClosed = false;
  #attempting: Promise<void> = Promise.resolve();
  #cancelAttempt = () => {};
  #cancelDeadline = () => {};

  constructor(options: LeaseOptions) {
    this.#options = {
      duration: 15_000,
      renewDeadline: 10_000,
      retry: 2_000,
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

  /** By the clock, not by what was told: also true to the millisecond after the event loop was held up. */
  get isLeader(): boolean {
    const { clock, renewDeadline } = this.#options;
    return !this.#isClosed && clock.monotonic() < this.#confirmed + renewDeadline;
  }

  /** Who held it when it was last seen; '' for nobody or not known. */
  get holder(): string {
    return this.#seen?.holder ?? '';
  }

  /** What keeps us from taking part, '' where nothing does. */
  get fault(): string {
    return this.#fault.text;
  }

  /** The API server does not let us take part, and so no agent with our rights. */
  get isBarred(): boolean {
    return this.#isBarred;
  }

  /** Stops, and frees the Lease if it is ours, so that another need not wait for it to expire. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelAttempt();
    this.#cancelDeadline();
    this.#tell();
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
    this.#tell();
    this.#tellBarred();
    const { retry, random } = this.#options;
    // Those who only wait for it do not all come at once.
    this.#next(wait ?? (this.isLeader ? retry : retry * (1 + random() * 0.2)));
  }

  /** Renews or takes the Lease if that may be; gives the time until the next attempt where it is not the usual one. */
  async #attempt(): Promise<number | undefined> {
    if (this.#options.isFit()) this.#wasFit = true;
    else if (this.#wasFit && this.isLeader) return this.#offer();
    if (this.#seen?.holder === this.#options.identity && this.isLeader) {
      const isRenewed = await this.#put(this.#seen);
      if (isRenewed) return undefined;
    }
    const response = await this.#request('GET');
    if (response.status === 404) {
      await this.#create();
      return undefined;
    }
    const seen = this.#see(accept(response));
    if (seen.holder !== this.#options.identity) this.#confirmed = Number.NEGATIVE_INFINITY;
    if (this.#isClosed || !this.#mayTake(seen)) return undefined;
    const isTaken = await this.#put(seen);
    return isTaken ? undefined : this.#options.retry * this.#options.random();
  }

  /** Others are asked once: where nobody wants the Lease there is nobody to ask again. */
  async #offer(): Promise<undefined> {
    this.#wasFit = false;
    this.#confirmed = Number.NEGATIVE_INFINITY;
    this.#tell();
    await this.#release();
  }

  #mayTake({ holder, duration, at }: Seen): boolean {
    const { identity, clock, isFit } = this.#options;
    if (!isFit()) return clock.monotonic() >= at + Math.max(duration, this.#options.duration);
    return holder === '' || holder === identity || clock.monotonic() >= at + duration;
  }

  /** Remembers an answer; a record that we know keeps the time when it was first seen. */
  #see(body: unknown): Seen {
    const { metadata = {}, spec = {} } = body as LeaseJson;
    const { resourceVersion = '' } = metadata;
    const at =
      this.#seen?.resourceVersion === resourceVersion ? this.#seen.at : this.#options.clock.monotonic();
    this.#seen = {
      resourceVersion,
      holder: spec?.holderIdentity ?? '',
      duration: (spec?.leaseDurationSeconds ?? 0) * 1000,
      acquireTime: spec?.acquireTime ?? '',
      transitions: spec?.leaseTransitions ?? 0,
      at,
    };
    return this.#seen;
  }

  async #create(): Promise<void> {
    const now = microTime(this.#options.clock.wall());
    await this.#write('POST', { name: this.#options.name }, this.#spec(now, now, 0));
  }

  /** Writes ourselves into it; false where somebody was faster. */
  async #put(seen: Seen): Promise<boolean> {
    const { identity, name, clock } = this.#options;
    const now = microTime(clock.wall());
    const isOurs = seen.holder === identity;
    const acquired = isOurs && seen.acquireTime !== '' ? seen.acquireTime : now;
    const spec = this.#spec(acquired, now, seen.transitions + (isOurs ? 0 : 1));
    return this.#write('PUT', { name, resourceVersion: seen.resourceVersion }, spec);
  }

  #spec(acquireTime: string, renewTime: string, leaseTransitions: number): LeaseSpecJson {
    const { identity, duration } = this.#options;
    const leaseDurationSeconds = Math.max(1, Math.ceil(duration / 1000));
    return { holderIdentity: identity, leaseDurationSeconds, acquireTime, renewTime, leaseTransitions };
  }

  async #write(method: 'POST' | 'PUT', metadata: object, spec: LeaseSpecJson): Promise<boolean> {
    const sent = this.#options.clock.monotonic();
    const response = await this.#request(method, body(metadata, spec));
    // To make one there is no namespace: that must be said.
    if (response.status === 409 || (response.status === 404 && method === 'PUT')) return false;
    this.#see(accept(response));
    this.#confirmed = sent;
    return true;
  }

  async #release(): Promise<void> {
    const { identity, name, clock } = this.#options;
    for (let attempt = 0; attempt < 2; attempt++) {
      // A renewal of which no answer came may have been carried out: the version that we know may be old.
      if (attempt > 0) this.#see(accept(await this.#request('GET')));
      const seen = this.#seen;
      if (seen?.holder !== identity) return;
      const now = microTime(clock.wall());
      const { resourceVersion, transitions: leaseTransitions } = seen;
      const spec = { leaseDurationSeconds: 1, acquireTime: now, renewTime: now, leaseTransitions };
      const { status } = await this.#request('PUT', body({ name, resourceVersion }, spec));
      if (status !== 409) return;
    }
  }

  async #request(method: 'GET' | 'POST' | 'PUT', json?: unknown): Promise<ApiResponse> {
    const { api, name, renewDeadline } = this.#options;
    const path = method === 'POST' ? this.#path : `${this.#path}/${encodeURIComponent(name)}`;
    this.#status = 0;
    const response = await api.request({
      method,
      path,
      timeoutMs: renewDeadline / 2,
      ...(json ? { body: json } : {}),
    });
    this.#status = response.status;
    return response;
  }

  /** Tells of a change, and sees to it that the end of our time is told without any answer. */
  #tell(): void {
    const { isLeader } = this;
    this.#cancelDeadline();
    if (isLeader) {
      const { clock, renewDeadline } = this.#options;
      const left = this.#confirmed + renewDeadline - clock.monotonic();
      this.#cancelDeadline = clock.after(Math.ceil(left), () => this.#tell());
    }
    if (isLeader === this.#told) return;
    this.#told = isLeader;
    this.#options.log.info(isLeader ? 'This agent writes to the cluster now' : 'This agent writes no more');
    this.#options.onLeader(isLeader);
  }

  /** No answer, or one that says to come again, says nothing of it. */
  #tellBarred(): void {
    const isBarred = this.#fault.text !== '' && (BARRED.includes(this.#status) || this.#isBarred);
    if (isBarred === this.#isBarred) return;
    this.#isBarred = isBarred;
    this.#options.onBarred();
  }

  #note(fault: string): void {
    if (this.#fault.set(fault) && fault !== '')
      this.#options.log.warn(`Cannot take part in the election: ${fault}`);
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
