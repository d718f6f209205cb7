// Which of the wanted VIPs keepalived is given, from what this host's interfaces have now; says once of each that is
// refused why it is.

import type { Log } from '../../host/log.ts';
import { hostAddresses } from '../host-addresses.ts';
import { type Refused, usableVips } from '../usable.ts';
import type { VrrpSettings } from '../vrrp.ts';
import type { ConfigFile } from './config/config-file.ts';
import { heldIn } from './config/config-text.ts';
import type { Daemon } from './process/daemon.ts';

export interface VipChoiceOptions {
  readonly netns: string;
  readonly file: Pick<ConfigFile, 'text'>;
  readonly daemon: Pick<Daemon, 'pid' | 'isVerified' | 'ask'>;
  readonly log: Log;
  /** These addresses are refused now, or no longer. */
  readonly onRefused: (addresses: ReadonlySet<string>) => void;
}

export class VipChoice {
  readonly #options: VipChoiceOptions;
  /** Address → why, as half a sentence. */
  #refused: ReadonlyMap<string, string> = new Map();

  constructor(options: VipChoiceOptions) {
    this.#options = options;
  }

  /** As of the last choice. */
  get refused(): readonly Refused[] {
    return [...this.#refused].map(([address, reason]) => ({ address, reason }));
  }

  /** Why it is refused, as half a sentence; undefined where it is not. */
  reasonOf(address: string): string | undefined {
    return this.#refused.get(address);
  }

  /** Errors: COMMAND_FAILED. */
  async choose(wanted: ReadonlySet<string>, vrrp: VrrpSettings): Promise<readonly string[]> {
    const { netns, file, daemon, log, onRefused } = this.#options;
    const ours = new Set(heldIn(file.text ?? ''));
    if (daemon.pid !== 0 && !daemon.isVerified)
      for (const { addresses } of (await daemon.ask()) ?? []) for (const each of addresses) ours.add(each);
    const { usable, refused } = usableVips(wanted, vrrp, await hostAddresses(netns), ours);
    const before = this.#refused;
    const now = new Map(refused.map(({ address, reason }) => [address, reason]));
    for (const [address, reason] of now)
      if (!before.has(address)) log.warn('A VIP is not given to keepalived', { address, reason });
    this.#refused = now;
    const others = [...before.keys(), ...now.keys()].filter((each) => before.get(each) !== now.get(each));
    if (others.length > 0) onRefused(new Set(others));
    return usable;
  }
}
