// Reads the bodies of the routes that plug interfaces and set their rules. Every value passes an allow-list, because they become words
// of `ip` and nft. Pure.

import { parseAddress, parseCidr } from '../../base/ip.ts';
import { parseJson } from '../../base/parse-json.ts';
import { isMapping } from '../../base/validate.ts';
import type { FixedAddress, InterfaceRule, NetworkPlug, VipPlug } from '../parts.ts';

/** The form is not that of the API, as Octavia's agent refuses it before it looks at the values. */
export class WrongForm extends Error {}
/** A value that is not allowed. */
export class WrongValue extends Error {}

/** Errors: WrongForm, WrongValue. */
export function readVipPlug(vip: string, body: string): VipPlug {
  const given = parseJson(body);
  if (!isMapping(given) || ['subnet_cidr', 'gateway', 'mac_address'].some((field) => !(field in given)))
    throw new WrongForm('Invalid subnet information');
  return vipPlugOf(vip, given);
}

/** Errors: WrongForm, WrongValue. */
export function readNetworkPlug(body: string): NetworkPlug {
  const given = parseJson(body);
  if (!isMapping(given) || !('mac_address' in given)) throw new WrongForm('Invalid port information');
  const vip = given.vip_net_info;
  return {
    mac: macOf(given.mac_address),
    mtu: mtuOf(given.mtu),
    fixed: listOf(given.fixed_ips, 'fixed_ips').map((each) =>
      fixedAddress(each, each.ip_address, `ip_address of fixed_ips`),
    ),
    vip: isMapping(vip)
      ? vipPlugOf(textOf(vip.vip, 'vip'), { mac_address: given.mac_address, ...vip })
      : undefined,
    isSriov: given.is_sriov === true,
  };
}

/** Errors: WrongValue. */
export function readInterfaceRules(body: string): readonly InterfaceRule[] {
  return listOf(parseJson(body), 'the body').map((each) => {
    const unknown = Object.keys(each).find((field) => !['protocol', 'cidr', 'port'].includes(field));
    if (unknown !== undefined) throw new WrongValue(`a rule has an unknown field "${unknown.slice(0, 100)}"`);
    const { protocol, cidr, port } = each;
    if (protocol !== 'TCP' && protocol !== 'UDP' && protocol !== 'SCTP' && protocol !== 'VRRP')
      throw new WrongValue(`${shown(protocol)} is not TCP, UDP, SCTP or VRRP`);
    if (port !== undefined && port !== null && !isNumber(port, 1, 65_535))
      throw new WrongValue(`port ${shown(port)} is not a number from 1 to 65535`);
    if (protocol !== 'VRRP' && (port === undefined || port === null))
      throw new WrongValue('a rule has no port');
    return {
      protocol,
      cidr: cidr === undefined || cidr === null ? undefined : cidrOf(cidr, 'cidr'),
      port: isNumber(port, 1, 65_535) ? port : undefined,
    };
  });
}

type Mapping = Readonly<Record<string, unknown>>;

function vipPlugOf(vip: string, given: Mapping): VipPlug {
  const vrrp = given.vrrp_ip;
  return {
    mac: macOf(given.mac_address),
    mtu: mtuOf(given.mtu),
    vrrpAddress: vrrp === undefined || vrrp === null || vrrp === '' ? undefined : addressOf(vrrp, 'vrrp_ip'),
    vip: fixedAddress(given, vip, 'VIP'),
    additionalVips: listOf(given.additional_vips, 'additional_vips').map((each) =>
      fixedAddress(each, each.ip_address, 'ip_address of additional_vips'),
    ),
    isSriov: given.is_sriov === true,
  };
}

function fixedAddress(given: Mapping, address: unknown, field: string): FixedAddress {
  const { subnet_cidr: subnet, gateway, host_routes: routes } = given;
  return {
    address: addressOf(address, field),
    subnet: cidrOf(subnet, 'subnet_cidr'),
    gateway:
      gateway === undefined || gateway === null || gateway === '' ? undefined : addressOf(gateway, 'gateway'),
    hostRoutes: listOf(routes, 'host_routes').map(({ destination, nexthop }) => ({
      destination: cidrOf(destination, 'destination'),
      nextHop: addressOf(nexthop, 'nexthop'),
    })),
  };
}

/** As many as a port of Neutron can have, and more. */
const MAX_ITEMS = 1_000;

/** Nothing is an empty list. */
function listOf(value: unknown, field: string): readonly Mapping[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value) || value.length > MAX_ITEMS || !value.every(isMapping))
    throw new WrongValue(`${field} is not a list of at most ${MAX_ITEMS} mappings`);
  return value;
}

function macOf(value: unknown): string {
  const mac = textOf(value, 'mac_address').toLowerCase();
  if (!/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(mac))
    throw new WrongValue(`${shown(value)} is not a MAC address such as fa:16:3e:00:00:01`);
  return mac;
}

function mtuOf(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isNumber(value, 68, 65_535))
    throw new WrongValue(`mtu ${shown(value)} is not a number from 68 to 65535`);
  return value;
}

function addressOf(value: unknown, field: string): string {
  const address = parseAddress(textOf(value, field))?.address;
  if (address === undefined) throw new WrongValue(`${field} ${shown(value)} is not an IP address`);
  return address;
}

function cidrOf(value: unknown, field: string): string {
  const cidr = parseCidr(textOf(value, field))?.cidr;
  if (cidr === undefined) throw new WrongValue(`${field} ${shown(value)} is not a CIDR such as 192.0.2.0/24`);
  return cidr;
}

function textOf(value: unknown, field: string): string {
  if (typeof value !== 'string') throw new WrongValue(`${field} ${shown(value)} is not a text`);
  return value;
}

function isNumber(value: unknown, min: number, max: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, 200);
}
