// Brings AddressClaims in the cluster to what they shall be: created, replaced, deleted, each guarded by the version that
// it replaces. Takes names at any time and returns at once; writes while this agent leads. Never overwrites what it has
// not seen: after a conflict it reads, tells what is there, and asks again what shall be.
// Owns a queue with its timer; talks only through KubernetesApi.

import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import { sameValue } from '../../base/same-value.ts';
import type { Log } from '../../host/log.ts';
import type { AddressClaim, StoredClaim } from '../address-claim.ts';
import { claimManifest } from '../address-objects.ts';
import { refusalText, waitAsked } from '../api/api-answer.ts';
import type { ApiResponse, KubernetesApi } from '../api/kubernetes-api.ts';
import { ADDRESS_API_VERSION } from '../object-names.ts';
import { parseObject } from '../parse-object.ts';
import type { ClaimStore, ClaimStoreOptions } from './claim-store.ts';
import { type WriteOutcome, WriteQueue } from './write-queue.ts';

export interface ClaimWriterOptions extends ClaimStoreOptions {
  readonly api: KubernetesApi;
  readonly clock: Clock;
  readonly log: Log;
  readonly isLeader: () => boolean;
  /** As the watch shows it. */
  readonly stored: (name: string) => StoredClaim | undefined;
  /** A claim of another Service that was there before ours could be made: it holds. */
  readonly onOverruled: (claim: AddressClaim) => void;
  /** Resolves with true once something may be done for the Service outside, see StatusWriter. */
  readonly requestFinalizer: (service: string, uid: string) => Promise<boolean>;
  readonly metrics?: ClaimWriterMetrics;
  readonly random?: () => number;
}

export interface ClaimWriterMetrics {
  claimWritten(result: 'done' | 'conflict' | 'failed'): void;
}

/** Writes a second, and at once: a Service waits for each. */
const RATE = 50;
const BURST = 100;
const CONCURRENCY = 8;
/** Milliseconds until a Service that cannot be marked is tried again, and for which an answer is waited for. */
const UNMARKED = 2_000;
const MARKING = 10_000;

const PATH = `/apis/${ADDRESS_API_VERSION}/addressclaims`;

/** What we wrote or read ourselves, until the watch shows something else than it did then. */
interface Known {
  readonly claim: StoredClaim | undefined;
  /** The version that the watch showed then. */
  readonly shown: string | undefined;
}

export class ClaimWriter implements ClaimStore {
  readonly #options: ClaimWriterOptions;
  readonly #queue: WriteQueue;
  readonly #known = new Map<string, Known>();
  readonly #fault = new Fault();

