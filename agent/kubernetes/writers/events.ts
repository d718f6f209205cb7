// Reports to the authors of objects by Events (events.k8s.io/v1). A repetition is counted in the Event that exists;
// requests are limited per object and in all; an Event that fails is dropped.
// Owns a queue with its timer and a small memory; uses the network only through KubernetesApi; never throws.
// Why: docs/design/decisions/0013-event-names.md

import { hash } from 'node:crypto';
import { microTime } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { isMapping } from '../../base/validate.ts';
import { refusalText } from '../api/api-answer.ts';
import type { ApiRequest, ApiResponse } from '../api/kubernetes-api.ts';
import type { EventText } from './service-events.ts';
import { type WriteOutcome, WriteQueue, type WriterOptions } from './write-queue.ts';

/** The object that an Event is about. */
export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  /** '' for objects of the whole cluster; their Events are in `default`. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Only the agent that leads sends Events; another one forgets what it records. */
export interface EventRecorderOptions extends WriterOptions {
  /** This agent, cut to 128 characters. */
  readonly instance: string;
  /** Requests per second in all, and at once. */
  readonly rate?: number;
  readonly burst?: number;
  readonly metrics?: { eventSent(result: 'done' | 'dropped'): void };
}

/** New Events of one object: so many at once, and then one per interval. */
const OBJECT_BURST = 10;
const OBJECT_INTERVAL_MS = 60_000;
/** Between two requests that count repetitions of one Event. */
const SERIES_INTERVAL_MS = 30_000;
/** After so long without a repetition the next one is a new Event. */
const SERIES_END_MS = 10 * 60_000;
/** Objects, and Events, in memory. */
const MAX_REMEMBERED = 4096;
/** Events beyond these are dropped, so that memory is bounded. */
const MAX_WAITING = 1000;
const MAX_NOTE_BYTES = 1024;
const MAX_INSTANCE_BYTES = 128;
const CONTROLLER = 'headgate.io/agent';

interface Content {
  readonly subject: EventSubject;
  readonly text: EventText;
}

interface RecordedEvent {
  /** To be sent; undefined once it is, because thousands of Events are remembered. */
  unsent: Content | undefined;
  /** Another agent that led before may have sent it. */
  readonly isStanding: boolean;
  /** An older Event has its name: it needs another one. */
  needsOwnName: boolean;
  /** Milliseconds since the epoch, of the first and the last occurrence. */
  readonly first: number;
  last: number;
  count: number;
  /** The last occurrence by the monotonic clock. */
  lastSeen: number;
  isCreated: boolean;
  /** No request before this time of the monotonic clock. */
  notBefore: number;
}

interface Allowance {
  tokens: number;
  at: number;
}

export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #queue: WriteQueue;
  /** Hash of the content, which is also in the Event's name → the Event; the longest silent first. */
  readonly #events = new Map<string, RecordedEvent>();
  /** UID of an object → how many new Events it may have. */
  readonly #allowances = new Map<string, Allowance>();
  /** By namespace: how many new Events wait. */
  readonly #waiting = new Map<string, number>();

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    const { clock, rate = 10, burst = 50, metrics } = options;
    this.#queue = new WriteQueue({
      ...options,
      write: (key) => this.#send(key),
      check: (key) => Math.max(0, (this.#events.get(key)?.notBefore ?? 0) - clock.monotonic()),
      faultTitle: 'Cannot send an Event',
      onResult: (result) => metrics?.eventSent(result === 'done' ? 'done' : 'dropped'),
      rate,
      burst,
    });
    this.#queue.lead(true);
  }

  /** The number of Events that wait or are being sent. */
  get waiting(): number {
    return this.#queue.size;
  }

  /** Why the last Event was not sent, '' if it was. */
  get fault(): string {
    return this.#queue.fault;
  }

  /** `isStanding`: the state is not new; the Event is sent only if the API server has none of the same content. */
  record(subject: EventSubject, { note, ...text }: EventText, { isStanding = false } = {}): void {
    const { clock, isLeader, metrics } = this.#options;
    if (!isLeader()) return;
    const content: Content = { subject, text: { ...text, note: cut(note, MAX_NOTE_BYTES) } };
    const key = keyOf(content);
    const lastSeen = clock.monotonic();
    const last = clock.wall();
    let event = this.#events.get(key);
    if (event !== undefined && lastSeen - event.lastSeen < SERIES_END_MS) {
      if (isStanding) return;
      Object.assign(event, { count: event.count + 1, unsent: content, last, lastSeen });
    } else {
      if (!this.#hasRoom(subject.namespace) || !this.#isAllowed(subject.uid, lastSeen)) {
        metrics?.eventSent('dropped');
        this.#logDropped(subject, 'there are too many of them');
        return;
      }
      const state = { isStanding, needsOwnName: false, isCreated: false, notBefore: 0 };
      event = { ...state, unsent: content, first: last, last, lastSeen, count: 1 };
      this.#count(subject.namespace, 1);
    }
    setLast(this.#events, key, event);
    this.#queue.add(key);
  }

  /** Sends nothing more; resolves when the requests under way have ended. */
  async close(): Promise<void> {
    await this.#queue.close();
  }

  async #send(key: string): Promise<WriteOutcome> {
    const event = this.#events.get(key);
    const content = event?.unsent;
    if (event === undefined || content === undefined) return { result: 'unchanged' };
    const { clock, isLeader } = this.#options;
    // It waits no longer.
    if (event.notBefore === 0) this.#count(content.subject.namespace, -1);
    if (!isLeader()) {
      this.#events.delete(key);
      return { result: 'unchanged' };
    }
    event.notBefore = clock.monotonic() + SERIES_INTERVAL_MS;
    const { count } = event;
    const refusal = await this.#request(key, content, event).catch(messageOf);
    if (refusal === undefined) {
      this.#events.delete(key);
      return { result: 'unchanged' };
    }
    if (refusal !== '') {
      this.#events.delete(key);
      this.#logDropped(content.subject, refusal);
      return { result: 'dropped', fault: refusal };
    }
    event.isCreated = true;
    if (event.count > count) this.#queue.add(key);
    else event.unsent = undefined;
    return { result: 'done' };
  }

  /** Gives why the API server refuses the Event, '' if it has it; undefined if it had the standing one already. */
  async #request(key: string, content: Content, event: RecordedEvent): Promise<string | undefined> {
    const { api, instance } = this.#options;
    let response = event.isCreated ? await api.request(patchOf(key, content, event)) : undefined;
    // The API server deletes Events after an hour or so.
    if (response === undefined || response.status === 404)
      response = await api.request(createOf(key, content, event, instance));
    if (isThere(response)) {
      if (event.isStanding) return undefined;
      event.needsOwnName = true;
      response = await api.request(createOf(key, content, event, instance));
    }
    return response.status >= 300 ? refusalText(response) : '';
  }

  /** A namespace takes at most half of the places that are left, so that no author takes those of the others. */
  #hasRoom(namespace: string): boolean {
    return (this.#waiting.get(namespace) ?? 0) < MAX_WAITING - this.#queue.size;
  }

  #count(namespace: string, step: 1 | -1): void {
    const count = (this.#waiting.get(namespace) ?? 0) + step;
    if (count > 0) this.#waiting.set(namespace, count);
    else this.#waiting.delete(namespace);
  }

  #isAllowed(uid: string, now: number): boolean {
    const before = this.#allowances.get(uid) ?? { tokens: OBJECT_BURST, at: now };
    const tokens = Math.min(OBJECT_BURST, before.tokens + (now - before.at) / OBJECT_INTERVAL_MS);
    setLast(this.#allowances, uid, { tokens: tokens >= 1 ? tokens - 1 : tokens, at: now });
    return tokens >= 1;
  }

  #logDropped({ kind, namespace, name }: EventSubject, reason: string): void {
    this.#options.log.debug(`Dropped an Event: ${reason}`, { about: `${kind} ${namespace}/${name}` });
  }
}

