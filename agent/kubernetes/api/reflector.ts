// Keeps the objects of one kind equal to those of the API server, for months: lists them, watches from there, and after
// any fault continues where it was, or lists again and reports the difference. Never gives up.
// Owns a connection and timers.

import { HeadgateError, messageOf } from '../../base/errors.ts';
import { Attempts } from './attempts.ts';
import type { ApiStreams } from './kubernetes-api.ts';
import { type Keyed, Reflected, type ReflectedChange } from './reflected.ts';
import {
  defaultTimes,
  type Lack,
  type ListReason,
  type ReflectedResource,
  type ReflectorObserver,
  type ReflectorStatus,
  type ReflectorTimes,
  type WatchEnd,
} from './reflector-terms.ts';
import { Refusal, ResourceClient } from './resource-client.ts';
import { apiObjectOf, isOlder, type WatchEvent } from './watch-events.ts';

export interface ReflectorOptions<T> {
  readonly api: ApiStreams;
  readonly resource: ReflectedResource<T>;
  readonly receivers: ReflectorReceivers<T>;
  readonly observer?: ReflectorObserver;
  readonly times?: Partial<ReflectorTimes>;
  /** 0 to 1. */
  readonly random?: () => number;
}

export interface ReflectorReceivers<T> {
  /** Called for each event and for each list that differs, not before the first list. */
  readonly onChange: (change: ReflectedChange<T>, by: 'list' | 'event') => void;
  /** The API has shown a new version of the object, see `Reflected.current()`. */
  readonly onCurrent?: (key: string) => void;
  /** The API server does not know the optional kind. */
  readonly onUnknown?: () => void;
  /** The API server answers again: other reflectors need not wait any longer. */
  readonly onConnected?: () => void;
}

/** A watch that was open for so long was useful even without an event. */
const USEFUL_WATCH_MS = 5_000;
/** A timer may fire too early by so much. */
const TIMER_ERROR_MS = 2;

export class Reflector<T extends Keyed> {
  /** The objects, to be read only. */
  readonly known: Reflected<T>;
  /** Resolves after the first list. */
  readonly synced: Promise<void>;
  readonly #options: ReflectorOptions<T>;
  readonly #times: ReflectorTimes;
  readonly #random: () => number;
  #client: ResourceClient;
  /** The one in use, and the other one if the resource has two. */
  #versions: readonly [apiVersion: string, orVersion?: string];
  readonly #attempts: Attempts;
  readonly #firstList = Promise.withResolvers<void>();
  /** The version to watch from; undefined: list first. */
  #version: string | undefined;
  #listReason: ListReason = 'start';
  #isSynced = false;
  /** The connection broke: the next API server may have an older store. */
  #mustVerify = false;
  /** When the confirming list is due, by performance.now(); 0: none is. */
  #confirmAt = 0;
  #isConnected = false;
  #lack: Lack = 'none';
  /** Why the last request failed. */
  #fault = '';
  /** How many events and bookmarks there were. */
  #events = 0;
  #lastAnswer = 0;
  #isClosed = false;
  #running: Promise<void> | undefined;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#times = { ...defaultTimes, ...options.times };
    this.#random = options.random ?? Math.random;
    this.#attempts = new Attempts(this.#random);
    this.#client = new ResourceClient(options.api, options.resource);
    const { kind, apiVersion, orVersion, parse, weighs } = options.resource;
    this.#versions = orVersion === undefined ? [apiVersion] : [apiVersion, orVersion];
    // The items of a list lack both.
    const named = (json: Readonly<Record<string, unknown>>) => ({
      ...json,
      kind,
      apiVersion: this.#versions[0],
    });
    this.known = new Reflected((json) => parse(named(json)), weighs, options.receivers.onCurrent);
    this.synced = this.#firstList.promise;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Why the API server gave no objects of the kind at the last request; `synced` then means no list. */
  get lack(): Lack {
    return this.#lack;
  }

