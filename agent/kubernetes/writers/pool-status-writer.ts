// Says in the status of each AddressPool of the cluster how many of its addresses are free, used, held and conflicting.
// Takes names at any time; writes while this agent leads, only what differs, each pool once in a few seconds.
// Owns a queue with its timer; talks only through KubernetesApi.

import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import type { Log } from '../../host/log.ts';
import { refusalText, waitAsked } from '../api/api-answer.ts';
import type { KubernetesApi } from '../api/kubernetes-api.ts';
import { ADDRESS_API_VERSION } from '../object-names.ts';
import { type WriteOutcome, WriteQueue } from './write-queue.ts';

export interface PoolStatusWriterOptions {
  readonly api: KubernetesApi;
  readonly clock: Clock;
  readonly log: Log;
  readonly isLeader: () => boolean;
  /** What poolStatusManifest() gives; undefined where the cluster has no such pool. */
  readonly wanted: (name: string) => object | undefined;
  /** Milliseconds between two writes of one pool. */
  readonly spacing?: number;
  readonly random?: () => number;
}

/** Writes a second, and at once. */
const RATE = 2;
const BURST = 10;
const SPACING = 5_000;

export class PoolStatusWriter {
  readonly #options: PoolStatusWriterOptions;
  readonly #queue: WriteQueue;
  /** Name → what was written last. */
  readonly #written = new Map<string, string>();
  readonly #fault = new Fault();

  constructor(options: PoolStatusWriterOptions) {
    this.#options = options;
    const { clock, spacing = SPACING, random = Math.random } = options;
    this.#queue = new WriteQueue({
      write: (name) => this.#write(name),
      check: (name) => (this.#textOf(name) === this.#written.get(name) ? Number.POSITIVE_INFINITY : 0),
      clock,
      random,
      spacing,
      rate: RATE,
      burst: BURST,
    });
  }

  /** Why the last write failed, '' where it did not. */
  get fault(): string {
    return this.#fault.text;
  }

  /** Something about these pools has changed. */
  write(names: Iterable<string>): void {
    for (const name of names) {
      // One that is made anew has no status, even where it is to have the same.
      if (this.#options.wanted(name) === undefined) this.#written.delete(name);
      this.#queue.add(name);
    }
  }

  /** This agent begins or ceases to lead. */
  lead(isLeader: boolean): void {
    // Another may have written meanwhile.
    this.#written.clear();
    this.#fault.clear();
    if (isLeader) this.#queue.resume();
    else this.#queue.pause();
  }

  close(): Promise<void> {
    return this.#queue.close();
  }

  async #write(name: string): Promise<WriteOutcome> {
    const { api, isLeader, wanted } = this.#options;
    const body = wanted(name);
    if (body === undefined) this.#written.delete(name);
    if (body === undefined || !isLeader()) return 'done';
    const text = JSON.stringify(body);
    try {
      const response = await api.request({
        method: 'PATCH',
        path: `/apis/${ADDRESS_API_VERSION}/addresspools/${encodeURIComponent(name)}/status`,
        query: { fieldManager: 'headgate', force: 'true' },
        contentType: 'application/apply-patch+yaml',
        body,
      });
      if (response.status === 200) {
        this.#written.set(name, text);
        this.#note('');
        return 'done';
      }
      // It is gone: server-side apply must not make it again, and does not below /status.
      if (response.status === 404) {
        this.#written.delete(name);
        return 'done';
      }
      this.#note(refusalText(response));
      const wait = waitAsked(response);
      return { later: true, ...(wait === undefined ? {} : { wait }) };
    } catch (error) {
      this.#note(messageOf(error));
      return { later: true };
    }
  }

  #textOf(name: string): string | undefined {
    const body = this.#options.wanted(name);
    return body && JSON.stringify(body);
  }

  #note(fault: string): void {
    if (this.#fault.set(fault) && fault !== '')
      this.#options.log.warn(`Cannot write the status of an AddressPool: ${fault}`);
  }
}
