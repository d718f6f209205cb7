// Brings AddressClaims in the cluster to their desired state: creates, replaces and deletes them, each request guarded by
// the version that it replaces. `write()` returns at once; the agent that leads writes. After a conflict it reads the
// claim, reports what the cluster has, and compares again.
// Owns a queue with its timer; uses the network only through KubernetesApi.

import { sameValue } from '../../base/same-value.ts';
import { type AddressClaim, claimManifest, type StoredClaim } from '../address-claim.ts';
import type { ApiRequest } from '../api/kubernetes-api.ts';
import { ADDRESS_API_VERSION } from '../object-names.ts';
import { parseObject } from '../parse-object.ts';
import { LatestObjects } from './latest-objects.ts';
import {
  failedBy,
  type WriteOutcome,
  WriteQueue,
  type WriteResult,
  type WriterOptions,
} from './write-queue.ts';

/** A store of AddressClaims that outlives the agent: the cluster, or a file (claim-file.ts). */
export interface ClaimStoreOptions {
  /** undefined if there must be no claim of this name. */
  readonly desired: (name: string) => AddressClaim | undefined;
  /** The store has this claim, or none (undefined), and keeps it over a crash. */
  readonly onKept: (name: string, claim: AddressClaim | undefined) => void;
}

export interface ClaimWriterOptions extends WriterOptions, ClaimStoreOptions {
  /** The claim as the watch shows it. */
  readonly stored: (name: string) => StoredClaim | undefined;
  /** The cluster has a claim of another Service, made before this agent could make its own: that one counts. */
  readonly onOverruled: (claim: AddressClaim) => void;
  /** Resolves with true once a new claim of the Service may be written, see AddressKeeper. */
  readonly mayClaim: (service: string, uid: string) => Promise<boolean>;
  readonly metrics?: ClaimWriterMetrics;
}

export interface ClaimWriterMetrics {
  claimWritten(result: WriteResult): void;
}

/** A question that gets no answer must not hold up all others. */
const PERMISSION_TIMEOUT_MS = 10_000;
const PERMISSION_RETRY_MS = 2_000;

const PATH = `/apis/${ADDRESS_API_VERSION}/addressclaims`;

export class ClaimWriter {
  readonly #options: ClaimWriterOptions;
  readonly #queue: WriteQueue;
  readonly #claims: LatestObjects<StoredClaim>;
  /** Names of claims that did not exist when the address was chosen, until they are stored. */
  readonly #created = new Set<string>();

  constructor(options: ClaimWriterOptions) {
    this.#options = options;
    this.#claims = new LatestObjects({
      api: options.api,
      // A claim without a UID comes from a manifest: the cluster does not have it.
      shown: (name) => {
        const claim = options.stored(name);
        return claim?.uid === '' ? undefined : claim;
      },
      pathOf,
      parse: storedClaim,
    });
    this.#queue = new WriteQueue({
      ...options,
      write: (name) => this.#write(name),
      faultTitle: 'Cannot write an AddressClaim',
      onResult: (result) => options.metrics?.claimWritten(result),
    });
  }

  /** Why the last write failed, '' if it did not. */
  get fault(): string {
    return this.#queue.fault;
  }

  /** These claims are not as desired. `onKept` reports each claim that is stored. */
  write(names: Iterable<string>): void {
    for (const name of names) this.#queue.add(name);
  }

  /** Chosen because no claim had these names. Called before write(). */
  created(names: Iterable<string>): void {
    for (const name of names) this.#created.add(name);
  }

  /** The watch shows another claim: it is newer than what this agent wrote. */
  observed(name: string): void {
    this.#claims.delete(name);
  }

  /** This agent begins or ceases to lead. */
  lead(isLeader: boolean): void {
    this.#claims.clear();
    this.#created.clear();
    this.#queue.lead(isLeader);
  }

  close(): Promise<void> {
    return this.#queue.close();
  }

  async #write(name: string): Promise<WriteOutcome> {
    const { desired, isLeader } = this.#options;
    const claim = desired(name);
    const isNew = claim !== undefined && claim.serviceUID !== '' && this.#claims.get(name) === undefined;
    if (isNew && claim.heldUntil === 0 && !(await this.#mayClaim(claim))) {
      this.#queue.add(name, PERMISSION_RETRY_MS);
      return { result: 'unchanged' };
    }
    if (!isLeader()) return { result: 'unchanged' };
    // Both claims may have changed in the meantime.
    const current = this.#claims.get(name);
    if (current !== undefined && this.#created.has(name)) return this.#conflict(name, current, desired(name));
    return this.#send(name, current, desired(name));
  }

  async #mayClaim({ service, serviceUID }: AddressClaim): Promise<boolean> {
    const { clock, mayClaim } = this.#options;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const cancel = clock.after(PERMISSION_TIMEOUT_MS, () => resolve(false));
    const answer = await Promise.race([mayClaim(service, serviceUID), promise]);
    cancel();
    return answer;
  }

  async #send(
    name: string,
    current: StoredClaim | undefined,
    desired: AddressClaim | undefined,
  ): Promise<WriteOutcome> {
    if (sameValue(current?.claim, desired)) {
      this.#options.onKept(name, desired);
      return { result: 'unchanged' };
    }
    const response = await this.#claims.request(name, requestFor(name, current, desired));
    const { status } = response;
    if (status === 200 || status === 201 || (status === 404 && desired === undefined)) {
      this.#created.delete(name);
      this.#options.onKept(name, desired);
      // The desired claim may have changed in the meantime.
      if (!sameValue(this.#options.desired(name), desired)) this.#queue.add(name);
      return { result: 'done' };
    }
    if (status !== 409 && status !== 404) return failedBy(response);
    return this.#conflict(name, current, desired);
  }

  /** Another agent has written the claim, or the watch lags behind. */
  async #conflict(
    name: string,
    current: StoredClaim | undefined,
    desired: AddressClaim | undefined,
  ): Promise<WriteOutcome> {
    const isCreated = this.#created.delete(name);
    const inCluster = await this.#claims.read(name);
    // An agent that led before may have given the address to another Service.
    const isOverruled =
      inCluster !== undefined &&
      ![isCreated ? undefined : current?.claim.service, desired?.service].includes(inCluster.claim.service);
    if (isOverruled) this.#options.onOverruled(inCluster.claim);
    return { result: 'conflict' };
  }
}

/** One of the two claims is there. */
function requestFor(
  name: string,
  current: StoredClaim | undefined,
  desired: AddressClaim | undefined,
): ApiRequest {
  if (desired === undefined) {
    const preconditions = { uid: current?.uid, resourceVersion: current?.resourceVersion };
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions };
    return { method: 'DELETE', path: pathOf(name), body };
  }
  const body = claimManifest(desired, current?.resourceVersion);
  if (current === undefined) return { method: 'POST', path: PATH, body };
  return { method: 'PUT', path: pathOf(name), body };
}

function pathOf(name: string): string {
  return `${PATH}/${encodeURIComponent(name)}`;
}

function storedClaim(json: unknown): StoredClaim | undefined {
  const [object] = parseObject(json, '').objects;
  return object?.kind === 'AddressClaim' ? object : undefined;
}
