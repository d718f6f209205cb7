// Lists and watches the objects of one kind: gives items and events as they arrive, and ends a request whose answer
// falls silent. Keeps no objects. Owns the request under way.

import { systemClock } from '../../base/clock.ts';
import { HeadgateError } from '../../base/errors.ts';
import { Lines } from '../../base/lines.ts';
import { ReadFirstTimeout } from '../../base/read-first-timeout.ts';
import { Slice } from '../../base/slice.ts';
import { bodyOf, refusalText, waitAsked } from './api-answer.ts';
import type { ApiRequest, ApiStream, ApiStreams } from './kubernetes-api.ts';
import { ListItems, type ListMetadata } from './list-items.ts';
import type { ReflectedResource, WatchEnd } from './reflector-terms.ts';
import { parseWatchEvent, type WatchEvent } from './watch-events.ts';

type Resource = Pick<
  ReflectedResource<unknown>,
  'apiVersion' | 'plural' | 'namespace' | 'labelSelector' | 'fieldSelector'
>;
type Query = Readonly<Record<string, string>>;

export interface WatchOptions {
  readonly resourceVersion: string;
  /** After this time the API server ends the watch. */
  readonly seconds: number;
  readonly silenceMs: number;
  /** After this time the watch ends with `confirm`; undefined: never. */
  readonly confirmMs: number | undefined;
  readonly onOpen: () => void;
  /** Gives the end of the watch if the event is one. */
  readonly onEvent: (event: WatchEvent) => WatchEnd | undefined;
}

/** A page of a list has at most so much time without a byte, even if a watch has more. */
const MAX_LIST_SILENCE_MS = 30_000;
/** Objects per page, as in client-go. */
const PAGE_OBJECTS = '500';

export class ResourceClient {
  readonly #api: ApiStreams;
  readonly #resource: Resource;
  #abort: AbortController | undefined;

  constructor(api: ApiStreams, resource: Resource) {
    this.#api = api;
    this.#resource = resource;
  }

  /** Ends the request under way. */
  abort(): void {
    this.#abort?.abort();
  }

  /**
   * All pages. If one has expired (410), `onRestart` is called and the whole list requested at once, as in client-go: it
   * cannot expire. Errors: as `page()`, API_REFUSED if it does.
   */
  async list(
    first: Query,
    silenceMs: number,
    onItem: (json: string) => void,
    onRestart: () => void,
  ): Promise<ListMetadata> {
    let query: Query = { limit: PAGE_OBJECTS, ...first };
    for (;;) {
      const metadata = await this.page(query, silenceMs, onItem);
      if (metadata?.continue === '') return metadata;
      if (metadata !== undefined) query = { limit: PAGE_OBJECTS, continue: metadata.continue };
      else if (query.limit === undefined)
        throw new HeadgateError('API_REFUSED', 'The API server answers 410 to the request of a whole list');
      else {
        query = {};
        onRestart();
      }
    }
  }

