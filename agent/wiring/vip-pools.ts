// What pools and BGPPeers say of the way in which VIPs are announced, for this host: by its name, and by its labels.

import { hostname } from 'node:os';
import { PoolIndex } from '../addresses/pool-index.ts';
import { addressNumber, addressText } from '../base/ip-range.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import type { PoolBgp } from '../kubernetes/pool-bgp.ts';
import type { BgpSettings, VipRoute } from '../vips/bgp.ts';
import { type HostPeers, hostPeers } from './bgp-peers.ts';
import type { CommonParts } from './common-parts.ts';
import { isSelected, type SelectedHost } from './selected-host.ts';

export class VipPools {
  readonly #common: Pick<CommonParts, 'settings' | 'cluster' | 'group'>;
  #index: PoolIndex | undefined;
  #peers: HostPeers | undefined;
  /** Address → what its pool says; of the current pools. */
  readonly #routes = new Map<string, VipRoute | undefined>();

  constructor(common: Pick<CommonParts, 'settings' | 'cluster' | 'group'>) {
    this.#common = common;
  }

  /** Pools, the settings or the labels of this host have changed. */
  forget(): void {
    this.#index = undefined;
    this.#peers = undefined;
    this.#routes.clear();
  }

  /** What decides: a text to compare. */
  get signature(): string {
    const pools = this.#pools.all.map(({ name, blocks, announce, bgp }) => [name, blocks, announce, bgp]);
    const text = JSON.stringify(pools, (_, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    );
    return `${text}${JSON.stringify([this.#host().labels, this.hostPeers.peers])}`;
  }

  readonly isRouted = (address: string): boolean => {
    const { announce } = this.#common.settings.now;
    if (announce !== 'both') return announce === 'bgp';
    return this.#pools.ownerOf(address)?.announce === 'bgp';
  };

  readonly routeSpec = (address: string): VipRoute | undefined => {
    if (this.#routes.has(address)) return this.#routes.get(address);
    const rules = this.#routeBy(address, this.#pools.ownerOf(address));
    this.#routes.set(address, rules);
    return rules;
  };

  /** The peers of this host; none if it does not announce by BGP. */
  get hostPeers(): HostPeers {
    const { settings, cluster } = this.#common;
    const { bgp } = settings.now;
    this.#peers ??=
      bgp === undefined ? { peers: [], refused: new Map() } : hostPeers(bgp, cluster.peers(), this.#host());
    return this.#peers;
  }

  /** The name of this host, as objects select it. */
  get hostName(): string {
    return this.#host().name;
  }

  /** The pool that has the address. */
  poolOf(address: string): string | undefined {
    return this.#pools.ownerOf(address)?.name;
  }

  /** The settings with the peers of objects, and with what pools add to the filters. */
  withObjects(bgp: Omit<BgpSettings, 'aggregates'>): BgpSettings {
    const all = this.#pools.all.flatMap((pool) => pool.bgp?.aggregates ?? []);
    const patterns = all.map(({ network, length }) => `${network}{${length},${length}}`);
    return { ...bgp, peers: this.hostPeers.peers, aggregates: [...new Set(patterns)].sort() };
  }

  get #pools(): PoolIndex {
    const { settings, cluster } = this.#common;
    this.#index ??= new PoolIndex([...settings.now.pools, ...cluster.pools()]);
    return this.#index;
  }

  #routeBy(address: string, pool: AddressPool | undefined): VipRoute | undefined {
    const bgp = pool?.bgp;
    if (pool === undefined || bgp === undefined) return undefined;
    const { peers, communities, largeCommunities, localPreference } = bgp;
    const host = this.#host();
    const isHere = isSelected(bgp, host);
    return {
      ...{ peers, communities, largeCommunities, localPreference },
      whyNot: isHere ? '' : `"announceFrom" of the pool ${pool.name} does not select this host, ${host.name}`,
      aggregate: aggregateOf(bgp, address),
    };
  }

  /** Labels of the settings, and of the Node of this host. */
  #host(): SelectedHost {
    const { settings, cluster, group } = this.#common;
    const name = settings.now.hostName || group()?.self.name || hostname();
    const node = cluster.nodes().find((each) => each.name === name);
    return { name, labels: { ...node?.labels, ...settings.now.hostLabels } };
  }
}

/** '' if no aggregate of the pool has the address. */
function aggregateOf({ aggregates }: PoolBgp, address: string): string {
  const family = address.includes(':') ? 'v6' : 'v4';
  const number = addressNumber(address);
  const own = aggregates.find(
    (each) =>
      each.family === family && addressNumber(each.first) <= number && number <= addressNumber(each.last),
  );
  if (own === undefined) return '';
  const size = 1n << BigInt((family === 'v4' ? 32 : 128) - own.length);
  return `${addressText(number - (number % size), family)}/${own.length}`;
}
