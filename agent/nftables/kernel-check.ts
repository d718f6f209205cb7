// Checks now and then if the kernel does its part: it must forward packets, and have room for the entries of new flows.

import { Fault } from '../base/fault.ts';
import type { Log } from '../host/log.ts';
import type { Family } from '../model/load-balancer.ts';
import { conntrackUsage, whyFull } from './flows/conntrack-usage.ts';
import { whyNotForwarding } from './forwarding.ts';

export interface KernelCheckOptions {
  readonly netns: string;
  /** The families of the listeners that the kernel has. */
  readonly families: () => ReadonlySet<Family>;
  /** It forwards packets ('') or does not, which is new. */
  readonly onForwarding: (why: string) => void;
  readonly log: Log;
}

/** One of so many calls checks forwarding: each half minute, and each two seconds while the kernel does not forward. */
const FORWARDING_CALLS = 60;
const FAULT_CALLS = 4;
/** One of so many calls checks the room for new flows: each ten seconds. */
const USAGE_CALLS = 20;
const MAY_DROP = 'New flows of the kernel path may be dropped';

export class KernelCheck {
  readonly #options: KernelCheckOptions;
  readonly #forwarding = new Fault();
  readonly #full = new Fault();
  #calls = 0;

  constructor(options: KernelCheckOptions) {
    this.#options = options;
  }

  /** Why packets are not forwarded, although the rules are there; '' if they are. */
  get notForwarding(): string {
    return this.#forwarding.text;
  }

  /** Why new flows are dropped, or about to be; '' if there is room. */
  get full(): string {
    return this.#full.text;
  }

  /** Called each half second. */
  async checkAgain(): Promise<void> {
    if (this.#calls % USAGE_CALLS === 0) await this.#checkUsage();
    const every = this.#forwarding.text === '' ? FORWARDING_CALLS : FAULT_CALLS;
    if (this.#calls++ % every === 0) await this.check();
  }

  async check(): Promise<void> {
    const { netns, families, onForwarding } = this.#options;
    const why = await whyNotForwarding(netns, families());
    if (this.#forwarding.set(why)) onForwarding(why);
  }

  async #checkUsage(): Promise<void> {
    const { netns, log } = this.#options;
    const why = whyFull(await conntrackUsage(netns));
    if (!this.#full.set(why === '' ? '' : `${MAY_DROP}: ${why}`)) return;
    if (why === '') log.info('There is room for new flows of the kernel path again');
    else log.error(MAY_DROP, { error: why });
  }
}