  /** undefined if it has expired (410). Errors: API_REFUSED (Refusal), API_UNREACHABLE, API_CREDENTIALS. */
  page(query: Query, silenceMs: number, onItem: (json: string) => void): Promise<ListMetadata | undefined> {
    const timeoutMs = Math.min(silenceMs, MAX_LIST_SILENCE_MS);
    return this.#open('list', query, timeoutMs, async (stream, chunks) => {
      if (stream.status === 410) return undefined;
      const items = new ListItems();
      const slice = new Slice();
      for await (const chunk of chunks) {
        for (const item of items.push(chunk)) {
          onItem(item);
          if (slice.isOver) await slice.breathe();
        }
        if (slice.isOver) await slice.breathe();
      }
      return items.end();
    });
  }

  /** Gives why an open watch ended. Errors: as `page()`. */
  watch(options: WatchOptions): Promise<WatchEnd> {
    const { resourceVersion, seconds, silenceMs, confirmMs, onOpen, onEvent } = options;
    const query = {
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion,
      timeoutSeconds: String(seconds),
    };
    return this.#open('watch', query, silenceMs, async (stream, chunks, abort) => {
      if (stream.status === 410) return 'expired';
      onOpen();
      const confirm = (): void => abort.abort('confirm');
      const cancel = confirmMs === undefined ? undefined : systemClock.after(confirmMs, confirm);
      try {
        const lines = new Lines();
        for await (const chunk of chunks) {
          const slice = new Slice();
          for (const line of lines.push(chunk)) {
            const event = parseWatchEvent(line);
            if (event.kind === 'Failed')
              throw new HeadgateError('API_REFUSED', this.#failed('watch', event.message));
            const end = onEvent(event);
            if (end !== undefined) return end;
            if (slice.isOver) await slice.breathe();
          }
        }
        return 'ended';
      } catch (error) {
        const { reason } = abort.signal;
        if (reason === 'confirm' || reason === 'silence') return reason;
        throw error;
      } finally {
        cancel?.();
      }
    });
  }

  /** `use` gets answers with the status 200 or 410. */
  async #open<R>(
    verb: 'list' | 'watch',
    query: Query,
    silenceMs: number,
    use: (stream: ApiStream, chunks: AsyncIterable<Uint8Array>, abort: AbortController) => Promise<R>,
  ): Promise<R> {
    const abort = new AbortController();
    this.#abort = abort;
    const silence = new ReadFirstTimeout(() => abort.abort('silence'));
    const request = resourceRequest(this.#resource, query, Math.min(silenceMs, MAX_LIST_SILENCE_MS));
    try {
      const stream = await this.#api.open({ ...request, signal: abort.signal });
      if (stream.status !== 200 && stream.status !== 410) throw await this.#refusal(verb, stream);
      silence.wait(silenceMs);
      const result = await use(stream, eachResets(stream.chunks, silence, silenceMs), abort);
      if (stream.status === 410) abort.abort();
      return result;
    } catch (error) {
      if (abort.signal.reason !== 'silence') throw error;
      throw new HeadgateError('API_UNREACHABLE', this.#failed(verb, 'the answer stopped'));
    } finally {
      silence.end();
    }
  }

  async #refusal(verb: 'list' | 'watch', stream: ApiStream): Promise<Refusal> {
    const { status, headers } = stream;
    const text = refusalText({ status, headers, body: await bodyOf(stream) });
    return new Refusal(this.#failed(verb, text), status, waitAsked({ headers }) ?? 0);
  }

  #failed(verb: 'list' | 'watch', reason: string): string {
    return `${cannot(verb, this.#resource)}: ${reason}`;
  }
}

/** The API server answered with another status than 200 or 410. */
export class Refusal extends HeadgateError {
  readonly status: number;
  /** 0 if the API server asks for no wait. */
  readonly waitMs: number;

  constructor(message: string, status: number, waitMs: number) {
    super('API_REFUSED', message);
    this.status = status;
    this.waitMs = waitMs;
  }
}

export function resourceRequest(
  { apiVersion, plural, namespace, labelSelector, fieldSelector }: Resource,
  query: Query,
  timeoutMs: number,
): ApiRequest {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return {
    method: 'GET',
    path: `${group}${namespace === '' ? '' : `/namespaces/${namespace}`}/${plural}`,
    query: {
      ...query,
      ...(labelSelector !== '' && { labelSelector }),
      ...(fieldSelector !== undefined && { fieldSelector }),
    },
    timeoutMs,
  };
}

/** `Cannot list services of namespace shop`. */
export function cannot(verb: 'list' | 'watch', { plural, namespace }: Resource): string {
  return `Cannot ${verb} ${plural}${namespace === '' ? '' : ` of namespace ${namespace}`}`;
}

async function* eachResets(
  chunks: AsyncIterable<Uint8Array>,
  silence: ReadFirstTimeout,
  silenceMs: number,
): AsyncGenerator<Uint8Array, void, void> {
  for await (const chunk of chunks) {
    silence.wait(silenceMs);
    yield chunk;
  }
}
