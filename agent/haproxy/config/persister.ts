// Keeps haproxy.cfg at desired within a second of a change (up to five, where changes never end), so that a crash or a
// reboot comes back right.
// Writes only what HAProxy has accepted: where something is still to be checked, the reload that is due writes it.

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer } from '../../model/load-balancer.ts';
import type { ConfigFile } from './config-file.ts';
import { configText, inFileOrder } from './config-text.ts';
import type { RenderContext } from './render-context.ts';
import { WritePace } from './write-pace.ts';

export interface PersisterOptions {
  readonly file: ConfigFile;
  /** What is to stand in the file; undefined while a reload decides that. */
  readonly loadBalancers: () => ReadonlyMap<string, LoadBalancer> | undefined;
  readonly context: (loadBalancers: ReadonlyMap<string, LoadBalancer>) => RenderContext;
  /** Writes what is kept beside the file. Errors: FILE_WRITE. */
  readonly keepRejections: () => Promise<void>;
  readonly onPersisted: (result: 'done' | 'failed') => void;
  readonly log: Log;
}

/** Milliseconds to the next attempt. */
const AGAIN = 1_000;

export class Persister {
  readonly #options: PersisterOptions;
  readonly #pace = new WritePace();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #fault = '';
  #closed = false;

  constructor(options: PersisterOptions) {
    this.#options = options;
  }

  /** Why the file is not at desired, '' where it is (or soon will be). */
  get fault(): string {
    return this.#fault;
  }

  /** After a start, when the file may have been changed while nobody looked. */
  catchUp(): void {
    if (!this.#options.file.isKnown) this.soon();
  }

  /** Once for all changes of the next moment; less often where they never end. */
  soon(): void {
    if (this.#timer === undefined) this.#in(this.#pace.delay(performance.now()));
  }

  /** Writes after what is being written already. Never rejects. */
  now(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  /** Resolves when nothing is being written. */
  idle(): Promise<void> {
    return this.#writing;
  }

  /** Takes note of a write that failed, here or elsewhere; it is tried again until it works. */
  failed(error: unknown): void {
    this.#options.onPersisted('failed');
    if (this.#fault === '') {
      this.#options.log.error('Cannot keep the state on disk; traffic goes on', { error: messageOf(error) });
    }
    this.#fault = messageOf(error);
    this.#in(AGAIN);
  }

  /** Takes note of a write that was done, here or elsewhere. */
  worked(): void {
    const { onPersisted, log } = this.#options;
    onPersisted('done');
    if (this.#fault !== '') log.info('The state can be kept on disk again');
    this.#fault = '';
  }

  /** Writes what was still to come. */
  async close(): Promise<void> {
    const isDue = this.#timer !== undefined;
    this.#closed = true;
    clearTimeout(this.#timer);
    if (isDue) await this.now();
    await this.#writing;
  }

  #in(milliseconds: number): void {
    if (this.#closed || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => void this.now(), milliseconds);
  }

  async #write(): Promise<void> {
    const { file, loadBalancers, context, keepRejections } = this.#options;
    try {
      await keepRejections();
      const wanted = loadBalancers();
      if (wanted === undefined) {
        this.#in(AGAIN);
        return;
      }
      const began = performance.now();
      this.#pace.begins(began);
      const { chunks } = await configText(inFileOrder(wanted), context(wanted));
      await file.write(chunks);
      this.#pace.wrote(began, performance.now());
      this.worked();
    } catch (error) {
      this.failed(error);
    }
  }
}
