// Tells the authors of objects by Events (events.k8s.io/v1) what became of them. The same once more is counted in the
// Event that is there; nothing is sent faster than the limits allow, per object and in all; what fails is dropped.
// Owns a queue with its timer and a small memory; talks only through KubernetesApi; nothing of it ever throws.

import { hash } from 'node:crypto';
import { type Clock, microTime } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import { isMapping } from '../../base/validate.ts';
import type { Log } from '../../host/log.ts';
import { refusalText } from '../api/api-answer.ts';
import type { ApiResponse, KubernetesApi } from '../api/kubernetes-api.ts';
import type { EventText } from './service-events.ts';
import { type WriteOutcome, WriteQueue } from './write-queue.ts';

/** The object that an Event is about. */
export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  /** '' for objects of the whole cluster; their Events are in `default`. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface EventRecorderOptions {
  readonly api: KubernetesApi;
  readonly clock: Clock;
  readonly log: Log;
  /** This agent, to 128 characters. */
  readonly instance: string;
  /** Whether this agent is the one that tells; what is recorded otherwise is forgotten. */
  readonly isLeader: () => boolean;
  /** Requests a second in all, and at once. */
  readonly rate?: number;
  readonly burst?: number;
  readonly metrics?: { eventSent(result: 'done' | 'dropped'): void };
}

/** New Events of one object: so many at once, and one more every so many milliseconds. */
const OBJECT_BURST = 10;
const OBJECT_INTERVAL = 60_000;
/** Milliseconds: a repetition is counted at most so often, and is a new Event after so long a silence. */
const SERIES_INTERVAL = 30_000;
const SERIES_END = 10 * 60_000;
/** Objects and Events that are remembered. */
const MEMORY = 4096;
/** More than so many Events that wait are not worth the wait. */
const LONGEST_QUEUE = 1000;
/** Bytes. */
const LONGEST_NOTE = 1024;
const CONTROLLER = 'headgate.io/agent';

/** What is yet to be sent. */
interface News {
  readonly subject: EventSubject;
  readonly text: EventText;
}

interface Told {
  /** undefined once it is sent: who says it again brings it along, and thousands are remembered. */
  news: News | undefined;
  /** It may have been told before, by who led then. */
  readonly isStanding: boolean;
  /** One of the name that it would have by what it says was there from some time ago. */
  isAnew: boolean;
  readonly first: number;
  /** Occurrences so far, and when the last was, as time of day and by the monotonic clock. */
  count: number;
  last: number;
  lastSeen: number;
  isCreated: boolean;
  /** No request before this. */
  quietUntil: number;
}

interface Allowance {
  tokens: number;
  at: number;
}

export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #queue: WriteQueue;
  /** What an Event says, as a hash, which is its name, too → the Event; the longest silent first. */
  readonly #told = new Map<string, Told>();
  /** UID of an object → what it may still say. */
  readonly #allowances = new Map<string, Allowance>();
  readonly #fault = new Fault();

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    const { clock, rate = 10, burst = 50 } = options;
    this.#queue = new WriteQueue({
      write: (name) => this.#send(name),
      check: (name) => Math.max(0, (this.#told.get(name)?.quietUntil ?? 0) - clock.monotonic()),
      clock,
      rate,
      burst,
    });
    this.#queue.resume();
  }

  /** Events that wait, or are being sent. */
  get waiting(): number {
    return this.#queue.size;
  }

  /** Why the API server did not take the last one, '' where it did. */
  get fault(): string {
    return this.#fault.text;
  }

  /** `isStanding`: it is no news, and is told only where no Event of it is there. */
  record(subject: EventSubject, text: EventText, { isStanding = false } = {}): void {
    const { clock, isLeader } = this.#options;
    if (!isLeader()) return;
    const now = clock.monotonic();
    const note = cut(text.note, LONGEST_NOTE);
    const key = keyOf(subject, { ...text, note });
    const known = this.#told.get(key);
    if (known !== undefined && now - known.lastSeen < SERIES_END) {
      if (isStanding) return;
      known.count++;
      known.news = { subject, text: { ...text, note } };
      known.last = clock.wall();
      known.lastSeen = now;
      this.#told.delete(key);
      this.#told.set(key, known);
      this.#queue.add(key);
      return;
    }
    if (this.#queue.size >= LONGEST_QUEUE || !this.#isAllowed(subject.uid, now)) {
      this.#drop(subject, 'there are too many of them');
      return;
    }
    const wall = clock.wall();
    this.#told.delete(key);
    this.#told.set(key, {
      news: { subject, text: { ...text, note } },
      isStanding,
      isAnew: false,
      first: wall,
      count: 1,
      last: wall,
      lastSeen: now,
      isCreated: false,
      quietUntil: 0,
    });
    bound(this.#told);
    this.#queue.add(key);
  }

  /** Sends nothing more; resolves when what is under way has ended. */
  async close(): Promise<void> {
    await this.#queue.close();
  }

  async #send(key: string): Promise<WriteOutcome> {
    const told = this.#told.get(key);
    const news = told?.news;
    if (told === undefined || news === undefined) return 'done';
    const { api, clock, isLeader, instance } = this.#options;
    if (!isLeader()) {
      // Who leads now tells it.
      this.#told.delete(key);
      return 'done';
    }
    try {
      told.quietUntil = clock.monotonic() + SERIES_INTERVAL;
      const { count } = told;
      let response = told.isCreated ? await api.request(patchOf(key, news, told)) : undefined;
      // Events are deleted after an hour or so.
      if (response === undefined || response.status === 404)
        response = await api.request(createOf(key, news, told, instance));
      if (isThere(response)) {
        if (told.isStanding) {
          this.#told.delete(key);
          return 'done';
        }
        told.isAnew = true;
        response = await api.request(createOf(key, news, told, instance));
      }
      this.#note(response.status >= 300 ? refusalText(response) : '');
      if (response.status >= 300) {
        this.#told.delete(key);
        this.#drop(news.subject, refusalText(response));
        return 'done';
      }
      told.isCreated = true;
      this.#options.metrics?.eventSent('done');
      if (told.count > count) this.#queue.add(key);
      else told.news = undefined;
    } catch (error) {
      this.#told.delete(key);
      this.#drop(news.subject, messageOf(error));
    }
    return 'done';
  }

  #isAllowed(uid: string, now: number): boolean {
    const before = this.#allowances.get(uid) ?? { tokens: OBJECT_BURST, at: now };
    const tokens = Math.min(OBJECT_BURST, before.tokens + (now - before.at) / OBJECT_INTERVAL);
    this.#allowances.delete(uid);
    this.#allowances.set(uid, { tokens: tokens >= 1 ? tokens - 1 : tokens, at: now });
    bound(this.#allowances);
    return tokens >= 1;
  }

  #note(fault: string): void {
    if (this.#fault.set(fault) && fault !== '') this.#options.log.warn(`Cannot tell an Event: ${fault}`);
  }

  #drop({ kind, namespace, name }: EventSubject, why: string): void {
    this.#options.metrics?.eventSent('dropped');
    this.#options.log.debug(`Dropped an Event: ${why}`, { about: `${kind} ${namespace}/${name}` });
  }
}

