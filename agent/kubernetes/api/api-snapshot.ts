// Keeps the API's objects on disk, for an agent that starts while no API server answers.
// Changes are written in the background, a few seconds after they came.

import { BackgroundWrite, type BackgroundWriteOptions } from '../../base/background-write.ts';
import type { DiskFile } from '../../base/disk-file.ts';
import { HeadgateError } from '../../base/errors.ts';
import type { AddressRange } from '../../base/ip-range.ts';
import { Slice } from '../../base/slice.ts';
import { isMapping } from '../../base/validate.ts';
import { type RecordChange, RecordLog } from '../../host/record-log.ts';
import type { ObjectRef } from '../cluster.ts';
import type { KubernetesObject } from '../objects.ts';

export interface ApiSnapshotOptions {
  readonly path: string;
  /** The request: a snapshot of another one is not used. */
  readonly scope: string;
  /** All objects that count now. */
  readonly objects: () => Iterable<KubernetesObject>;
  readonly onFailure: (error: HeadgateError) => void;
  readonly times?: Partial<typeof TIMES>;
}

/** The key of the record that describes the file; all other keys are `Kind key`. */
const HEADER = 'header';
/** To be raised with each change of the fields of objects: a snapshot of another format is not used. */
const FORMAT = 5;
const TIMES: Pick<BackgroundWriteOptions, 'delayMs' | 'retryMs'> = { delayMs: 2_000, retryMs: 30_000 };
/** Writing takes at most an eleventh of the time. */
const REST = 10;

export class ApiSnapshot {
  readonly #options: ApiSnapshotOptions;
  readonly #log: RecordLog;
  readonly #writing: BackgroundWrite;
  /** `Kind key` → the object to be written; undefined: it is gone. */
  readonly #waiting = new Map<string, KubernetesObject | undefined>();
  #isStarted = false;

  constructor(options: ApiSnapshotOptions) {
    const { path, onFailure, times } = options;
    this.#options = options;
    this.#log = new RecordLog(path, () => this.#all());
    this.#writing = new BackgroundWrite({
      write: () => this.#write(),
      ...TIMES,
      ...times,
      rest: REST,
      onFault: (cause) =>
        onFailure(
          new HeadgateError('FILE_WRITE', `Cannot write the snapshot of the API server to "${path}"`, {
            cause,
          }),
        ),
    });
  }

  /** undefined if there is no usable one. */
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

  /** From now on the objects come from the API server: writes them all, and each change from then on. */
  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#writing.soon();
  }

  /** Takes a change; ignored before `start()`. */
  note(upserted: readonly KubernetesObject[], removed: readonly ObjectRef[]): void {
    if (!this.#isStarted) return;
    for (const { kind, key } of removed) this.#waiting.set(`${kind} ${key}`, undefined);
    for (const object of upserted) this.#waiting.set(`${object.kind} ${object.key}`, object);
    if (this.#waiting.size > 0) this.#writing.soon();
  }

  get file(): DiskFile {
    return this.#writing.file(this.#options.path);
  }

  /** Writes the waiting changes now. */
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
    return JSON.stringify({ format: FORMAT, scope: this.#options.scope });
  }
}

/** Fields without a value become null, so that an object that is read equals the written one. */
function jsonOf(object: KubernetesObject): string {
  return JSON.stringify(object, (_, field: unknown) => {
    if (typeof field === 'bigint') return String(field);
    return field === undefined ? null : field;
  });
}

/** JSON has no undefined, Infinity (a Service's time of creation) or bigint (the blocks of a pool); objects have no null. */
function restored(json: Readonly<Record<string, unknown>>): KubernetesObject {
  const object = withoutNulls(json) as Record<string, unknown>;
  if ('created' in object && object.created === undefined) object.created = Number.POSITIVE_INFINITY;
  if (object.kind === 'AddressPool') {
    object.blocks = blocksOf(object.blocks);
    if (isMapping(object.public)) {
      const { inside, outside, ranges } = object.public;
      if (Array.isArray(ranges)) object.public = { ...object.public, ranges: blocksOf(ranges) };
      else if (inside !== undefined) {
        const [first, last] = blocksOf([inside, outside]);
        object.public = { kind: 'from', inside: first, outside: last };
      }
    }
  }
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
