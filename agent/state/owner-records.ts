// One record for each owner on disk, for the agent that starts next. Owns the file; without a readable file there are
// only no records.

import { BackgroundWrite } from '../base/background-write.ts';
import type { DiskFile } from '../base/disk-file.ts';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../host/log.ts';
import { RecordLog } from '../host/record-log.ts';
import type { OwnerKey } from '../model/load-balancer.ts';

/** Changes within this time are written together. */
const DELAY_MS = 1_000;
const RETRY_DELAY_MS = 30_000;
/** Writing takes at most an eleventh of the time. */
const REST = 10;

export interface OwnerRecordsOptions {
  readonly path: string;
  /** For the log: `last members of pools`. */
  readonly content: string;
  readonly log: Log;
}

export class OwnerRecords {
  readonly #options: OwnerRecordsOptions;
  readonly #file: RecordLog;
  readonly #writing: BackgroundWrite;
  readonly #kept = new Map<OwnerKey, string>();
  /** Owners whose record is not written yet. */
  readonly #changed = new Set<OwnerKey>();

  constructor(options: OwnerRecordsOptions) {
    const { path, content, log } = options;
    this.#options = options;
    this.#file = new RecordLog(path, () => this.#kept);
    this.#writing = new BackgroundWrite({
      write: () => this.#write(),
      delayMs: DELAY_MS,
      retryMs: RETRY_DELAY_MS,
      rest: REST,
      onFault: (error) => log.warn(`The ${content} cannot be written`, { error }),
    });
  }

  get file(): DiskFile {
    return this.#writing.file(this.#options.path);
  }

  /** Gives each record of the earlier agent to `take`, which throws if it is invalid. */
  read(take: (owner: OwnerKey, value: unknown) => void): void {
    const { content, log } = this.#options;
    for (const [owner, value] of this.#file.values()) {
      try {
        take(owner, value);
      } catch (error) {
        log.warn(`The ${content} of a Service cannot be read`, { service: owner, error: messageOf(error) });
      }
    }
    const { damage } = this.#file;
    if (damage !== undefined) log.warn(`Some ${content} cannot be read`, { error: damage });
  }

  /** `json`: on one line; undefined for no record. */
  set(owner: OwnerKey, json: string | undefined): void {
    if (json === this.#kept.get(owner)) return;
    if (json === undefined) this.#kept.delete(owner);
    else this.#kept.set(owner, json);
    this.#changed.add(owner);
    this.#writing.soon();
  }

  /** Resolves after the last write. */
  async close(): Promise<void> {
    await this.#writing.close();
  }

  async #write(): Promise<void> {
    const owners = [...this.#changed];
    this.#changed.clear();
    try {
      await this.#file.write(owners.map((owner) => [owner, this.#kept.get(owner)]));
    } catch (error) {
      for (const owner of owners) this.#changed.add(owner);
      throw error;
    }
  }
}
