// Keeps the objects of one kind equal to those of the API server, for months: lists, watches from there on, and after
// whatever goes wrong it goes on from where it was, or lists again and tells the difference. Never gives up.
// Owns a connection and timers; everything else comes in.

import { HeadgateError, messageOf } from '../../base/errors.ts';
import { Lines } from '../../base/lines.ts';
import { Slice } from '../../base/slice.ts';
import { Attempts } from './attempts.ts';
import { openGuarded, Refusal, Stopped, type StreamGuard } from './guarded-stream.ts';
import type { ApiStream, ApiStreams } from './kubernetes-api.ts';
import { ListItems, type ListMetadata } from './list-items.ts';
import { listPages, PAGE, type PageQuery } from './list-pages.ts';
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
import { cannot, resourceRequest } from './resource-request.ts';
import { apiObjectOf, isOlder, parseWatchEvent, type WatchEvent } from './watch-events.ts';

export type { ReflectorObserver, ReflectorStatus } from './reflector-terms.ts';

export interface ReflectorOptions<T> {
  readonly api: ApiStreams;
  readonly resource: ReflectedResource<T>;
  /** Called for each event and for each list that differs, not before the first list. */
  readonly onChange: (change: ReflectedChange<T>, by: 'list' | 'event') => void;
  /** The API server answers again: others need not wait any longer. */
  readonly onConnected?: () => void;
  readonly observer?: ReflectorObserver;
  readonly times?: Partial<ReflectorTimes>;
  /** 0 to 1. */
  readonly random?: () => number;
}

/** Milliseconds without a byte on a list, where a watch has at least as many. */
const LIST_SILENCE = 30_000;
/** Milliseconds that make a watch one that worked, even where nothing happened. */
const WORKED = 5_000;
/** Milliseconds that a timer may come too early by. */
const TIMER = 2;

