// Writes into the status of each AddressPool of the cluster how many of its addresses are free, used, held and
// conflicting. `write()` returns at once; the agent that leads writes each difference, each pool at most once a second.
// Owns a queue with its timer; uses the network only through KubernetesApi.

import { ADDRESS_API_VERSION } from '../object-names.ts';
import { failedBy, type WriteOutcome, WriteQueue, type WriterOptions } from './write-queue.ts';

export interface PoolStatusWriterOptions extends WriterOptions {
  /** The value of poolStatusManifest(); undefined if the cluster has no such pool. */
  readonly desired: (name: string) => object | undefined;
}

/** Writes per second, and at once. */
const RATE = 2;
const BURST = 10;
/** Between two writes of one pool. */
const SPACING_MS = 1_000;

export class PoolStatusWriter {
  readonly #options: PoolStatusWriterOptions;
  readonly #queue: WriteQueue;
  /** Name → the JSON text of the last write. */
  readonly #written = new Map<string, string>();

  constructor(options: PoolStatusWriterOptions) {
    this.#options = options;
    const { desired } = options;
    this.#queue = new WriteQueue({
      ...options,
      write: (name) => this.#write(name),
      check: (name) =>
        JSON.stringify(desired(name)) === this.#written.get(name) ? Number.POSITIVE_INFINITY : 0,
      faultTitle: 'Cannot write the status of an AddressPool',
      spacingMs: SPACING_MS,
      rate: RATE,
      burst: BURST,
    });
  }

  /** Why the last write failed, '' if it did not. */
  get fault(): string {
    return this.#queue.fault;
  }

  /** The desired status of these pools may have changed. */
  write(names: Iterable<string>): void {
    for (const name of names) {
      // A pool that is deleted and created again has no status, even if it is to have the same.
      if (this.#options.desired(name) === undefined) this.#written.delete(name);
      this.#queue.add(name);
    }
  }

  /** This agent begins or ceases to lead; another agent may have written in the meantime. */
  lead(isLeader: boolean): void {
    this.#written.clear();
    this.#queue.lead(isLeader);
  }

  close(): Promise<void> {
    return this.#queue.close();
  }

  async #write(name: string): Promise<WriteOutcome> {
    const { api, isLeader, desired } = this.#options;
    const body = desired(name);
    if (body === undefined) this.#written.delete(name);
    if (body === undefined || !isLeader()) return { result: 'unchanged' };
    const response = await api.request({
      method: 'PATCH',
      path: `/apis/${ADDRESS_API_VERSION}/addresspools/${encodeURIComponent(name)}/status`,
      query: { fieldManager: 'headgate', force: 'true' },
      contentType: 'application/apply-patch+yaml',
      body,
    });
    // The pool is gone; a server-side apply of a status creates no object.
    if (response.status === 404) {
      this.#written.delete(name);
      return { result: 'unchanged' };
    }
    if (response.status !== 200) return failedBy(response);
    this.#written.set(name, JSON.stringify(body));
    return { result: 'done' };
  }
}
