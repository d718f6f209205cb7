// Reads what `ip -json` shows of links, addresses, routes and rules. Pure.

import { parseAddress, parseCidrOrAddress } from '../../base/ip.ts';
import { boolean, listOf, number, object, string } from '../../base/validate.ts';
import type { Family } from '../../model/load-balancer.ts';
import { type Address, MAIN_TABLE, type Route, type Rule, singlePrefix } from './wanted-interface.ts';

export interface Link {
  readonly name: string;
  readonly index: number;
  /** Lower case. */
  readonly mac: string;
  readonly mtu: number;
  readonly isUp: boolean;
}

export interface FoundAddress extends Address {
  readonly device: string;
  /** Neither of the link nor of a router's advertisement. */
  readonly isPermanent: boolean;
  /** Duplicate address detection is under way: the address cannot be used yet. */
  readonly isTentative: boolean;
}

export interface FoundRoute extends Route {
  readonly device: string;
  /** As in /etc/iproute2/rt_protos; 4 is static. */
  readonly protocol: number;
}

export interface FoundRule extends Rule {
  readonly priority: number;
  readonly protocol: number;
}

/** One namespace. */
export interface FoundNetwork {
  readonly links: readonly Link[];
  readonly addresses: readonly FoundAddress[];
  readonly routes: readonly FoundRoute[];
  readonly rules: readonly FoundRule[];
}

const links = listOf(
  object({
    ifname: string(),
    ifindex: number(),
    address: string().nullish(),
    mtu: number(),
    flags: listOf(string()),
    link_type: string().nullish(),
    stats64: object({ rx: object({ bytes: number() }), tx: object({ bytes: number() }) }).nullish(),
  }),
);

const addresses = listOf(
  object({
    ifname: string().nullish(),
    addr_info: listOf(
      object({
        local: string().nullish(),
        prefixlen: number().nullish(),
        scope: string().nullish(),
        dynamic: boolean().nullish(),
        tentative: boolean().nullish(),
        dadfailed: boolean().nullish(),
      }),
    ).nullish(),
  }),
);

const routes = listOf(
  object({
    dst: string(),
    gateway: string().nullish(),
    dev: string().nullish(),
    prefsrc: string().nullish(),
    table: string().nullish(),
    protocol: string().nullish(),
  }),
);

const rules = listOf(
  object({
    priority: number(),
    src: string(),
    srclen: number().nullish(),
    table: string().nullish(),
    protocol: string().nullish(),
  }),
);

/** From `ip -json link show`. */
export function readLinks(json: string): readonly Link[] {
  return links
    .parse(parsed(json))
    .filter(({ link_type }) => link_type === 'ether')
    .map(({ ifname, ifindex, address = '', mtu, flags }) => ({
      name: ifname,
      index: ifindex,
      mac: address.toLowerCase(),
      mtu,
      isUp: flags.includes('UP'),
    }));
}

/** From `ip -json -statistics link show`: bytes by interface. */
export function readTraffic(json: string): ReadonlyMap<string, { readonly tx: number; readonly rx: number }> {
  return new Map(
    links
      .parse(parsed(json))
      .filter(({ link_type }) => link_type === 'ether')
      .map(({ ifname, stats64 }) => [ifname, { tx: stats64?.tx.bytes ?? 0, rx: stats64?.rx.bytes ?? 0 }]),
  );
}

/** From `ip -json address show`. */
export function readAddresses(json: string): readonly FoundAddress[] {
  return addresses.parse(parsed(json)).flatMap(({ ifname = '', addr_info = [] }) =>
    addr_info.flatMap(({ local = '', prefixlen = 0, scope, dynamic, tentative, dadfailed }) => {
      const address = parseAddress(local)?.address;
      if (address === undefined) return [];
      return {
        device: ifname,
        address,
        prefix: prefixlen,
        isPermanent: scope !== 'link' && dynamic !== true,
        // A duplicate stays tentative forever.
        isTentative: tentative === true && dadfailed !== true,
      };
    }),
  );
}

/** From `ip -N -json -4 route show table all`, or `-6`. */
export function readRoutes(json: string, family: Family): readonly FoundRoute[] {
  return routes.parse(parsed(json)).flatMap(({ dst, gateway, dev = '', prefsrc, table, protocol }) => {
    const all = family === 'v4' ? '0.0.0.0/0' : '::/0';
    const destination = dst === 'default' ? all : parseCidrOrAddress(dst)?.cidr;
    if (destination === undefined) return [];
    return {
      device: dev,
      destination,
      gateway: canonical(gateway),
      source: canonical(prefsrc),
      table: table === undefined ? MAIN_TABLE : Number(table),
      protocol: Number(protocol ?? 0),
    };
  });
}

/** From `ip -N -json -details -4 rule show`, or `-6`: those of one address. */
export function readRules(json: string): readonly FoundRule[] {
  return rules.parse(parsed(json)).flatMap(({ priority, src, srclen, table, protocol }) => {
    const from = parseAddress(src)?.address;
    if (from === undefined || (srclen !== undefined && srclen !== singlePrefix(from))) return [];
    return {
      from,
      priority,
      table: table === undefined ? MAIN_TABLE : Number(table),
      protocol: Number(protocol ?? 0),
    };
  });
}

/** ip writes nothing at all for an empty list. */
function parsed(json: string): unknown {
  return json.trim() === '' ? [] : JSON.parse(json);
}

function canonical(address: string | undefined): string | undefined {
  return address === undefined ? undefined : parseAddress(address)?.address;
}
