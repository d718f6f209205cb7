// What is noted when plans were applied, and is planned again later: rows that HAProxy refuses, rows that nothing needs any more,
// routes that wait for a pool, and pools that no route sends to.
// Why: docs/design/decisions/0066-unused-pools.md

import { ownerOf, ownerOfListener } from '../model/names.ts';
import type { WorkerOutcome } from './apply.ts';
import type { HaproxyOptions } from './options.ts';
import type { HaproxyParts } from './parts.ts';
import type { HaproxyPlan } from './plan.ts';
import { Lingering } from './routes/lingering.ts';
import { isOfRow } from './socket/commands.ts';
import { SPARE_TABLE } from './spares.ts';

type Parts = Pick<HaproxyParts, 'arbiter' | 'refusedRows' | 'unneededRows' | 'persister'>;

export class AfterApply {
  readonly #options: Pick<HaproxyOptions, 'desired' | 'replan'>;
  readonly #parts: Parts;
  /** Keys whose routes wait for a pool that the worker does not have. */
  readonly #waiting = new Set<string>();
  /** By key: pools to which no route sends. */
  readonly #unusedPools: Lingering;

  constructor(options: Pick<HaproxyOptions, 'desired' | 'replan'>, parts: Parts) {
    this.#options = options;
    this.#parts = parts;
    this.#unusedPools = new Lingering({
      // The rows of before may still lead to them.
      isWaiting: () => {
        const { arbiter } = parts;
        return this.#waiting.size > 0 || arbiter.pending.size > 0 || arbiter.isReloading;
      },
      onDue: options.replan,
    });
  }

  note(plans: readonly HaproxyPlan[], outcome: WorkerOutcome): void {
    this.#noteRows(plans, outcome);
    this.#noteWaiting(plans, outcome);
    this.#noteUnused(plans);
  }

  /** A pool that is not desired any more may lose its servers now. */
  isUnused(key: string): boolean {
    return this.#unusedPools.isDue(key);
  }

  close(): void {
    this.#parts.unneededRows.close();
    this.#unusedPools.close();
  }

  /** Rows that HAProxy refuses are left out from now on; others that are not needed are deleted a second later. */
  #noteRows(plans: readonly HaproxyPlan[], { refusedRows: refused }: WorkerOutcome): void {
    const { refusedRows, unneededRows, persister } = this.#parts;
    for (const { listener, row, reply } of refused) refusedRows.refuse(listener, row, reply);
    if (refused.length > 0) {
      persister.soon();
      this.#options.replan(refused.map(({ listener }) => ownerOfListener(listener)));
    }
    for (const { unneededRows: byListener } of plans)
      for (const [listener, tables] of byListener) unneededRows.note(listener, tables);
  }

  /** Routes that wait for a pool are planned again when a pool has got a spare backend; a reload plans all. */
  #noteWaiting(plans: readonly HaproxyPlan[], { acknowledged }: WorkerOutcome): void {
    for (const { key, waits } of plans)
      if (waits) this.#waiting.add(key);
      else this.#waiting.delete(key);
    if (acknowledged.some((command) => isOfRow(command) && command.position.table === SPARE_TABLE))
      this.#options.replan([...this.#waiting]);
  }

  /** A pool that is not desired any more loses its servers with a later plan. */
  #noteUnused(plans: readonly HaproxyPlan[]): void {
    for (const { key } of plans) {
      if (ownerOf(key).kind !== 'Pool') continue;
      const isUsed = this.#options.desired.get(key) !== undefined;
      if (isUsed || this.#unusedPools.isDue(key)) this.#unusedPools.forget(key);
      else this.#unusedPools.note(key);
    }
  }
}
