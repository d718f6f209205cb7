// Compares all elements that the kernel has with those that it should have, at once if another process has changed some, else
// now and then, and puts back those that are missing. Anything else that differs makes all rules be loaded again. Owns its timer.

import { type Clock, systemClock } from '../../base/clock.ts';
import { Rounds } from '../../base/rounds.ts';
import { Slice } from '../../base/slice.ts';
import type { Log } from '../../host/log.ts';
import { type Digests, differences, digestsOf, digestsOfElements } from '../rules/element-digests.ts';
import type { KernelTable } from './kernel-table.ts';

export interface ElementAuditOptions {
  readonly table: KernelTable;
  /** Reads what the kernel has, until the signal; if it is not urgent, others get the processor first. Errors: NFT_FAILED. */
  readonly read: (isUrgent: boolean, signal: AbortSignal) => Promise<Digests>;
  /** Loads all rules again. */
  readonly load: (why: string) => Promise<void>;
  readonly metrics: { repaired(what: 'element'): void };
  readonly log: Log;
  readonly clock?: Clock;
}

const LEAST_INTERVAL_MS = 10_000;
/** The rest after a round, in lengths of the round: it costs at most four percent of a processor. */
const REST = 25;
/** The same after another process has changed elements: at most half of one. Doubled if nothing differs. */
const REST_AFTER_CHANGE = 1;
/** So that changes that follow each other are one round. */
const SETTLE_MS = 20;
const MAX_SHOWN = 5;

export class ElementAudit {
  readonly #options: ElementAuditOptions;
  readonly #rounds: Rounds;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  #tookMs = 0;
  #endedAt = Number.NEGATIVE_INFINITY;
  #restAfterChange = REST_AFTER_CHANGE;
  /** Another process has changed elements since the last round began. */
  #isChanged = false;

  constructor(options: ElementAuditOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#rounds = new Rounds({
      intervalMs: () => {
        if (!this.#isChanged) return Math.max(LEAST_INTERVAL_MS, REST * this.#tookMs);
        return Math.max(
          SETTLE_MS,
          this.#endedAt + this.#restAfterChange * this.#tookMs - this.#clock.monotonic(),
        );
      },
      work: async () => {
        const isUrgent = this.#isChanged;
        this.#isChanged = false;
        const began = this.#clock.monotonic();
        this.#restAfterChange = isUrgent ? Math.min(REST, this.#restAfterChange * 2) : REST_AFTER_CHANGE;
        await this.#audit(isUrgent).finally(() => {
          this.#endedAt = this.#clock.monotonic();
          this.#tookMs = this.#endedAt - began;
        });
      },
      onFailed: (error) =>
        options.log.debug('Cannot compare the elements of nftables', { error: String(error) }),
      clock: this.#clock,
    });
  }

  start(): void {
    this.#rounds.start();
  }

  /** Another process has changed elements. */
  changed(): void {
    if (this.#isChanged) return;
    this.#isChanged = true;
    this.#rounds.retime();
  }

  close(): void {
    this.#rounds.close();
    this.#closing.abort();
  }

  async #audit(isUrgent: boolean): Promise<void> {
    const { table, read, load, metrics, log } = this.#options;
    if (!table.isLoaded || table.listeners().length === 0) return;
    const { generation } = table;
    const changed = table.changedFromNow();
    const found = await read(isUrgent, this.#closing.signal);
    if (generation !== table.generation) return;
    // A change under way ends before the answer to this.
    if (!(await table.isIntact())) return load('Another process has removed them');
    const { lacking, missing, wrong } = differences(await this.#wanted(), found, changed);
    if (lacking.size === 0 && wrong === undefined) return;
    this.#restAfterChange = REST_AFTER_CHANGE;
    if (wrong === undefined && (await table.putBack(lacking))) {
      const places = [...lacking].slice(0, MAX_SHOWN).join(', ');
      log.warn('Put back elements of nftables that another process had removed', {
        elements: missing,
        places,
      });
      for (let each = 0; each < missing; each++) metrics.repaired('element');
    } else await load(`Another process has changed elements of ${wrong ?? [...lacking][0]}`);
  }

  async #wanted(): Promise<Digests> {
    const { table } = this.#options;
    const wanted = digestsOfElements(table.sharedElements());
    const slice = new Slice();
    for (const listener of table.listeners()) {
      for (const [place, digest] of digestsOf(listener)) wanted.set(place, digest);
      if (slice.isOver) await slice.breathe();
    }
    return wanted;
  }
}
