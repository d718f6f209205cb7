// Keeps the API's objects on disk, so that an agent that starts while no API server answers serves the last good state.
// Changes are written in the background, a few seconds after they came.

import { BackgroundWrite } from '../../base/background-write.ts';
import { HeadgateError } from '../../base/errors.ts';
import type { AddressRange } from '../../base/ip-range.ts';
import { Slice } from '../../base/slice.ts';
import { isMapping } from '../../base/validate.ts';
import { type RecordChange, RecordLog } from '../../host/record-log.ts';
import type { ObjectRef } from '../cluster.ts';
import { ADDRESS_API_VERSION } from '../object-names.ts';
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

/** The key of the record that says what the others are; those are `Kind key`. */
const HEADER = 'header';
/** Writing takes at most an eleventh of the time. */
const REST = 10;

export class ApiSnapshot {
  readonly #options: ApiSnapshotOptions;
  readonly #log: RecordLog;
  readonly #writing: BackgroundWrite;
  /** `Kind key` → what is to be appended; undefined: the object is gone. */
  readonly #waiting = new Map<string, KubernetesObject | undefined>();
  #isStarted = false;

  constructor(options: ApiSnapshotOptions) {
    const { path, onFailure, times } = options;
    this.#options = options;
    this.#log = new RecordLog(path, () => this.#all());
    this.#writing = new BackgroundWrite({
      write: () => this.#write(),
      delayMs: times?.delay ?? 2_000,
      retryMs: times?.retry ?? 30_000,
      rest: REST,
      onFault: (cause) =>
        onFailure(new HeadgateError('FILE_WRITE', `Cannot keep the API's objects in "${path}"`, { cause })),
    });
  }

  /** undefined if there is none that can be used. */
  async load(): Promise<readonly KubernetesObject[] | undefined> {
    const objects: KubernetesObject[] = [];
    const slice = new Slice();
    let isUsable = false;
    for (const [key, value] of this.#log.values()) {
      if (key === HEADER) isUsable = JSON.stringify(value) === this.#header();
      else if (isMapping(value)) objects.push(restored(value));
      if (slice.isOver) await slice.breathe();
    }
    const { damage } = this.#log;
    if (damage !== undefined) this.#options.onFailure(damage);
    return isUsable ? objects : undefined;
  }

  /** From now on the objects are the API's own: the file is to become what they are. */
  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#writing.soon();
  }

  /** What has changed; nothing is written before start(). */
  note(upserted: readonly KubernetesObject[], removed: readonly ObjectRef[]): void {
    if (!this.#isStarted) return;
    for (const { kind, key } of removed) this.#waiting.set(`${kind} ${key}`, undefined);
    for (const object of upserted) this.#waiting.set(`${object.kind} ${object.key}`, object);
    if (this.#waiting.size > 0) this.#writing.soon();
  }

  /** Writes what waits, now. */
  async flush(): Promise<void> {
    if (this.#isStarted) await this.#writing.now();
  }

  async close(): Promise<void> {
    await this.flush();
    await this.#writing.close();
  }

  async #write(): Promise<void> {
    const some = [...this.#waiting];
    await this.#log.write(some.map(([key, object]) => [key, object && jsonOf(object)]));
    for (const [key, object] of some) if (this.#waiting.get(key) === object) this.#waiting.delete(key);
  }

  *#all(): Generator<RecordChange, void, void> {
    yield [HEADER, this.#header()];
    for (const object of this.#options.objects()) yield [`${object.kind} ${object.key}`, jsonOf(object)];
  }

  #header(): string {
    return JSON.stringify({ shape: shape(), scope: this.#options.scope });
  }
}

/** Fields without a value are kept: an object that is read again equals the one that was written. */
function jsonOf(object: KubernetesObject): string {
  return JSON.stringify(object, (_, field: unknown) => {
    if (typeof field === 'bigint') return String(field);
    return field === undefined ? null : field;
  });
}

/**
 * JSON has no undefined, no Infinity and no bigint; objects have no null, Infinity only as a Service's time of
 * creation, and bigints only as the blocks of a pool.
 */
function restored(json: Readonly<Record<string, unknown>>): KubernetesObject {
  const object = withoutNulls(json) as Record<string, unknown>;
  if ('created' in object && object.created === undefined) object.created = Number.POSITIVE_INFINITY;
  if (object.kind === 'AddressPool') object.blocks = blocksOf(object.blocks);
  return object as unknown as KubernetesObject;
}
function blocksOf(blocks: unknown): readonly AddressRange[] {
  return (blocks as readonly (AddressRange & Record<'first' | 'last', string>)[]).map(
    ({ family, first, last }) => ({ family, first: BigInt(first), last: BigInt(last) }),
  );
}

function withoutNulls(value: unknown): unknown {
  if (value === null) return undefined;
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isMapping(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, withoutNulls(field)]));
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
