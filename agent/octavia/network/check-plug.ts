// Checks what Octavia's controller asks the network for, once more than the REST API has: these values become words of ip
// and nft. Gives them in canonical form. Pure.

import { HeadgateError } from '../../base/errors.ts';
import { parseAddress, parseCidr, parseCidrOrAddress } from '../../base/ip.ts';
import { quote } from '../../base/quote.ts';
import type { Family } from '../../model/load-balancer.ts';
import type { FixedAddress, InterfaceRule, NetworkPlug, VipPlug } from '../parts.ts';

/** RFC 791, 3.1; the longest that Linux sets. */
const MIN_MTU = 68;
const MAX_MTU = 65_535;
const PROTOCOLS: readonly string[] = ['TCP', 'UDP', 'SCTP', 'VRRP'];

/** Errors: OCTAVIA_INVALID. */
export function checkVipPlug(plug: VipPlug): VipPlug {
  const vip = checkFixed(plug.vip);
  const vrrpAddress = plug.vrrpAddress === undefined ? undefined : anAddress(plug.vrrpAddress);
  if (vrrpAddress !== undefined && familyIn(vrrpAddress) !== familyIn(vip.address))
    throw invalid('VRRP address', vrrpAddress, 'the family of the VIP');
  return {
    mac: checkMac(plug.mac),
    mtu: checkMtu(plug.mtu),
    vrrpAddress,
    vip,
    additionalVips: plug.additionalVips.map(checkFixed),
    isSriov: plug.isSriov === true,
  };
}

/** Errors: OCTAVIA_INVALID. */
export function checkNetworkPlug(plug: NetworkPlug): NetworkPlug {
  return {
    mac: checkMac(plug.mac),
    mtu: checkMtu(plug.mtu),
    fixed: plug.fixed.map(checkFixed),
    vip: plug.vip === undefined ? undefined : checkVipPlug(plug.vip),
    isSriov: plug.isSriov === true,
  };
}

/** Errors: OCTAVIA_INVALID. */
export function checkRules(rules: readonly InterfaceRule[]): readonly InterfaceRule[] {
  return rules.map(({ protocol, cidr, port }) => {
    if (!PROTOCOLS.includes(protocol)) throw invalid('protocol', protocol, 'TCP, UDP, SCTP or VRRP');
    const parsed = cidr === undefined ? undefined : parseCidrOrAddress(cidr)?.cidr;
    if (cidr !== undefined && parsed === undefined) throw invalid('cidr', cidr, 'an address with its prefix');
    if (protocol !== 'VRRP' && !(Number.isInteger(port) && Number(port) >= 1 && Number(port) <= 65_535))
      throw invalid('port', String(port), 'a number from 1 to 65535');
    return { protocol, cidr: parsed, port: protocol === 'VRRP' ? undefined : port };
  });
}

function checkFixed({ address, subnet, gateway, hostRoutes }: FixedAddress): FixedAddress {
  const own = anAddress(address);
  const family = familyIn(own);
  const ofFamily = (text: string): string => {
    const other = anAddress(text);
    if (familyIn(other) !== family) throw invalid('gateway', text, `the family of ${own}`);
    return other;
  };
  return {
    address: own,
    subnet: aCidr(subnet, family),
    gateway: gateway === undefined ? undefined : ofFamily(gateway),
    hostRoutes: hostRoutes.map(({ destination, nextHop }) => ({
      destination: aCidr(destination, family),
      nextHop: ofFamily(nextHop),
    })),
  };
}

/** In lower case, as the kernel writes it. Errors: OCTAVIA_INVALID. */
export function checkMac(mac: string): string {
  if (!/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/i.test(mac)) throw invalid('MAC address', mac, 'six pairs of digits');
  return mac.toLowerCase();
}

function checkMtu(mtu: number | undefined): number | undefined {
  if (mtu !== undefined && !(Number.isInteger(mtu) && mtu >= MIN_MTU && mtu <= MAX_MTU))
    throw invalid('MTU', String(mtu), `a number from ${MIN_MTU} to ${MAX_MTU}`);
  return mtu;
}

function anAddress(text: string): string {
  const parsed = parseAddress(text);
  if (parsed === undefined) throw invalid('address', text, 'an address of IPv4 or IPv6');
  return parsed.address;
}

function aCidr(text: string, family: Family): string {
  const parsed = parseCidr(text);
  if (parsed?.family !== family)
    throw invalid('subnet', text, 'an address with its prefix, of the same family');
  return parsed.cidr;
}

function familyIn(address: string): Family {
  return address.includes(':') ? 'v6' : 'v4';
}

function invalid(what: string, value: string, allowed: string): HeadgateError {
  const message = `Invalid ${what} ${quote(value)}: must be ${allowed}`;
  return new HeadgateError('OCTAVIA_INVALID', message, { retry: 'never' });
}