  constructor(options: ClaimWriterOptions) {
    this.#options = options;
    const { clock, random = Math.random } = options;
    this.#queue = new WriteQueue({
      write: (name) => this.#write(name),
      clock,
      random,
      rate: RATE,
      burst: BURST,
      concurrency: CONCURRENCY,
    });
  }

  /** Claims that are yet to be written. */
  get waiting(): number {
    return this.#queue.size;
  }

  /** Why the last write failed, '' where it did not. */
  get fault(): string {
    return this.#fault.text;
  }

  write(names: Iterable<string>): void {
    for (const name of names) this.#queue.add(name);
  }

  /** The watch shows something else: it knows better than what we remember. */
  observed(name: string): void {
    this.#known.delete(name);
  }

  /** This agent begins or ceases to lead. */
  lead(isLeader: boolean): void {
    this.#fault.clear();
    if (!isLeader) {
      this.#queue.pause();
      return;
    }
    this.#known.clear();
    this.#queue.resume();
  }

  close(): Promise<void> {
    return this.#queue.close();
  }

  async #write(name: string): Promise<WriteOutcome> {
    const { wanted, isLeader } = this.#options;
    const shall = wanted(name);
    const isNew = shall !== undefined && shall.serviceUID !== '' && this.#current(name) === undefined;
    try {
      // The finalizer first: a Service that goes now must not leave its address behind.
      if (isNew && shall.heldUntil === 0 && !(await this.#hasFinalizer(shall)))
        return { later: true, wait: UNMARKED };
      if (!isLeader()) return 'done';
      // Both may be others by now.
      return await this.#send(name, this.#current(name), wanted(name));
    } catch (error) {
      this.#note('failed', messageOf(error));
      return { later: true };
    }
  }

  /** One that gets no answer must not hold up all others. */
  async #hasFinalizer({ service, serviceUID }: AddressClaim): Promise<boolean> {
    const { clock, requestFinalizer } = this.#options;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const cancel = clock.after(MARKING, () => resolve(false));
    const answer = await Promise.race([requestFinalizer(service, serviceUID), promise]);
    cancel();
    return answer;
  }

  async #send(
    name: string,
    current: StoredClaim | undefined,
    shall: AddressClaim | undefined,
  ): Promise<WriteOutcome> {
    const { api, onKept } = this.#options;
    if (sameValue(current?.claim, shall)) {
      onKept(name, shall);
      return 'done';
    }
    const path = `${PATH}/${encodeURIComponent(name)}`;
    const shown = this.#shown(name)?.resourceVersion;
    if (shall === undefined && current !== undefined) {
      const { uid, resourceVersion } = current;
      const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid, resourceVersion } };
      const response = await api.request({ method: 'DELETE', path, body });
      return this.#settle(name, response, shown, undefined);
    }
    if (shall === undefined) return 'done';
    const body = claimManifest(shall, current?.resourceVersion);
    const response = await (current === undefined
      ? api.request({ method: 'POST', path: PATH, body })
      : api.request({ method: 'PUT', path, body }));
    return this.#settle(name, response, shown, shall);
  }

  async #settle(
    name: string,
    response: ApiResponse,
    shown: string | undefined,
    claim: AddressClaim | undefined,
  ): Promise<WriteOutcome> {
    const { status } = response;
    if (status === 200 || status === 201 || (status === 404 && claim === undefined)) {
      this.#known.set(name, { claim: claim && storedIn(response), shown });
      this.#note('done', '');
      this.#options.onKept(name, claim);
      // What is wanted may have changed on the way.
      return sameValue(this.#options.wanted(name), claim) ? 'done' : 'again';
    }
    if (status === 409 || status === 404) {
      this.#note('conflict', '');
      const known = this.#current(name)?.claim.service;
      const there = await this.#read(name);
      // Who led before has given the address, or kept it, without this host's knowing.
      if (there !== undefined && ![known, claim?.service].includes(there.claim.service))
        this.#options.onOverruled(there.claim);
      return 'again';
    }
    this.#note('failed', refusalText(response));
    const wait = waitAsked(response);
    return { later: true, ...(wait === undefined ? {} : { wait }) };
  }

  async #read(name: string): Promise<StoredClaim | undefined> {
    const path = `${PATH}/${encodeURIComponent(name)}`;
    const response = await this.#options.api.request({ method: 'GET', path });
    if (response.status !== 200 && response.status !== 404) throw new Error(refusalText(response));
    const claim = response.status === 200 ? storedIn(response) : undefined;
    if (response.status === 200 && claim === undefined)
      throw new Error(`AddressClaim ${name} is there already, and cannot be read`);
    this.#known.set(name, { claim, shown: this.#shown(name)?.resourceVersion });
    return claim;
  }

  /** The newest that is known without asking. */
  #current(name: string): StoredClaim | undefined {
    const shown = this.#shown(name);
    const known = this.#known.get(name);
    if (known === undefined) return shown;
    if (shown?.resourceVersion === known.shown) return known.claim;
    this.#known.delete(name);
    return shown;
  }

  /** A claim of a manifest is not in the cluster. */
  #shown(name: string): StoredClaim | undefined {
    const stored = this.#options.stored(name);
    return stored?.uid === '' ? undefined : stored;
  }

  #note(result: 'done' | 'conflict' | 'failed', fault: string): void {
    this.#options.metrics?.claimWritten(result);
    if (result !== 'conflict' && this.#fault.set(fault) && fault !== '')
      this.#options.log.warn(`Cannot write a claim on an address: ${fault}`);
  }
}

function storedIn({ body }: ApiResponse): StoredClaim | undefined {
  const [object] = parseObject(body, '').objects;
  return object?.kind === 'AddressClaim' ? object : undefined;
}
