// The lines that keepalived writes to its FIFO: changed states, and other masters. They give no priorities and no
// counters, so the agent reads keepalived's state a moment later.

import { type Clock, systemClock } from '../../base/clock.ts';
import type { Reconciler } from '../../base/reconciler.ts';
import type { VrrpStateName } from '../vrrp.ts';
import type { Daemon } from './daemon.ts';
import type { Rivals } from './states/rivals.ts';
import type { VrrpStates } from './states/vrrp-states.ts';

export type Notification =
  | {
      readonly kind: 'state';
      readonly instance: string;
      readonly state: VrrpStateName;
      readonly priority: number;
    }
  /** A master has received an advertisement of another master, whose priority is lower. */
  | { readonly kind: 'rival'; readonly instance: string };

const LINE = /^INSTANCE "([^"]+)" ([A-Z_]+)(?: (\d+))?$/;
const WORDS: Readonly<Record<string, VrrpStateName>> = {
  MASTER: 'master',
  BACKUP: 'backup',
  FAULT: 'fault',
  STOP: 'unknown',
  DELETED: 'unknown',
};

/** undefined for a line that has no state of an instance. */
export function parseNotification(line: string): Notification | undefined {
  const [, name, word = '', priority] = LINE.exec(line) ?? [];
  if (name === undefined) return undefined;
  if (word === 'MASTER_RX_LOWER_PRI') return { kind: 'rival', instance: name };
  const state = WORDS[word];
  return state && { kind: 'state', instance: name, state, priority: Number(priority ?? 0) };
}

export interface NoticesOptions {
  readonly daemon: Pick<Daemon, 'notified' | 'isReloading'>;
  readonly states: Pick<VrrpStates, 'notified'>;
  readonly rivals: Pick<Rivals, 'received'>;
  readonly reconciler: Pick<Reconciler, 'isUnderWay'>;
  /** Reads the state of keepalived. */
  readonly read: () => void;
  readonly clock?: Clock;
}

/** From a transition until its effects are there to read. */
const READ_DELAY_MS = 250;

export class Notices {
  readonly #options: NoticesOptions;
  #cancel: (() => void) | undefined;

  constructor(options: NoticesOptions) {
    this.#options = options;
  }

  /** Takes a line of the FIFO. */
  receive(line: string): void {
    const { daemon, states, rivals } = this.#options;
    const notification = parseNotification(line);
    daemon.notified();
    if (notification?.kind === 'rival') rivals.received(notification.instance);
    else if (notification?.kind === 'state' && !daemon.isReloading) {
      states.notified(notification.instance, notification.state, notification.priority, new Date());
      this.readSoon();
    }
  }

  /** Something has changed that keepalived does not notify. */
  readSoon(): void {
    const { reconciler, read, clock = systemClock } = this.#options;
    this.#cancel?.();
    this.#cancel = clock.after(READ_DELAY_MS, () => {
      // A step reads the state itself, and keepalived may not be ready for a signal.
      if (reconciler.isUnderWay) this.readSoon();
      else read();
    });
  }

  close(): void {
    this.#cancel?.();
  }
}