  /** Takes the objects of a snapshot, which the first list is compared with; ignored after that list. */
  seed(objects: Iterable<T>): void {
    if (!this.#isSynced) this.known.seed(objects);
  }

  /** The API server answers: a wait after failures ends now. */
  nudge(): void {
    this.#attempts.nudge();
  }

  status(): ReflectorStatus {
    const { kind, namespace } = this.#options.resource;
    return {
      kind,
      namespace,
      connected: this.#isConnected,
      lack: this.#lack,
      resourceVersion: this.#version ?? '',
      lastAnswer: this.#lastAnswer,
      fault: this.#fault,
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#client.abort();
    this.#attempts.wake();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      let askedMs = 0;
      try {
        if (this.#version === undefined) await this.#list();
        else if (this.#mustVerify) await this.#verify();
        if (this.#version !== undefined && !this.#isClosed) await this.#watch(this.#version);
      } catch (error) {
        if (this.#isClosed) break;
        const absentMs = this.#doesWithout(error);
        if (absentMs === undefined) this.#attempts.failed();
        askedMs = absentMs ?? this.#failed(error);
      }
      const pauseMs = this.#attempts.pause(askedMs, this.#mustVerify);
      if (pauseMs > 0 && !this.#isClosed) await this.#attempts.wait(pauseMs);
    }
    this.#isConnected = false;
  }

  /** The wait that the API server asks for, in milliseconds. */
  #failed(cause: unknown): number {
    const message = 'Cannot read the answer of the API server';
    const error =
      cause instanceof HeadgateError ? cause : new HeadgateError('API_UNREACHABLE', message, { cause });
    this.#fault = messageOf(error);
    this.#options.observer?.onFailure?.(this.#options.resource.kind, error);
    return error instanceof Refusal ? error.waitMs : 0;
  }

  /**
   * The wait until the next request for an optional kind, in milliseconds, if the API server does not know it or does not
   * let this agent read it; undefined for another error. Known objects stay.
   */
  #doesWithout(error: unknown): number | undefined {
    if (!this.#options.resource.isOptional || !(error instanceof Refusal)) return undefined;
    const lack = lackOf(error.status);
    // A watch that is forbidden after a list was allowed is a failure like any other.
    if (lack === 'none' || (lack === 'forbidden' && this.#version !== undefined)) return undefined;
    if (this.#version !== undefined) this.#relist('expired');
    this.#answered();
    this.#fault = lack === 'unknown' ? '' : messageOf(error);
    if (lack === 'unknown' && this.#useOtherVersion()) return 0;
    const waitMs = this.#times.absent * (1 + this.#random());
    if (this.#lack === lack) return waitMs;
    if (lack === 'forbidden') this.#failed(error);
    else this.#options.receivers.onUnknown?.();
    this.#sync(lack, { upserted: [], removed: [] });
    return waitMs;
  }

  /** False if the resource has none that is still to be requested: the next request begins with the first one again. */
  #useOtherVersion(): boolean {
    const { api, resource } = this.#options;
    const [used, other] = this.#versions;
    if (other === undefined) return false;
    this.#versions = [other, used];
    this.#client = new ResourceClient(api, { ...resource, apiVersion: other });
    return other === resource.orVersion;
  }

  /** The first list may come from the API server's cache; a later one decides what is gone, so it must be current. */
  async #list(): Promise<void> {
    const reason = this.#listReason;
    const { observer, resource } = this.#options;
    const begin = performance.now();
    const mayConfirm = begin >= this.#confirmAt;
    let list = this.known.beginList();
    const { resourceVersion } = await this.#client.list(
      this.#isSynced ? {} : { resourceVersion: '0' },
      this.#times.silence,
      (item) => list.add(item),
      () => {
        list = this.known.beginList();
      },
    );
    const before = this.known.size;
    const change = await list.end(mayConfirm);
    if (this.#isClosed) return;
    const { doubted } = this.known;
    if (doubted > 0) {
      if (mayConfirm) this.#confirmAt = performance.now() + this.#times.confirm * (1 + this.#random());
      observer?.onDoubt?.(resource.kind, doubted, before);
    } else this.#confirmAt = 0;
    this.#version = resourceVersion;
    this.#mustVerify = false;
    this.#answered();
    observer?.onList?.(resource.kind, reason, this.known.size, performance.now() - begin);
    this.#sync('none', change);
  }

  /** Reports an empty change, too: problems may differ. */
  #sync(lack: Lack, change: ReflectedChange<T>): void {
    this.#lack = lack;
    this.#isSynced = true;
    this.#options.receivers.onChange(change, 'list');
    this.#firstList.resolve();
  }

  /**
   * After a connection broke: lists again if the API server has another store, or an older state of it. A watch from a
   * version that it has yet to reach would be silent, and lose the events until then.
   */
  async #verify(): Promise<void> {
    const items: string[] = [];
    const metadata = await this.#client.page({ limit: '1' }, this.#times.silence, (item) => items.push(item));
    if (metadata === undefined) return;
    this.#mustVerify = false;
    this.#answered();
    const first = items[0] === undefined ? undefined : apiObjectOf(JSON.parse(items[0]));
    const isKnown = first === undefined ? this.known.size === 0 : this.known.uidOf(first.key) === first.uid;
    if (isOlder(metadata.resourceVersion, this.#version) || !isKnown) this.#relist('backwards');
  }

  #relist(reason: ListReason): void {
    this.#version = undefined;
    this.#listReason = reason;
  }

  async #watch(resourceVersion: string): Promise<void> {
    const begin = performance.now();
    const eventsBefore = this.#events;
    let end: WatchEnd = 'broken';
    try {
      end = await this.#client.watch({
        resourceVersion,
        seconds: Math.ceil(this.#times.watch * (1 + this.#random())),
        silenceMs: this.#times.silence,
        confirmMs: this.#confirmAt === 0 ? undefined : Math.max(0, this.#confirmAt - begin) + TIMER_ERROR_MS,
        onOpen: () => this.#opened(),
        onEvent: (event) => this.#take(event),
      });
      if (end === 'expired' || end === 'backwards' || end === 'malformed' || end === 'confirm')
        this.#relist(end);
    } catch (error) {
      if (error instanceof Refusal) end = 'refused';
      if (this.#isClosed || !this.#isConnected) throw error;
      // It was open, so the attempt did not fail.
      this.#failed(error);
    } finally {
      const hadEvent = this.#events > eventsBefore;
      const isUseful = hadEvent || performance.now() - begin > USEFUL_WATCH_MS || end === 'confirm';
      this.#attempts.watched(this.#isConnected && end !== 'malformed' && end !== 'backwards' && isUseful);
      if (end === 'broken' || end === 'silence') this.#mustVerify = true;
      this.#isConnected = false;
      if (!this.#isClosed) this.#options.observer?.onWatchEnd?.(this.#options.resource.kind, end);
    }
  }

  #opened(): void {
    this.#isConnected = true;
    this.#fault = '';
    this.#answered();
  }

  /** Gives the end of the watch if the event is one. */
  #take(event: WatchEvent): WatchEnd | undefined {
    switch (event.kind) {
      case 'Changed':
      case 'Deleted': {
        this.#countEvent(event.type, event.object.resourceVersion);
        const change =
          event.kind === 'Changed' ? this.known.put(event.object) : this.known.delete(event.object);
        if (change !== undefined) this.#options.receivers.onChange(change, 'event');
        return undefined;
      }
      case 'Bookmark':
        if (isOlder(event.resourceVersion, this.#version)) return 'backwards';
        this.#countEvent(event.type, event.resourceVersion);
        return undefined;
      case 'Expired':
        return 'expired';
      default:
        return 'malformed';
    }
  }

  #answered(): void {
    this.#lastAnswer = Date.now();
    if (this.#attempts.answered()) this.#options.receivers.onConnected?.();
  }

  #countEvent(type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK', version: string): void {
    this.#version = version;
    this.#events++;
    this.#lastAnswer = Date.now();
    this.#options.observer?.onEvent?.(this.#options.resource.kind, type);
  }
}

function lackOf(status: number): Lack {
  if (status === 404) return 'unknown';
  return status === 403 ? 'forbidden' : 'none';
}
