// Keeps the API's objects on disk, so that an agent that starts while no API server answers serves the last good state.
// Changes are appended in the background, a few seconds after they came; the file is written anew when the appended
// part has outgrown the rest, or when somebody else has changed it. A line that a crash or a disk has damaged costs only
// its own object. Owns one file and a timer.

import { constants } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { HeadgateError } from '../../base/errors.ts';
import type { AddressRange } from '../../base/ip-range.ts';
import { Slice } from '../../base/slice.ts';
import { isMapping } from '../../base/validate.ts';
import { writeAtomically } from '../../host/atomic-file.ts';
import { type FileIdentity, identityOf, identityOfOpen, isSameFile } from '../../host/file-identity.ts';
import { makeFolder } from '../../host/make-directory.ts';
import { ADDRESS_API_VERSION } from '../address-group.ts';
import type { ObjectRef } from '../cluster.ts';
import type { KubernetesObject } from '../objects.ts';
import { parseObject } from '../parse-object.ts';

export interface SnapshotTimes {
  /** Milliseconds from a change until it is written. */
  readonly delay: number;
  /** Milliseconds to the next attempt after a failure. */
  readonly retry: number;
}

export interface ApiSnapshotOptions {
  readonly path: string;
  /** What has been asked of the API: a snapshot of anything else is of no use. */
  readonly scope: string;
  /** All that counts now. */
  readonly objects: () => Iterable<KubernetesObject>;
  readonly onFailure: (error: HeadgateError) => void;
  readonly times?: Partial<SnapshotTimes>;
}

/** The rest after each write, in times of the write. */
const REST = 10;
/** Bytes that may always be appended. */
const SMALL = 1024 * 1024;
/** Bytes handed to the disk at once. */
const CHUNK = 64 * 1024;