export class Reflector<T extends Keyed> {
  /** Resolves after the first list. */
  readonly synced: Promise<void>;
  readonly #options: ReflectorOptions<T>;
  readonly #times: ReflectorTimes;
  readonly #random: () => number;
  readonly #known: Reflected<T>;
  readonly #attempts: Attempts;
  readonly #firstList = Promise.withResolvers<void>();
  /** Where to watch from; undefined: list. */
  #version: string | undefined;
  #listReason: ListReason = 'start';
  #isSynced = false;
  /** The connection broke: the API server behind the next one may have lost its memory. */
  #mustVerify = false;
  /** By performance.now(), when the confirming list is due. */
  #confirmAt = 0;
  #connected = false;
  #lack: Lack = 'none';
  #status = { lastEvent: 0, lists: 0, watches: 0, fault: '' };
  #give: AbortController | undefined;
  #closed = false;
  #running: Promise<void> | undefined;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#times = { ...defaultTimes, ...options.times };
    this.#random = options.random ?? Math.random;
    this.#attempts = new Attempts(this.#random);
    const { kind, apiVersion, parse, weighs } = options.resource;
    // The items of a list lack both.
    this.#known = new Reflected((json) => parse({ ...json, kind, apiVersion }), weighs);
    this.synced = this.#firstList.promise;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  objects(): Iterable<T> {
    return this.#known.objects();
  }

  get problems(): ReadonlyArray<Reflected<T>['problems'][number]> {
    return this.#known.problems;
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Why the API server gave nothing of the kind when it was asked last, and `synced` is not to be taken for a list. */
  get lack(): Lack {
    return this.#lack;
  }

  /** What a snapshot holds; the first list is compared with it. Nothing once that is there. */
  seed(objects: Iterable<T>): void {
    if (!this.#isSynced) this.#known.seed(objects);
  }

  /** The API server is there: a pause after failures ends now. */
  nudge(): void {
    this.#attempts.nudge();
  }

  status(): ReflectorStatus {
    const { kind, namespace } = this.#options.resource;
    return {
      kind,
      namespace,
      connected: this.#connected,
      synced: this.#isSynced,
      lack: this.#lack,
      objects: this.#known.size,
      doubted: this.#known.doubted,
      resourceVersion: this.#version ?? '',
      ...this.#status,
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#give?.abort();
    this.#attempts.wake();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      let asked = 0;
      try {
        if (this.#version === undefined) await this.#list();
        else if (this.#mustVerify) await this.#verify();
        if (this.#version !== undefined && !this.#closed) await this.#watchOnce(this.#version);
      } catch (error) {
        if (this.#closed) break;
        if (this.#doesWithout(error)) {
          asked = this.#times.absent * (1 + this.#random());
        } else {
          this.#attempts.failed();
          asked = this.#failed(error);
        }
      }
      const pause = this.#attempts.pause(asked, this.#mustVerify);
      if (pause > 0 && !this.#closed) await this.#attempts.wait(pause);
    }
    this.#connected = false;
  }

  /** Milliseconds that the API server asks to wait. */
  #failed(error: unknown): number {
    const known =
      error instanceof HeadgateError
        ? error
        : new HeadgateError('API_UNREACHABLE', 'The answer of the API server cannot be read', {
            cause: error,
          });
    this.#status.fault = messageOf(known);
    this.#options.observer?.onFailure?.(this.#options.resource.kind, known);
    return error instanceof Refusal ? error.retryAfter : 0;
  }

  /**
   * Whether to go on without an optional kind, which the API server does not know or does not let us read.
   * What was known before stays: nobody takes a whole kind away to have it forgotten.
   */
  #doesWithout(error: unknown): boolean {
    if (!this.#options.resource.isOptional || !(error instanceof Refusal)) return false;
    const lack = lackOf(error.status);
    // A watch that is refused after a list was not is a failure like any other.
    if (lack === 'none' || (lack === 'forbidden' && this.#version !== undefined)) return false;
    if (this.#version !== undefined) this.#relist('expired');
    this.#answered();
    this.#status.fault = lack === 'unknown' ? '' : messageOf(error);
    if (this.#lack === lack) return true;
    this.#lack = lack;
    if (lack === 'forbidden') this.#failed(error);
    this.#isSynced = true;
    this.#options.onChange({ upserted: [], removed: [] }, 'list');
    this.#firstList.resolve();
    return true;
  }

  // Lists.

  /** The first one may come from the API server's cache; a later one has to be of now, since it tells what is gone. */
  async #list(): Promise<void> {
    const reason = this.#listReason;
    const begin = performance.now();
    const mayConfirm = begin >= this.#confirmAt;
    let list = this.#known.beginList();
    const begun: PageQuery = this.#isSynced ? { limit: PAGE } : { limit: PAGE, resourceVersion: '0' };
    const metadata = await listPages(
      begun,
      (query) => this.#page(query, (item) => list.add(item)),
      () => {
        list = this.#known.beginList();
      },
    );
    const before = this.#known.size;
    const change = await list.end(mayConfirm);
    if (this.#closed) return;
    const { doubted } = this.#known;
    if (doubted > 0) {
      if (mayConfirm) this.#confirmAt = performance.now() + this.#times.confirm * (1 + this.#random());
      this.#options.observer?.onDoubt?.(this.#options.resource.kind, doubted, before);
    } else this.#confirmAt = 0;
    this.#version = metadata.resourceVersion;
    this.#mustVerify = false;
    this.#status.lists++;
    this.#answered();
    const { kind } = this.#options.resource;
    this.#options.observer?.onList?.(kind, reason, this.#known.size, performance.now() - begin);
    this.#isSynced = true;
    this.#lack = 'none';
    // Also where it is empty: problems may differ.
    this.#options.onChange(change, 'list');
    this.#firstList.resolve();
  }

  /** undefined where the place to go on from has expired. */
  async #page(query: PageQuery, add: (item: string) => void): Promise<ListMetadata | undefined> {
    const silence = Math.min(this.#times.silence, LIST_SILENCE);
    return this.#open('list', query, silence, async (stream, { heard }) => {
      if (stream.status === 410) return undefined;
      const items = new ListItems();
      const slice = new Slice();
      for await (const chunk of stream.chunks) {
        heard();
        for (const item of items.push(chunk)) {
          add(item);
          if (slice.isOver) await slice.breathe();
        }
        if (slice.isOver) await slice.breathe();
      }
      return items.end();
    });
  }

  /**
   * After a connection broke: is it still the same store, and has it not gone back in time? A watch from a version
   * that the API server has yet to reach would be silent, and lose what happens until then.
   */
  async #verify(): Promise<void> {
    const items: string[] = [];
    const metadata = await this.#page({ limit: '1' }, (item) => items.push(item));
    if (metadata === undefined) return;
    this.#mustVerify = false;
    this.#answered();
    const first = items[0] === undefined ? undefined : apiObjectOf(JSON.parse(items[0]));
    const isKnown = first === undefined ? this.#known.size === 0 : this.#known.uidOf(first.key) === first.uid;
    if (isOlder(metadata.resourceVersion, this.#version) || !isKnown) this.#relist('backwards');
  }

  #relist(reason: ListReason): void {
    this.#version = undefined;
    this.#listReason = reason;
  }

  // Watches.

  async #watchOnce(version: string): Promise<void> {
    const begin = performance.now();
    const eventBefore = this.#status.lastEvent;
    this.#status.watches++;
    let end: WatchEnd = 'broken';
    try {
      end = await this.#watch(version);
      if (end === 'expired' || end === 'backwards' || end === 'malformed') this.#relist(end);
    } catch (error) {
      if (error instanceof Refusal) end = 'refused';
      if (error instanceof Stopped) end = error.reason as WatchEnd;
      if (end === 'confirm') this.#relist(end);
      if (this.#closed || !this.#connected) throw error;
      if (error instanceof Stopped) return;
      // It was open: this is no failed attempt yet.
      this.#failed(error);
    } finally {
      const worked =
        this.#connected &&
        end !== 'malformed' &&
        end !== 'backwards' &&
        (this.#status.lastEvent !== eventBefore || performance.now() - begin > WORKED || end === 'confirm');
      this.#attempts.watched(worked);
      if (end === 'broken' || end === 'silence') this.#mustVerify = true;
      this.#connected = false;
      if (!this.#closed) this.#options.observer?.onWatchEnd?.(this.#options.resource.kind, end);
    }
  }

  async #watch(version: string): Promise<WatchEnd> {
    const seconds = Math.ceil(this.#times.watch * (1 + this.#random()));
    const query = {
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: version,
      timeoutSeconds: String(seconds),
    };
    return this.#open('watch', query, this.#times.silence, async (stream, { heard, stop }) => {
      if (stream.status === 410) return 'expired';
      this.#connected = true;
      this.#status.fault = '';
      this.#answered();
      const confirming =
        this.#confirmAt === 0
          ? undefined
          : setTimeout(() => stop('confirm'), Math.max(0, this.#confirmAt - performance.now()) + TIMER);
      try {
        const lines = new Lines();
        for await (const chunk of stream.chunks) {
          heard();
          const slice = new Slice();
          for (const line of lines.push(chunk)) {
            const end = this.#take(parseWatchEvent(line));
            if (end !== undefined) return end;
            if (slice.isOver) await slice.breathe();
          }
        }
        return 'ended';
      } finally {
        clearTimeout(confirming);
      }
    });
  }

  /** Gives the end of the watch where the event is one. */
  #take(event: WatchEvent): WatchEnd | undefined {
    switch (event.kind) {
      case 'Changed':
      case 'Deleted': {
        this.#seen(event.type, event.object.resourceVersion);
        const change =
          event.kind === 'Changed' ? this.#known.put(event.object) : this.#known.delete(event.object);
        if (change !== undefined) this.#options.onChange(change, 'event');
        return undefined;
      }
      case 'Bookmark':
        if (isOlder(event.resourceVersion, this.#version)) return 'backwards';
        this.#seen(event.type, event.resourceVersion);
        return undefined;
      case 'Expired':
        return 'expired';
      case 'Malformed':
        return 'malformed';
      case 'Failed':
        throw new HeadgateError(
          'API_REFUSED',
          `${cannot('watch', this.#options.resource)}: ${event.message}`,
        );
    }
  }

  // Both.

  #open<R>(
    verb: 'list' | 'watch',
    query: Readonly<Record<string, string>>,
    silence: number,
    use: (stream: ApiStream, guard: StreamGuard<WatchEnd>) => Promise<R>,
  ): Promise<R> {
    this.#give = new AbortController();
    const { resource } = this.#options;
    const request = resourceRequest(resource, query, Math.min(silence, LIST_SILENCE));
    return openGuarded(
      this.#options.api,
      request,
      { give: this.#give, silence, doing: cannot(verb, resource) },
      use,
    );
  }

  #answered(): void {
    if (this.#attempts.answered()) this.#options.onConnected?.();
  }

  #seen(type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK', version: string): void {
    this.#version = version;
    this.#status.lastEvent = Date.now();
    this.#options.observer?.onEvent?.(this.#options.resource.kind, type);
  }
}

function lackOf(status: number): Lack {
  if (status === 404) return 'unknown';
  return status === 403 ? 'forbidden' : 'none';
}
