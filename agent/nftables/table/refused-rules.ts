// The load balancers whose rules nft refuses: each is left out until its rules change, so that nft takes the others.

import { isolate } from '../../base/isolate.ts';
import { sameValue } from '../../base/same-value.ts';
import type { Log } from '../../host/log.ts';
import type { LoadBalancer, OwnerKey, Problem } from '../../model/load-balancer.ts';
import { objectOf } from '../../model/names.ts';
import { type KernelListener, kernelListeners } from '../rules/kernel-listener.ts';

export interface RefusedRulesOptions {
  readonly desired: ReadonlyMap<OwnerKey, LoadBalancer>;
  /** What nft says against these rules; '' if it takes them. */
  readonly check: (listeners: readonly KernelListener[]) => Promise<string>;
  readonly log: Log;
}

interface Refusal {
  readonly listeners: readonly KernelListener[];
  /** What nft says. */
  readonly message: string;
}

export class RefusedRules {
  readonly #options: RefusedRulesOptions;
  readonly #refusals = new Map<OwnerKey, Refusal>();

  constructor(options: RefusedRulesOptions) {
    this.#options = options;
  }

  has(loadBalancer: LoadBalancer | undefined): boolean {
    if (loadBalancer === undefined) return false;
    const refusal = this.#refusals.get(loadBalancer.key);
    return refusal !== undefined && sameValue(refusal.listeners, kernelListeners(loadBalancer));
  }

  problemOf(loadBalancer: LoadBalancer): Problem | undefined {
    if (!this.has(loadBalancer)) return undefined;
    const { key } = loadBalancer;
    const message = `nft refuses its rules: ${this.#refusals.get(key)?.message}`;
    return { object: objectOf(key), reason: 'ConfigurationRejected', message };
  }

  /** Other rules of these load balancers are tried. */
  forgetChanged(keys: Iterable<OwnerKey>): void {
    for (const key of keys) if (!this.has(this.#options.desired.get(key))) this.#refusals.delete(key);
  }

  /** Finds out which load balancers nft refuses; false if it is none of them. Errors: those of `check`. */
  async find(): Promise<boolean> {
    const { desired, check, log } = this.#options;
    const checked = (some: readonly LoadBalancer[]): Promise<string> =>
      check(some.flatMap((each) => (this.has(each) ? [] : kernelListeners(each))));
    if ((await check([])) !== '') return false;
    const suspects = [...desired.values()].filter((each) => kernelListeners(each).length > 0);
    const culprits = await isolate(suspects, async (some) => (await checked(some)) === '');
    for (const loadBalancer of culprits) {
      const { key } = loadBalancer;
      const message = await checked([loadBalancer]);
      this.#refusals.set(key, { listeners: kernelListeners(loadBalancer), message });
      log.error('nft refuses the rules of a load balancer', { loadBalancer: key, error: message });
    }
    return culprits.length > 0;
  }
}
