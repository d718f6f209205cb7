// Builders of what Octavia's controller plugs.

import type { Plugged } from '../../../agent/octavia/network/wanted-interface.ts';
import type { FixedAddress, VipPlug } from '../../../agent/octavia/parts.ts';

export const VIP_MAC = '02:00:00:00:01:01';

export function fixed(
  values: Partial<FixedAddress> & Pick<FixedAddress, 'address' | 'subnet'>,
): FixedAddress {
  return { gateway: undefined, hostRoutes: [], ...values };
}

/** A VIP 10.9.0.100 in 10.9.0.0/16, by an amphora with 10.9.0.21. */
export function vipPlug(values: Partial<VipPlug> = {}): VipPlug {
  return {
    mac: VIP_MAC,
    mtu: 1400,
    vrrpAddress: '10.9.0.21',
    vip: fixed({
      address: '10.9.0.100',
      subnet: '10.9.0.0/16',
      gateway: '10.9.0.1',
      hostRoutes: [{ destination: '10.50.0.0/24', nextHop: '10.9.0.2' }],
    }),
    additionalVips: [],
    isSriov: false,
    ...values,
  };
}

/** The interface of vipPlug(). */
export function plugged(values: Partial<VipPlug> = {}): Plugged {
  const { mac, mtu, isSriov, ...vip } = vipPlug(values);
  return { name: 'eth1', mac, mtu, isSriov, vip, fixed: [], rules: undefined };
}
