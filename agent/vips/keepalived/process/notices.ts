// What keepalived says by itself, by its FIFO: states that change and masters that it hears besides itself. It does not
// say what came of it, and nothing of priorities: it is asked for these a moment later.

import type { Reconciler } from '../../../base/reconciler.ts';
import { parseNotification } from '../states/dump.ts';
import type { RivalWatch } from '../states/rival-watch.ts';
import type { VrrpStates } from '../states/vrrp-states.ts';
import type { Daemon } from './daemon.ts';

export interface NoticesOptions {
  readonly daemon: Pick<Daemon, 'spoke' | 'isReloading'>;
  readonly states: Pick<VrrpStates, 'notified'>;
  readonly rivals: Pick<RivalWatch, 'heard'>;
  readonly reconciler: Pick<Reconciler, 'isUnderWay'>;
  /** Asks keepalived. */
  readonly ask: () => void;
}

/** Milliseconds after a transition until keepalived is asked what came of it. */
const SETTLED = 250;

export class Notices {
  readonly #options: NoticesOptions;
  #asking: NodeJS.Timeout | undefined;

  constructor(options: NoticesOptions) {
    this.#options = options;
  }

  /** A line of the FIFO. */
  hear(line: string): void {
    const { daemon, states, rivals } = this.#options;
    const heard = parseNotification(line);
    daemon.spoke();
    if (heard?.kind === 'rival') rivals.heard(heard.instance);
    else if (heard?.kind === 'state' && !daemon.isReloading) {
      states.notified(heard, new Date());
      this.askSoon();
    }
  }

  /** Something has changed that keepalived does not tell of. */
  askSoon(): void {
    const { reconciler, ask } = this.#options;
    clearTimeout(this.#asking);
    this.#asking = setTimeout(() => {
      // A step under way asks by itself, and keepalived may not be ready for another question.
      if (reconciler.isUnderWay) this.askSoon();
      else ask();
    }, SETTLED).unref();
  }

  close(): void {
    clearTimeout(this.#asking);
  }
}
