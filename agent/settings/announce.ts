// Whether the settings of VRRP, BGP and the pair go together. Pure.

import { HeadgateError } from '../base/errors.ts';
import type { Settings } from './table.ts';

type Given = Pick<Settings, 'announce' | 'bgp' | 'vrrp' | 'pairPeer' | 'externalAnnouncer'>;

/** The settings of BGP; undefined if this host does not announce by it. Errors: SETTINGS_INVALID. */
export function bgpSettings(settings: Given): Settings['bgp'] {
  const faults = faultsOf(settings);
  if (faults.length === 0) return settings.announce === 'bgp' ? settings.bgp : undefined;
  const lines = faults.map((fault) => `  ${fault}`).join('\n');
  throw new HeadgateError('SETTINGS_INVALID', `Cannot use these settings:\n${lines}`, { retry: 'never' });
}

function faultsOf({ announce, bgp, vrrp, pairPeer, externalAnnouncer }: Given): readonly string[] {
  if (announce === 'vrrp')
    return bgp === undefined
      ? []
      : ['announce: "vrrp" does not go with bgp: set announce to bgp, or leave bgp out'];
  return [
    ...(bgp === undefined ? ['bgp: missing, must be a mapping if announce is "bgp"'] : []),
    ...(vrrp === undefined ? [] : ['vrrp: does not go with announce "bgp": leave it out']),
    ...(pairPeer === ''
      ? []
      : ['pairPeer: does not go with announce "bgp", whose hosts are not a pair: leave it out']),
    ...(externalAnnouncer ? ['externalAnnouncer: does not go with announce "bgp": leave it out'] : []),
  ];
}
