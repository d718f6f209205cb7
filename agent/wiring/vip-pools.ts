// What pools say of the way in which their VIPs are announced, for this host: by its name, and by its labels.

import { hostname } from 'node:os';
import { PoolIndex } from '../addresses/pool-index.ts';
import { addressNumber, addressText } from '../base/ip-range.ts';
import type { AddressPool } from '../kubernetes/address-pool.ts';
import { matches } from '../kubernetes/label-selector.ts';
import type { PoolBgp } from '../kubernetes/pool-bgp.ts';
import type { BgpSettings, VipRoute } from '../vips/bgp.ts';
import type { CommonParts } from './common-parts.ts';

export class VipPools {
  readonly #common: Pick<CommonParts, 'settings' | 'cluster' | 'group'>;
  #index: PoolIndex | undefined;
  /** Address → what its pool says; of the current pools. */
  readonly #routes = new Map<string, VipRoute | undefined>();

  constructor(common: Pick<CommonParts, 'settings' | 'cluster' | 'group'>) {
    this.#common = common;
  }

  /** Pools, the settings or the labels of this host have changed. */
  forget(): void {
    this.#index = undefined;
    this.#routes.clear();
  }

  /** What decides: a text to compare. */
  get signature(): string {
    const pools = this.#pools.all.map(({ name, blocks, announce, bgp }) => [name, blocks, announce, bgp]);
    const text = JSON.stringify(pools, (_, value: unknown) =>
      typeof value === 'bigint' ? String(value) : value,
    );
    return `${text}${JSON.stringify(this.#labels())}`;
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

  /** The settings with what pools add to the filters. */
  withAggregates(bgp: Omit<BgpSettings, 'aggregates'>): BgpSettings {
    const all = this.#pools.all.flatMap((pool) => pool.bgp?.aggregates ?? []);
    const patterns = all.map(({ network, length }) => `${network}{${length},${length}}`);
    return { ...bgp, aggregates: [...new Set(patterns)].sort() };
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
    const name = this.#name();
    const isHere = isAnnouncing(bgp, name, this.#labels());
    return {
      ...{ peers, communities, largeCommunities, localPreference },
      whyNot: isHere ? '' : `"announceFrom" of the pool ${pool.name} does not select this host, ${name}`,
      aggregate: aggregateOf(bgp, address),
    };
  }

  #name(): string {
    const { settings, group } = this.#common;
    return settings.now.hostName || group()?.self.name || hostname();
  }

  /** Labels of the settings, and of the Node of this host. */
  #labels(): Readonly<Record<string, string>> {
    const { settings, cluster } = this.#common;
    const name = this.#name();
    const node = cluster.nodes().find((each) => each.name === name);
    return { ...node?.labels, ...settings.now.hostLabels };
  }
}

function isAnnouncing(
  { hosts, hostSelector }: PoolBgp,
  name: string,
  labels: Readonly<Record<string, string>>,
): boolean {
  const { matchLabels, matchExpressions } = hostSelector;
  const hasSelector = Object.keys(matchLabels).length > 0 || matchExpressions.length > 0;
  if (hosts.length === 0 && !hasSelector) return true;
  return hosts.includes(name) || (hasSelector && matches(hostSelector, labels));
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