function createOf(key: string, content: Content, event: RecordedEvent, instance: string): ApiRequest {
  const { subject, text } = content;
  const { apiVersion, kind, namespace, name, uid } = subject;
  const { first, count, last } = event;
  return {
    method: 'POST',
    path: eventsPath(subject),
    body: {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: eventName(key, subject, event), namespace: namespace || 'default' },
      eventTime: microTime(first),
      reportingController: CONTROLLER,
      reportingInstance: cut(instance, MAX_INSTANCE_BYTES),
      action: text.action,
      reason: text.reason,
      regarding: { apiVersion, kind, name, uid, ...(namespace === '' ? {} : { namespace }) },
      note: text.note,
      type: text.type,
      ...(count > 1 ? { series: seriesOf(count, last) } : {}),
    },
  };
}

function patchOf(key: string, { subject }: Content, event: RecordedEvent): ApiRequest {
  return {
    method: 'PATCH',
    path: `${eventsPath(subject)}/${encodeURIComponent(eventName(key, subject, event))}`,
    contentType: 'application/merge-patch+json',
    body: { series: seriesOf(event.count, event.last) },
  };
}

function seriesOf(count: number, last: number): object {
  return { count, lastObservedTime: microTime(last) };
}

function eventsPath({ namespace }: EventSubject): string {
  return `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(namespace || 'default')}/events`;
}

/** The API server has an older Event of this name, with the same content. */
function isThere({ status, body }: ApiResponse): boolean {
  return status === 409 && isMapping(body) && body.reason === 'AlreadyExists';
}

/** From the content, so that every agent finds an Event that another one has sent. */
function keyOf({ subject, text }: Content): string {
  const { kind, uid, namespace, name } = subject;
  const { type, reason, note } = text;
  return shortHash(hash('sha256', JSON.stringify([kind, uid, namespace, name, type, reason, note])));
}

/** `web.1a2b3c4d5e6f7a8b`. */
function eventName(key: string, { name }: EventSubject, { needsOwnName, first }: RecordedEvent): string {
  const end = needsOwnName ? shortHash(`${key} ${first}`) : key;
  return [name.slice(0, 200).replace(/[^a-z0-9]+$/, ''), end].join('.');
}

/** Sixteen digits in a string of their own: a slice would keep the whole text in memory. */
function shortHash(text: string): string {
  return hash('sha256', text, 'buffer').toString('hex', 0, 8);
}

/** At most so many bytes of UTF-8, cut between two characters. */
function cut(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  const head = Buffer.from(text)
    .subarray(0, bytes - 3)
    .toString('utf8')
    .replace(/\uFFFD+$/, '');
  return `${head}…`;
}

/** Moves the key to the end of the map, and removes the first one if there are too many. */
function setLast<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  const [first] = map.keys();
  if (map.size > MAX_REMEMBERED && first !== undefined) map.delete(first);
}
