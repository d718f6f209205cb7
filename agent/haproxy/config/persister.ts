// Keeps haproxy.cfg at desired within a second of a change (up to five, where a big file changes without end), so that a
// crash or a reboot comes back right.
// Writes only what HAProxy has accepted: where something is still to be checked, the reload that is due writes it.

import { messageOf } from '../../errors.ts';
import type { Log } from '../../log.ts';
import type { LoadBalancer } from '../../model.ts';
import type { ConfigFile } from './config-file.ts';
import { configText, inFileOrder } from './config-text.ts';
import type { RenderContext } from './render-context.ts';

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

/** Milliseconds from the first change to the write. */
const SOON = 800;
const AGAIN = 1_000;
/**
 * Where changes never end, a write is followed by a rest of this many times its own length, within limits: the bigger
 * the file, the more changes one write of it has to be worth.
 */
const REST = 50;
const SHORTEST_REST = 1_000;
const LONGEST_REST = 5_000;

export class Persister {
  readonly #options: PersisterOptions;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  /** When the next write may begin, by performance.now(). */
  #restsUntil = 0;
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

  /** Once for all changes of the next moment; less often where a big file is written again and again. */
  soon(delay = SOON): void {
    if (this.#closed || this.#timer !== undefined) return;
    const rest = this.#restsUntil - performance.now();
    this.#timer = setTimeout(() => void this.now(), Math.max(delay, rest));
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
    this.soon(AGAIN);
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

  async #write(): Promise<void> {
    const { file, loadBalancers, context, keepRejections } = this.#options;
    try {
      await keepRejections();
      const wanted = loadBalancers();
      if (wanted === undefined) {
        this.soon(AGAIN);
        return;
      }
      const began = performance.now();
      const { chunks } = await configText(inFileOrder(wanted), context(wanted));
      await file.write(chunks);
      const ended = performance.now();
      this.#restsUntil = ended + Math.min(LONGEST_REST, Math.max(SHORTEST_REST, REST * (ended - began)));
      this.worked();
    } catch (error) {
      this.failed(error);
    }
  }
}
