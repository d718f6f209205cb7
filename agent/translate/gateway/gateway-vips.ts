// The addresses of a Gateway: those from pools, without pools those that it names itself, or else has in its status. Pure.

import { quote } from '../../base/quote.ts';
import type { Gateway } from '../../kubernetes/gateway/gateway-objects.ts';
import type { Problem, Vip } from '../../model/load-balancer.ts';
import type { RefusalReason } from '../../model/object-status.ts';
import { type PoolAddresses, parseVip, withPublic } from '../service/service-vips.ts';

export interface GatewayAddresses {
  readonly vips: readonly Vip[];
  /** The Gateway asks for what the agent does not have, and gets no address. */
  readonly notAccepted: RefusalReason | undefined;
  /** It has not all addresses that it asks for, or none. */
  readonly notProgrammed: RefusalReason | undefined;
  readonly problems: readonly Problem[];
}

export function gatewayVips(gateway: Gateway, ofPools: PoolAddresses | undefined): GatewayAddresses {
  const notAccepted = whyNotAccepted(gateway);
  if (notAccepted !== undefined) return { vips: [], notAccepted, notProgrammed: notAccepted, problems: [] };
  const wanted = gateway.addresses.map(({ value }) => value).filter((value) => value !== '');
  const named = wanted.length > 0 ? wanted : gateway.statusIPs;
  const source = wanted.length > 0 ? 'spec.addresses' : 'status';
  const given = ofPools?.addresses.map(({ address }) => address) ?? named;
  const vips = new Map<string, Vip>();
  const refusals: string[] = [];
  for (const text of given) {
    const vip = parseVip(text, ofPools === undefined ? source : 'pool');
    if (typeof vip === 'string') refusals.push(`${quote(text)} ${vip}`);
    else vips.set(vip.address, vip);
  }
  const missing = wanted.filter((text) => !vips.has(canonical(text)));
  const whyNot = ofPools?.problems[0]?.message ?? refusals[0];
  return {
    vips: withPublic([...vips.values()], ofPools),
    notAccepted: undefined,
    notProgrammed: addressFault(missing, vips.size, whyNot),
    problems: [
      ...(ofPools?.problems ?? []),
      ...refusals.map(
        (why): Problem => ({
          object: `Gateway ${gateway.key}`,
          reason: 'InvalidAddress',
          message: `Cannot use spec.addresses: ${why}`,
        }),
      ),
    ],
  };
}

function whyNotAccepted({ addresses, hasParameters }: Gateway): RefusalReason | undefined {
  if (hasParameters) {
    const message = 'spec.infrastructure.parametersRef is not supported; remove it';
    return { reason: 'InvalidParameters', message };
  }
  const unknown = addresses.find(({ type }) => type !== 'IPAddress');
  if (unknown === undefined) return undefined;
  const message = `spec.addresses has type ${quote(unknown.type)}; only IPAddress is supported`;
  return { reason: 'UnsupportedAddress', message };
}

function canonical(text: string): string {
  const vip = parseVip(text, 'spec.addresses');
  return typeof vip === 'string' ? text : vip.address;
}

function addressFault(
  missing: readonly string[],
  count: number,
  whyNot: string | undefined,
): RefusalReason | undefined {
  if (missing.length > 0)
    return {
      reason: 'AddressNotUsable',
      message:
        whyNot ?? `The Gateway does not have address ${missing.map(quote).join(', ')} of spec.addresses`,
    };
  if (count > 0) return undefined;
  const message =
    whyNot ?? 'Waiting for an address: name one in spec.addresses, or make an AddressPool for Gateways';
  return { reason: 'AddressNotAssigned', message };
}
