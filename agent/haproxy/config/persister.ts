// Keeps haproxy.cfg at the desired state for a crash or a reboot: one write follows the changes of two seconds. Writes only
// sections that HAProxy has accepted; a reload that must check others writes the file itself.
// Why: docs/design/decisions/0020-the-file-follows.md

import { type Clock, systemClock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Fault } from '../../base/fault.ts';
import { serial } from '../../base/serial.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import type { ConfigFile } from './config-file.ts';
import { configText, inFileOrder } from './config-text.ts';
import type { RenderContext } from './render-context.ts';

export interface PersisterOptions {
  readonly file: Pick<ConfigFile, 'isKnown' | 'write'>;
  /** The load balancers for the file; undefined while a reload or a start writes it. */
  readonly loadBalancers: () => ReadonlyMap<string, LoadBalancer> | undefined;
  readonly context: (loadBalancers: ReadonlyMap<string, LoadBalancer>) => RenderContext;
  /** Writes the files that haproxy.cfg names. Errors: FILE_WRITE. */
  readonly writeFiles: (loadBalancers: Iterable<LoadBalancer>) => Promise<void>;
  /** Writes the rejections. Errors: FILE_WRITE. */
  readonly keepRejections: () => Promise<void>;
  readonly onPersisted: (result: 'done' | 'failed') => void;
  readonly log: Log;
  readonly clock?: Clock;
}

/** From the first change to the write of the whole file. */
const WRITE_DELAY_MS = 2_000;
const RETRY_DELAY_MS = 1_000;

export class Persister {
  readonly #options: PersisterOptions;
  readonly #clock: Clock;
  readonly #writes = serial();
  readonly #fault = new Fault();
  #cancel: (() => void) | undefined;
  #isClosed = false;
  /** Milliseconds since the epoch; 0: not yet. */
  #writtenAt = 0;

  constructor(options: PersisterOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Why the file is not at the desired state; '' if it is, or will be soon. */
  get fault(): string {
    return this.#fault.text;
  }

  get writtenAt(): number {
    return this.#writtenAt;
  }

  /** After a start, when another process may have changed the file in the meantime. */
  catchUp(): void {
    if (!this.#options.file.isKnown) this.soon();
  }

  /** The desired state has changed. */
  soon(): void {
    this.#schedule(WRITE_DELAY_MS);
  }

  /** Writes after the write that is under way. Never rejects. */
  now(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    return this.#writes.run(() => this.#write());
  }

  /** Resolves when no write is under way. */
  idle(): Promise<void> {
    return this.#writes.idle();
  }

  /** A write failed, here or elsewhere; it is retried until it succeeds. */
  failed(error: unknown): void {
    const { onPersisted, log } = this.#options;
    onPersisted('failed');
    if (this.#fault.set(messageOf(error)))
      log.error('Cannot write haproxy.cfg; traffic continues', { error: this.#fault.text });
    this.#schedule(RETRY_DELAY_MS);
  }

  /** A write succeeded, here or elsewhere. */
  worked(): void {
    const { onPersisted, log } = this.#options;
    onPersisted('done');
    this.#writtenAt = this.#clock.wall();
    if (this.#fault.clear()) log.info('haproxy.cfg can be written again');
  }

  /** Writes if a write is due. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#cancel === undefined) await this.idle();
    else await this.now();
  }

  #schedule(delayMs: number): void {
    if (this.#isClosed || this.#cancel !== undefined) return;
    this.#cancel = this.#clock.after(delayMs, () => void this.now());
  }

  async #write(): Promise<void> {
    const { file, loadBalancers, context, writeFiles, keepRejections } = this.#options;
    try {
      await keepRejections();
      const desired = loadBalancers();
      if (desired === undefined) {
        this.#schedule(RETRY_DELAY_MS);
        return;
      }
      await writeFiles(desired.values());
      const { chunks } = await configText(inFileOrder(desired), context(desired));
      await file.write(chunks);
      this.worked();
    } catch (error) {
      this.failed(error);
    }
  }
}
