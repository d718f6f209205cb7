// Deletes flows that pods opened before the rules gave them their VIP, or another one: UDP would keep its first source as long as
// the pod does not pause, and a connection that nothing answers would be tried with it again. In the background, one pass through
// all flows for all pods that are due.

import { backoffMs } from '../../base/backoff.ts';
import { type Clock, systemClock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { addressNumber } from '../../base/ip-range.ts';
import type { Family } from '../../model/load-balancer.ts';
import { FlowProgram } from '../flows/flow-program.ts';

export interface ForgetSourcesOptions {
  readonly netns: string;
  /** Why such flows may stay, once while it lasts; '' for no more. */
  readonly onFault: (why: string) => void;
  readonly program?: Pick<FlowProgram, 'pass' | 'close'>;
  readonly clock?: Clock;
}

/** A pass takes at most this part of a processor, with so much time for each flow. */
const SHARE_OF_TIME = 1 / 4;
const FLOW_COST_MS = 0.005;
const RETRY = { firstMs: 500, mostMs: 30_000 } as const;

export class ForgetSources {
  readonly #options: ForgetSourcesOptions;
  readonly #clock: Clock;
  readonly #program: Pick<FlowProgram, 'pass' | 'close'>;
  /** Key: a pod; value: the source that its flows must have, which is its own address for none. */
  #due = new Map<string, string>();
  #cancel: (() => void) | undefined;
  #isPassing = false;
  #restUntil = 0;
  #failures = 0;
  #isClosed = false;

  constructor(options: ForgetSourcesOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#program = options.program ?? new FlowProgram(options.netns);
  }

  /** These pods leave from these VIPs now; undefined: from none. */
  changed(pods: Iterable<readonly [pod: string, vip: string | undefined]>): void {
    for (const [pod, vip] of pods) this.#due.set(pod, vip ?? pod);
    this.#schedule();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
    this.#program.close();
  }

  #schedule(): void {
    this.#cancel?.();
    if (this.#isClosed || this.#isPassing || this.#due.size === 0) return;
    const waitMs = Math.max(0, this.#restUntil - this.#clock.monotonic());
    this.#cancel = this.#clock.after(waitMs, () => void this.#pass());
  }

  async #pass(): Promise<void> {
    this.#isPassing = true;
    const due = this.#due;
    this.#due = new Map();
    const families = new Set(Array.from(due.keys(), familyOf));
    const orders = Array.from(due, ([pod, vip]) => `from ${digits(pod)} ${digits(vip)}`);
    const at = this.#clock.monotonic();
    const why = await this.#program.pass(orders, families).then(({ flows }) => {
      this.#restUntil = at + (flows * FLOW_COST_MS) / SHARE_OF_TIME;
      return '';
    }, messageOf);
    this.#isPassing = false;
    if (this.#isClosed) return;
    if (why === '') this.#failures = 0;
    else {
      this.#restUntil = this.#clock.monotonic() + backoffMs(++this.#failures, RETRY);
      this.#due = new Map([...due, ...this.#due]);
    }
    this.#options.onFault(why);
    this.#schedule();
  }
}

function familyOf(address: string): Family {
  return address.includes(':') ? 'v6' : 'v4';
}

function digits(address: string): string {
  return addressNumber(address)
    .toString(16)
    .padStart(familyOf(address) === 'v4' ? 8 : 32, '0');
}
