// Finds the moment for a reload of keepalived at which it misses no advertisement. While it reloads it hears nothing, for
// 12 to 31 ms with a thousand addresses, and what arrives meanwhile is lost: a backup would miss one in ten or so, of the
// three for which it waits. So a reload follows right after an advertisement, and the next one finds it done.

import { setTimeout as delay } from 'node:timers/promises';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../host/log.ts';
import { instanceName, type VrrpSettings } from '../../vrrp.ts';
import type { VrrpStates } from '../states/vrrp-states.ts';
import type { AdvertAges } from './advert-ages.ts';

export interface BetweenAdvertsOptions {
  readonly ages: Pick<AdvertAges, keyof AdvertAges>;
  readonly vrrp: () => VrrpSettings;
  readonly states: Pick<VrrpStates, 'of'>;
  readonly log: Log;
  /** Milliseconds that never go back. */
  readonly now?: () => number;
  readonly wait?: (milliseconds: number) => Promise<unknown>;
}

/** Milliseconds; where advertisements are further apart a reload seldom meets one, and is not kept waiting. */
const LONGEST = 1_000;
/** Milliseconds by which an advertisement may be late. */
const LATE = 10;
/** Milliseconds after which a reload is not kept waiting any longer, whatever is heard; two intervals do as a rule. */
const PATIENCE = 2_000;

export class BetweenAdverts {
  readonly #options: BetweenAdvertsOptions;
  readonly #now: () => number;
  readonly #wait: (milliseconds: number) => Promise<unknown>;
  #fault = '';

  constructor(options: BetweenAdvertsOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#wait = options.wait ?? delay;
  }

  /** Does it at the right moment, which comes within two intervals, or at once where that cannot be known. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    const { ages, vrrp, states } = this.#options;
    const { advertInterval: interval, instances, peers } = vrrp();
    const routers = instances
      .map(({ virtualRouterId }) => virtualRouterId)
      .filter((id) => states.of(instanceName(id)).state === 'backup');
    if (routers.length === 0 || interval > LONGEST) return work();
    try {
      await ages.begin(routers, peers);
    } catch (error) {
      this.#failed(error);
      return work();
    }
    try {
      await this.#lull(interval).catch((error) => this.#failed(error));
      return await work();
    } finally {
      await ages.end().catch((error) => this.#failed(error));
    }
  }

  /** Returns when the next advertisement is as far away as it has to be. */
  async #lull(interval: number): Promise<void> {
    const until = this.#now() + PATIENCE;
    await this.#wait(interval + LATE);
    for (;;) {
      const asked = this.#now();
      const heard = await this.#options.ages.read();
      // They were read at some time since then: the earliest counts.
      const since = this.#now() - asked;
      const left = [...heard.values()].map((age) => interval - age - since);
      const next = Math.min(...left);
      if (left.length === 0) return;
      // Advertisements of several virtual routers come one after the other: where most is between them is room enough.
      if (next >= ((2 / 3) * interval) / left.length) return;
      const pause = Math.max(0, next) + LATE;
      if (this.#now() + pause > until) return;
      await this.#wait(pause);
    }
  }

  /** Said once: a reload is not worse for it than it would be without. */
  #failed(error: unknown): void {
    const fault = messageOf(error);
    if (fault !== this.#fault)
      this.#options.log.warn('A reload of keepalived may miss an advertisement', { error: fault });
    this.#fault = fault;
  }
}
