// Names of AddressClaims, made of their address, so that two writers cannot both create a claim on a whole address.
// Pure.

import { expandV6 } from '../base/ip-range.ts';
import type { Family } from '../model/load-balancer.ts';

/** `192-0-2-10`, `2001-0db8-0000-0000-0000-0000-0000-0010`: a DNS label. */
export function wholeClaimName(address: string, family: Family): string {
  return family === 'v4' ? address.replaceAll('.', '-') : expandV6(address).join('-');
}

/**
 * `192-0-2-10.web.default`, for a claim that is not the only one on its address.
 * A DNS name of at most 167 characters; unambiguous, as neither label has a dot.
 */
export function sharedClaimName(address: string, family: Family, service: string): string {
  const [namespace = '', name = ''] = service.split('/');
  return `${wholeClaimName(address, family)}.${name}.${namespace}`;
}