function createOf(key: string, { subject, text }: News, told: Told, instance: string): Request {
  const { apiVersion, kind, namespace, uid } = subject;
  const { first, count, last } = told;
  return {
    method: 'POST',
    path: eventsPath(subject),
    body: {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: eventName(key, subject, told), namespace: namespace || 'default' },
      eventTime: microTime(first),
      reportingController: CONTROLLER,
      reportingInstance: cut(instance, 128),
      action: text.action,
      reason: text.reason,
      regarding: { apiVersion, kind, name: subject.name, uid, ...(namespace === '' ? {} : { namespace }) },
      note: text.note,
      type: text.type,
      ...(count > 1 ? { series: seriesOf(count, last) } : {}),
    },
  };
}

type Request = Parameters<KubernetesApi['request']>[0];

function patchOf(key: string, { subject }: News, told: Told): Request {
  return {
    method: 'PATCH',
    path: `${eventsPath(subject)}/${encodeURIComponent(eventName(key, subject, told))}`,
    contentType: 'application/merge-patch+json',
    body: { series: seriesOf(told.count, told.last) },
  };
}

function seriesOf(count: number, last: number): object {
  return { count, lastObservedTime: microTime(last) };
}

function eventsPath({ namespace }: EventSubject): string {
  return `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(namespace || 'default')}/events`;
}

/** An Event of this name says the same, of some time ago. */
function isThere({ status, body }: ApiResponse): boolean {
  return status === 409 && isMapping(body) && body.reason === 'AlreadyExists';
}

/** By what it says, so that any agent knows whether it has been said. */
function keyOf({ kind, uid, namespace, name }: EventSubject, { type, reason, note }: EventText): string {
  return shortHash(hash('sha256', JSON.stringify([kind, uid, namespace, name, type, reason, note])));
}

/** `web.1a2b3c4d5e6f7a8b`. */
function eventName(key: string, { name }: EventSubject, { isAnew, first }: Told): string {
  const end = isAnew ? shortHash(`${key} ${first}`) : key;
  return [name.slice(0, 200).replace(/[^a-z0-9]+$/, ''), end].join('.');
}

/** Sixteen digits, not a part of a longer text, which would be kept as well. */
function shortHash(text: string): string {
  return hash('sha256', text, 'buffer').toString('hex', 0, 8);
}

/** To so many bytes of UTF-8, on a character's edge. */
function cut(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  const head = Buffer.from(text)
    .subarray(0, bytes - 3)
    .toString('utf8')
    .replace(/\uFFFD+$/, '');
  return `${head}…`;
}

function bound(map: Map<string, unknown>): void {
  const [oldest] = map.keys();
  if (map.size > MEMORY && oldest !== undefined) map.delete(oldest);
}
