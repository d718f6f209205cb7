// Finds out which VIPs this host takes packets for where nothing announces them (no `vrrp`): it asks the kernel for its local
// routes, which are the addresses of the interfaces and whole networks that are led to the host itself. With
// `net.ipv4.ip_nonlocal_bind` HAProxy listens on other addresses as well, and no client reaches it there.

import { type AddressSet, addressesOf, hasAddress } from '../base/address-set.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { familyOf, parseCidrOrAddress } from '../base/ip.ts';
import { Rounds } from '../base/rounds.ts';
import { Slice } from '../base/slice.ts';
import { listOf, object, string } from '../base/validate.ts';
import type { Log } from '../host/log.ts';
import { inNamespace } from '../host/namespace.ts';
import { runCommand } from '../host/run-command.ts';
import type { Family, LoadBalancer, OwnerKey, Problem } from '../model/load-balancer.ts';
import { objectOf } from '../model/names.ts';

export interface LocalAddressesOptions {
  readonly desired: ReadonlyMap<OwnerKey, LoadBalancer>;
  /** The dataplane takes connections at the address; what it does not take has a problem of its own. */
  readonly serves: (listener: string, address: string) => boolean;
  /** Another program leads clients to this host: no address is a fault. */
  readonly isExternal: () => boolean;
  /** Load balancers with an address that has become local, or is no longer. */
  readonly onChanged: (keys: ReadonlySet<OwnerKey>) => void;
  /** The texts of local routes, such as `192.0.2.1` and `192.0.2.0/24`. Errors: COMMAND_FAILED, JSON. */
  readonly read: (family: Family) => Promise<readonly string[]>;
  readonly log: Log;
  readonly clock?: Clock;
}

const INTERVAL_MS = 10_000;

export class LocalAddresses {
  readonly #options: LocalAddressesOptions;
  readonly #rounds: Rounds;
  /** Address → the kernel takes packets for it. */
  #known = new Map<string, boolean>();

  constructor(options: LocalAddressesOptions) {
    this.#options = options;
    const { log, clock = systemClock } = options;
    this.#rounds = new Rounds({
      intervalMs: () => INTERVAL_MS,
      work: () => this.#round(),
      // Without an answer of the kernel nothing is known, and nothing is said.
      onFailed: (error) =>
        log.debug('Cannot read the local routes of this host', { error: messageOf(error) }),
      clock,
    });
  }

  start(): void {
    this.#rounds.start();
  }

  close(): void {
    this.#rounds.close();
  }

  /** Asks the kernel at once if one of them has an address that it was not asked for. */
  changed(keys: ReadonlySet<OwnerKey>): void {
    for (const key of keys)
      for (const { address } of this.#options.desired.get(key)?.vips ?? [])
        if (!this.#known.has(address)) {
          void this.#rounds.now();
          return;
        }
  }

  /** Problems of the listeners of HAProxy: the kernel forwards packets for any address that a router leads here. */
  problemsOf({ key, vips, listeners }: Pick<LoadBalancer, 'key' | 'vips' | 'listeners'>): readonly Problem[] {
    const { serves, isExternal } = this.#options;
    const foreign = vips.filter(({ address }) => this.#known.get(address) === false);
    if (foreign.length === 0 || isExternal()) return [];
    return foreign.flatMap(({ address }) =>
      listeners
        .filter(({ engine, addresses }) => engine === 'haproxy' && addresses.includes(address))
        .filter(({ name }) => serves(name, address))
        .map(
          ({ protocol, port }): Problem => ({
            object: objectOf(key),
            reason: 'AddressUnavailable',
            message: `No client reaches ${address} port ${port} here: no interface of this host has the address, and nothing announces it; set "vrrp", or add it to an interface, or set "externalAnnouncer" if another program leads clients here`,
            port: { protocol, port },
          }),
        ),
    );
  }

  async #round(): Promise<void> {
    const { desired, read, onChanged } = this.#options;
    if (desired.size === 0) return;
    const local = { v4: await localOf('v4', read), v6: await localOf('v6', read) };
    const known = new Map<string, boolean>();
    const changed = new Set<OwnerKey>();
    const slice = new Slice();
    for (const [key, { vips }] of desired) {
      for (const { address } of vips) {
        const isLocal = known.get(address) ?? local[familyOf(address)](address);
        known.set(address, isLocal);
        if (isLocal !== (this.#known.get(address) ?? true)) changed.add(key);
      }
      if (slice.isOver) await slice.breathe();
    }
    this.#known = known;
    if (changed.size > 0) onChanged(changed);
  }
}

/** Addresses of interfaces are many and found by their text; networks are few. */
async function localOf(
  family: Family,
  read: LocalAddressesOptions['read'],
): Promise<(address: string) => boolean> {
  const routes = await read(family);
  const single = new Set(routes.filter((text) => !text.includes('/')));
  const networks = routes.filter((text) => text.includes('/'));
  const cidrs = networks.flatMap((text) => parseCidrOrAddress(text)?.cidr ?? []);
  const wide: AddressSet = addressesOf(cidrs, family);
  return (address) => single.has(address) || hasAddress(wide, address);
}

const shown = listOf(object({ dst: string().nullish() }));

/** Reads the kernel's own table, which is short however many routes the host has. Errors: COMMAND_FAILED, JSON. */
export function localRoutes(netns: string): LocalAddressesOptions['read'] {
  return async (family) => {
    const words = [family === 'v4' ? '-4' : '-6', '-j', 'route', 'show', 'table', 'local', 'type', 'local'];
    const { exitCode, stdout, stderr } = await runCommand(...inNamespace(netns, 'ip', words), {
      timeout: 10_000,
    });
    // A kernel without IPv6 has no such table.
    if (exitCode !== 0 && family === 'v4') throw new Error(stderr.trim());
    return stdout.trim() === '' ? [] : shown.parse(JSON.parse(stdout)).flatMap(({ dst }) => dst ?? []);
  };
}