export class ApiSnapshot {
  readonly #options: ApiSnapshotOptions;
  readonly #times: SnapshotTimes;
  /** `Kind key` → what is to be appended. */
  readonly #waiting = new Map<string, KubernetesObject | ObjectRef>();
  /** Bytes of the file as it was written anew, and of what has been appended since. */
  #base = 0;
  #appended = 0;
  #isStale = true;
  /** The file as it was left. */
  #written: FileIdentity | undefined;
  #isStarted = false;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: ApiSnapshotOptions) {
    this.#options = options;
    this.#times = { delay: 2_000, retry: 30_000, ...options.times };
  }

  /** undefined where there is none that can be used. */
  async load(): Promise<readonly KubernetesObject[] | undefined> {
    const bytes = await readFile(this.#options.path).catch(() => undefined);
    if (bytes === undefined) return undefined;
    const objects = new Map<string, KubernetesObject>();
    const slice = new Slice();
    let isFirst = true;
    let damaged = 0;
    for (let from = 0; from < bytes.length; ) {
      const newline = bytes.indexOf(0x0a, from);
      // A crash while it was appended.
      if (newline < 0) break;
      const value = valueIn(bytes.subarray(from, newline));
      from = newline + 1;
      if (isFirst && !this.#isHeader(value)) return undefined;
      if (!isFirst && !take(value, objects)) damaged++;
      isFirst = false;
      if (slice.isOver) await slice.breathe();
    }
    if (isFirst) return undefined;
    if (damaged > 0) {
      const message = `${damaged} lines of "${this.#options.path}" are damaged and left out`;
      this.#options.onFailure(new HeadgateError('FILE_READ', message, { retry: 'never' }));
    }
    return [...objects.values()];
  }

  /** From now on the objects are the API's own: the file is to become what they are. */
  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#schedule(this.#times.delay);
  }

  /** What has changed; nothing is written before start(). */
  note(upserted: readonly KubernetesObject[], removed: readonly ObjectRef[]): void {
    if (!this.#isStarted) return;
    for (const { kind, key } of removed) this.#waiting.set(`${kind} ${key}`, { kind, key });
    for (const object of upserted) this.#waiting.set(`${object.kind} ${object.key}`, object);
    if (this.#waiting.size > 0) this.#schedule(this.#times.delay);
  }

  /** Writes what waits, now. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#isStarted) await this.#write();
  }

  #schedule(milliseconds: number): void {
    this.#timer ??= setTimeout(() => void this.#write(), milliseconds).unref();
  }

  /** One at a time. */
  #write(): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      const begin = performance.now();
      let pause = this.#times.retry;
      try {
        const { path } = this.#options;
        const isLong = this.#appended > Math.max(SMALL, this.#base);
        // What somebody else has made of it may have no end that could be appended to, or no beginning.
        const isOurs = isSameFile(identityOf(path), this.#written);
        if (this.#isStale || isLong || !isOurs) this.#written = await this.#writeAnew();
        else if (this.#waiting.size > 0) this.#written = await this.#append();
        pause = Math.max(this.#times.delay, REST * (performance.now() - begin));
      } catch (cause) {
        // Nobody knows what is in the file now.
        this.#isStale = true;
        const message = `Cannot keep the API's objects in "${this.#options.path}"`;
        this.#options.onFailure(new HeadgateError('FILE_WRITE', message, { cause }));
      }
      clearTimeout(this.#timer);
      this.#timer = undefined;
      if (this.#waiting.size > 0 || this.#isStale) this.#schedule(pause);
    });
    return this.#writing;
  }

  /** What changes meanwhile is appended after it. */
  async #writeAnew(): Promise<FileIdentity> {
    this.#waiting.clear();
    await makeFolder(dirname(this.#options.path), 0o700);
    let written = 0;
    const counted = function* (chunks: Iterable<string>): Generator<string, void, void> {
      for (const chunk of chunks) {
        written += chunk.length;
        yield chunk;
      }
    };
    const identity = await writeAtomically(
      this.#options.path,
      counted(chunksOf([this.#header(), ...this.#options.objects()])),
    );
    this.#isStale = false;
    this.#base = written;
    this.#appended = 0;
    return identity;
  }

  async #append(): Promise<FileIdentity> {
    const values = [...this.#waiting.values()];
    this.#waiting.clear();
    // Without making one: a file that someone took away has to be written anew.
    const file = await open(this.#options.path, constants.O_WRONLY | constants.O_APPEND);
    try {
      for (const chunk of chunksOf(values)) {
        this.#appended += chunk.length;
        await file.writeFile(chunk);
      }
      await file.datasync();
      return await identityOfOpen(file);
    } finally {
      await file.close();
    }
  }

  #header(): object {
    return { headgate: 'objects', shape: shape(), scope: this.#options.scope };
  }

  #isHeader(value: unknown): boolean {
    return JSON.stringify(value) === JSON.stringify(this.#header());
  }
}

function* chunksOf(values: Iterable<object>): Generator<string, void, void> {
  let chunk = '';
  for (const value of values) {
    // Fields without a value are kept: an object that is read again equals the one that was written.
    const json = JSON.stringify(value, (_, field: unknown) => {
      if (typeof field === 'bigint') return String(field);
      return field === undefined ? null : field;
    });
    chunk += `${crc32(json).toString(16).padStart(8, '0')} ${json}\n`;
    if (chunk.length < CHUNK) continue;
    yield chunk;
    chunk = '';
  }
  if (chunk !== '') yield chunk;
}

/** undefined where the line is damaged. */
function valueIn(line: Uint8Array): unknown {
  const text = Buffer.from(line).toString('utf8');
  const json = text.slice(9);
  if (text.slice(0, 8) !== crc32(json).toString(16).padStart(8, '0')) return undefined;
  return JSON.parse(json);
}

function take(value: unknown, objects: Map<string, KubernetesObject>): boolean {
  if (!isMapping(value) || typeof value.kind !== 'string' || typeof value.key !== 'string') return false;
  const name = `${value.kind} ${value.key}`;
  if (Object.keys(value).length === 2) objects.delete(name);
  else objects.set(name, withoutNulls(value) as unknown as KubernetesObject);
  return true;
}

/**
 * JSON has no undefined, no Infinity and no bigint; objects have no null, Infinity only as a Service's time of
 * creation, and bigints only as the blocks of a pool.
 */
function withoutNulls(object: Readonly<Record<string, unknown>>): unknown {
  const restored = restore(object) as Record<string, unknown>;
  if ('created' in restored && restored.created === undefined) restored.created = Number.POSITIVE_INFINITY;
  if (restored.kind === 'AddressPool') restored.blocks = blocksOf(restored.blocks);
  return restored;
}

function blocksOf(blocks: unknown): readonly AddressRange[] {
  return (blocks as readonly (AddressRange & Record<'first' | 'last', string>)[]).map(
    ({ family, first, last }) => ({ family, first: BigInt(first), last: BigInt(last) }),
  );
}

function restore(value: unknown): unknown {
  if (value === null) return undefined;
  if (Array.isArray(value)) return value.map(restore);
  if (!isMapping(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, restore(field)]));
}

/** One of each kind with every list filled, to tell what the fields of pruned objects are in this version. */
const SAMPLES = [
  {
    kind: 'Service',
    apiVersion: 'v1',
    metadata: { name: 'a', creationTimestamp: '2026-01-31T12:00:00Z' },
    spec: { ports: [{ port: 1 }] },
  },
  {
    kind: 'EndpointSlice',
    apiVersion: 'discovery.k8s.io/v1',
    metadata: { name: 'a' },
    addressType: 'IPv4',
    ports: [{ port: 1 }],
    endpoints: [{ addresses: ['10.0.0.1'] }],
  },
  { kind: 'Node', apiVersion: 'v1', metadata: { name: 'a' } },
  {
    kind: 'AddressPool',
    apiVersion: ADDRESS_API_VERSION,
    metadata: { name: 'a' },
    spec: {
      blocks: ['192.0.2.1'],
      serviceAllocation: {
        namespaces: ['a'],
        serviceSelector: { matchExpressions: [{ key: 'a', operator: 'Exists' }] },
      },
    },
  },
  {
    kind: 'AddressClaim',
    apiVersion: ADDRESS_API_VERSION,
    metadata: { name: 'a' },
    spec: { address: '192.0.2.1', service: 'a/b', ports: [{ protocol: 'TCP', port: 1 }] },
  },
];

/** Objects that another version of Headgate has pruned otherwise would mislead this one. */
let knownShape: string | undefined;
function shape(): string {
  knownShape ??= JSON.stringify(SAMPLES.map((sample) => fieldsOf(parseObject(sample, '').objects[0])));
  return knownShape;
}

function fieldsOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(fieldsOf);
  if (!isMapping(value)) return typeof value === 'object' ? 'null' : '';
  return Object.entries(value).map(([name, field]) => [name, fieldsOf(field)]);
}
