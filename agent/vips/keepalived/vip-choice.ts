// Chooses the VIPs that keepalived gets, from the addresses on this host's interfaces.

import { hasV6, hostAddresses } from '../host-addresses.ts';
import { type Refused, usableVips } from '../usable.ts';
import type { VrrpSettings } from '../vrrp.ts';
import type { Daemon } from './daemon.ts';
import type { ConfigFile } from './files/config-file.ts';
import { heldIn } from './files/config-text.ts';

export interface VipChoiceOptions {
  readonly netns: string;
  readonly file: Pick<ConfigFile, 'text'>;
  readonly daemon: Pick<Daemon, 'pid' | 'isVerified' | 'readDump'>;
  /** These addresses are newly refused, or no longer refused. */
  readonly onRefused: (addresses: ReadonlySet<string>) => void;
}

export class VipChoice {
  readonly #options: VipChoiceOptions;
  /** By address. */
  #refused: ReadonlyMap<string, Refused> = new Map();

  constructor(options: VipChoiceOptions) {
    this.#options = options;
  }

  /** As of the last choice. */
  get refused(): readonly Pick<Refused, 'address' | 'reason'>[] {
    return [...this.#refused.values()].map(({ address, reason }) => ({ address, reason }));
  }

  /** undefined if the address is not refused. */
  refusalOf(address: string): Refused | undefined {
    return this.#refused.get(address);
  }

  /** The VIPs that keepalived can get. Errors: COMMAND_FAILED. */
  async choose(vips: ReadonlySet<string>, vrrp: VrrpSettings): Promise<readonly string[]> {
    const { netns, file, daemon, onRefused } = this.#options;
    const held = new Set(heldIn(file.text ?? ''));
    if (daemon.pid !== 0 && !daemon.isVerified)
      for (const { addresses } of (await daemon.readDump()) ?? [])
        for (const each of addresses) held.add(each);
    const isV6Possible = ![...vips].some((vip) => vip.includes(':')) || (await hasV6(netns, vrrp.interface));
    const { usable, refused } = usableVips(vips, vrrp, await hostAddresses(netns), held, isV6Possible);
    const before = this.#refused;
    const now = new Map(refused.map((each) => [each.address, each]));
    this.#refused = now;
    const changed = [...before.keys(), ...now.keys()].filter(
      (each) => before.get(each)?.reason !== now.get(each)?.reason,
    );
    if (changed.length > 0) onRefused(new Set(changed));
    return usable;
  }
}
