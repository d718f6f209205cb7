// The addresses, routes and rules that an interface of an amphora needs, by what Octavia's controller has plugged. Pure.
// Source: octavia/amphorae/backends/utils/interface_file.py, which does the same.

import { familyOf } from '../../base/ip.ts';
import type { Family } from '../../model/load-balancer.ts';
import type { FixedAddress, InterfaceRule, NetworkPlug, VipPlug } from '../parts.ts';

export type Topology = 'SINGLE' | 'ACTIVE_STANDBY';

/** One interface as the controller plugged it. */
export interface Plugged {
  /** `eth1` for the VIPs, `eth2` and so on for networks of members. */
  readonly name: string;
  /** Lower case. */
  readonly mac: string;
  readonly mtu: number | undefined;
  readonly isSriov: boolean;
  readonly vip: Pick<VipPlug, 'vrrpAddress' | 'vip' | 'additionalVips'> | undefined;
  readonly fixed: NetworkPlug['fixed'];
  /** Who may send to an SR-IOV interface; undefined: the controller has not sent any. */
  readonly rules: readonly InterfaceRule[] | undefined;
}

export interface Address {
  readonly address: string;
  readonly prefix: number;
}

export interface Route {
  /** 254 is the main table. */
  readonly table: number;
  /** A canonical CIDR; `0.0.0.0/0` or `::/0` for the default route. */
  readonly destination: string;
  /** Reached on this interface, whether or not a subnet has it; undefined: the destination itself is on the link. */
  readonly gateway: string | undefined;
  /** The address from which this host's packets come; undefined: the kernel chooses. */
  readonly source: string | undefined;
}

/** Packets from the address use the table. */
export interface Rule {
  readonly from: string;
  readonly table: number;
}

export interface WantedInterface {
  readonly name: string;
  readonly mtu: number | undefined;
  readonly addresses: readonly Address[];
  /** Addresses that keepalived adds and removes: they stay as they are. */
  readonly foreign: ReadonlySet<string>;
  readonly routes: readonly Route[];
  /** The rules of the whole namespace; undefined for an interface without VIPs, which has no say in them. */
  readonly rules: readonly Rule[] | undefined;
}

export const MAIN_TABLE = 254;
/** For packets from VIPs. */
export const VIP_TABLE = 1;
const DEFAULT: Readonly<Record<Family, string>> = { v4: '0.0.0.0/0', v6: '::/0' };

export function wantedInterface(plugged: Plugged, topology: Topology): WantedInterface {
  const { name, mtu, vip, fixed } = plugged;
  const vips = vip === undefined ? [] : [vip.vip, ...vip.additionalVips];
  const isSingle = topology === 'SINGLE';
  const singles = vips.map(({ address }) => ({ address, prefix: singlePrefix(address) }));
  const own = vip?.vrrpAddress === undefined ? [] : [inSubnet(vip.vrrpAddress, vip.vip.subnet)];
  const routes = [
    ...vips.flatMap((each) => vipRoutes(each, isSingle)),
    // On an interface for members alone their gateway is no way for anything else.
    ...fixed.flatMap((each) => [
      ...(vip === undefined ? [] : defaultRoutes(each, isSingle)),
      ...hostRoutes(each, MAIN_TABLE),
    ]),
  ];
  return {
    name,
    mtu,
    addresses: firstOf(
      [...own, ...(isSingle ? singles : []), ...fixed.map((each) => inSubnet(each.address, each.subnet))],
      ({ address, prefix }) => `${address}/${prefix}`,
    ),
    foreign: new Set(isSingle ? [] : vips.map(({ address }) => address)),
    // The kernel has one route to a destination in a table: the first one counts.
    routes: firstOf(routes, ({ table, destination }) => `${table} ${destination}`),
    rules: vip === undefined ? undefined : isSingle ? rulesOf(vips) : [],
  };
}

/** All VIPs of an interface. */
export function vipsOf({ vip }: Plugged): readonly string[] {
  return vip === undefined
    ? []
    : [...new Set([vip.vip, ...vip.additionalVips].map(({ address }) => address))];
}

function vipRoutes(vip: FixedAddress, isSingle: boolean): readonly Route[] {
  const link = { destination: vip.subnet, gateway: undefined };
  return [
    ...defaultRoutes(vip, isSingle),
    { ...link, table: MAIN_TABLE, source: undefined },
    ...(isSingle ? [{ ...link, table: VIP_TABLE, source: vip.address }] : []),
    ...hostRoutes(vip, MAIN_TABLE),
    ...hostRoutes(vip, VIP_TABLE),
  ];
}

function rulesOf(vips: readonly FixedAddress[]): readonly Rule[] {
  return Array.from(new Set(vips.map(({ address }) => address)), (from) => ({ from, table: VIP_TABLE }));
}

function defaultRoutes({ address, gateway }: FixedAddress, isSingle: boolean): readonly Route[] {
  if (gateway === undefined) return [];
  const route = { destination: DEFAULT[familyOf(address)], gateway, source: undefined };
  return (isSingle ? [MAIN_TABLE, VIP_TABLE] : [MAIN_TABLE]).map((table) => ({ ...route, table }));
}

function hostRoutes({ hostRoutes }: FixedAddress, table: number): readonly Route[] {
  return hostRoutes.map(({ destination, nextHop }) => ({
    table,
    destination,
    gateway: nextHop,
    source: undefined,
  }));
}

function inSubnet(address: string, subnet: string): Address {
  return { address, prefix: Number(subnet.slice(subnet.indexOf('/') + 1)) };
}

export function singlePrefix(address: string): number {
  return familyOf(address) === 'v4' ? 32 : 128;
}

function firstOf<T>(values: readonly T[], keyOf: (value: T) => string): readonly T[] {
  const first = new Map<string, T>();
  for (const value of values) if (!first.has(keyOf(value))) first.set(keyOf(value), value);
  return [...first.values()];
}
