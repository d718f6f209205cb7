// Brings the statuses of Gateways, routes, Ingresses and their like in the API to what the agent has decided, each change of
// an object by one write. `set()` returns at once; the agent that leads writes each difference, in a limited number of
// requests per second.
// Owns a queue with its timer; uses the network only through KubernetesApi.

import { secondTime } from '../../base/clock.ts';
import { sameValue } from '../../base/same-value.ts';
import type { ObjectStatus } from '../../model/object-status.ts';
import { type StatusName, subjectOfName } from '../../model/object-statuses.ts';
import { refusalText } from '../api/api-answer.ts';
import { type CurrentObject, FIELD_MANAGER, readCurrentObject } from '../current-object.ts';
import { objectPath } from '../status-kinds.ts';
import { LatestObjects } from './latest-objects.ts';
import { objectStatusPatch } from './object-status-patch.ts';
import {
  failedBy,
  type WriteOutcome,
  WriteQueue,
  type WriteResult,
  type WriterOptions,
} from './write-queue.ts';

export interface ObjectStatusWriterOptions extends WriterOptions {
  /** The object as the watch shows it; undefined if it does not: it is gone then. */
  readonly currentObject: (name: StatusName) => CurrentObject | undefined;
  readonly metrics?: { statusWritten(result: WriteResult): void };
  readonly onWritten?: (before: CurrentObject, status: ObjectStatus) => void;
}

/** Between two writes of one object, so that a status that flaps, or a second writer, costs few requests. */
const SPACING_MS = 250;

interface Entry {
  readonly desired: ObjectStatus;
  /** The API server has it, or refuses it: no request until something changes. */
  isSettled: boolean;
}

export class ObjectStatusWriter {
  readonly #options: ObjectStatusWriterOptions;
  readonly #queue: WriteQueue;
  readonly #entries = new Map<StatusName, Entry>();
  readonly #objects: LatestObjects<CurrentObject>;

  constructor(options: ObjectStatusWriterOptions) {
    this.#options = options;
    this.#objects = new LatestObjects({
      api: options.api,
      shown: options.currentObject,
      pathOf: (name) => objectPath(subjectOfName(name)),
      parse: readCurrentObject,
    });
    this.#queue = new WriteQueue({
      ...options,
      write: (name) => this.#write(name),
      check: (name) => (this.#patchOf(name) === undefined ? Number.POSITIVE_INFINITY : 0),
      faultTitle: 'Cannot write the status of an object',
      onResult: (result) => options.metrics?.statusWritten(result),
      spacingMs: SPACING_MS,
    });
  }

  /** Why the last write failed, '' if it did not. */
  get fault(): string {
    return this.#queue.fault;
  }

  /** The desired status from now on; undefined: what the object has stays. It is written after `delayMs`. */
  set(name: StatusName, desired: ObjectStatus | undefined, delayMs = 0): void {
    if (desired === undefined) {
      this.#forget(name);
      return;
    }
    const before = this.#entries.get(name);
    const isSettled = before?.isSettled === true && sameValue(before.desired, desired);
    this.#entries.set(name, { desired, isSettled });
    if (!isSettled) this.#queue.add(name, delayMs);
  }

  /** The object has changed: if its status differs from the desired one now, it is written again. */
  observed(name: StatusName): void {
    const entry = this.#entries.get(name);
    if (entry === undefined) return;
    entry.isSettled = false;
    this.#queue.add(name);
  }

  /** This agent begins or ceases to lead. It checks all objects, because another agent may have written them. */
  lead(isLeader: boolean): void {
    this.#objects.clear();
    if (isLeader) for (const name of this.#entries.keys()) this.observed(name);
    this.#queue.lead(isLeader);
  }

  close(): Promise<void> {
    return this.#queue.close();
  }

  /** undefined if there is nothing to write. */
  #patchOf(name: StatusName): ReturnType<typeof objectStatusPatch> {
    const entry = this.#entries.get(name);
    const current = this.#objects.get(name);
    if (entry === undefined || current === undefined) return undefined;
    const { desired } = entry;
    // Another object of the same name, or a newer version of it, is translated soon: its status must not be an older one.
    if (current.uid !== desired.uid || current.generation > desired.generation) return undefined;
    return objectStatusPatch(current, desired, secondTime(this.#options.clock.wall()));
  }

  async #write(name: StatusName): Promise<WriteOutcome> {
    const entry = this.#entries.get(name);
    const before = this.#objects.get(name);
    const body = this.#patchOf(name);
    if (entry === undefined || !this.#options.isLeader()) return { result: 'unchanged' };
    if (before === undefined || body === undefined) {
      // From now on the status is another controller's.
      if (isWithdrawn(entry.desired)) this.#forget(name);
      return { result: 'unchanged' };
    }
    const response = await this.#objects.request(name, {
      method: 'PATCH',
      path: `${objectPath(subjectOfName(name))}/status`,
      query: { fieldManager: FIELD_MANAGER },
      contentType: 'application/merge-patch+json',
      body,
    });
    const { status } = response;
    if (status === 200) {
      entry.isSettled = true;
      this.#options.onWritten?.(before, entry.desired);
      if (isWithdrawn(entry.desired)) this.#forget(name);
      return { result: 'done' };
    }
    if (status === 404) return { result: 'unchanged' };
    if (status === 409) {
      await this.#objects.read(name);
      return { result: 'conflict' };
    }
    if (status === 400 || status === 422) {
      entry.isSettled = true;
      return { result: 'dropped', fault: refusalText(response) };
    }
    return failedBy(response);
  }

  #forget(name: StatusName): void {
    this.#entries.delete(name);
    this.#objects.delete(name);
    this.#queue.delete(name);
  }
}

function isWithdrawn(status: ObjectStatus): boolean {
  return 'isWithdrawn' in status && status.isWithdrawn === true;
}
