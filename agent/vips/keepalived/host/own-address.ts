// Watches this host's own address for VRRP. A host without it cannot answer its clients, but its keepalived may continue
// as master: for a route that is gone the kernel takes the peer for a neighbour.

import { type Clock, systemClock } from '../../../base/clock.ts';
import { messageOf } from '../../../base/errors.ts';
import { Fault } from '../../../base/fault.ts';
import { Rounds } from '../../../base/rounds.ts';
import type { Log } from '../../../host/log.ts';
import { hasAddress } from '../../host-addresses.ts';

export interface OwnAddressOptions {
  readonly netns: string;
  /** The current one. */
  readonly address: () => string;
  /** The address is here again, or is gone. */
  readonly onChange: (isHere: boolean) => void;
  readonly log: Log;
  readonly clock?: Clock;
}

const CHECK_INTERVAL_MS = 1_000;

export class OwnAddress {
  readonly #options: OwnAddressOptions;
  readonly #rounds: Rounds;
  readonly #fault = new Fault();
  readonly #failure = new Fault();

  constructor(options: OwnAddressOptions) {
    const { log, clock = systemClock } = options;
    this.#options = options;
    this.#rounds = new Rounds({
      intervalMs: () => CHECK_INTERVAL_MS,
      work: () => this.#check(),
      onFailed: (error) => {
        if (this.#failure.set(messageOf(error)))
          log.error("Cannot check this host's address", { error: this.#failure.text });
      },
      clock,
    });
  }

  /** '' if the host has the address. */
  get fault(): string {
    return this.#fault.text;
  }

  /** Begins the checks; resolves after the first one. */
  start(): Promise<void> {
    this.#rounds.start();
    return this.check();
  }

  /** Checks at once. Never rejects: after a check that failed the last result stands. */
  check(): Promise<void> {
    return this.#rounds.now();
  }

  close(): void {
    this.#rounds.close();
  }

  async #check(): Promise<void> {
    const { netns, address: current, onChange, log } = this.#options;
    const address = current();
    const isHere = await hasAddress(netns, address);
    this.#failure.clear();
    const wasHere = this.fault === '';
    const fault = `${address}, the "address" of the setting vrrp, is on no interface of this host: this host takes no VIPs until it is`;
    const isNews = this.#fault.set(isHere ? '' : fault);
    if (isNews && isHere) log.info("This host's address is back", { address });
    if (isNews && !isHere) log.error(fault);
    if (isHere !== wasHere) onChange(isHere);
  }
}
