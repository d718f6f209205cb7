// Whether the settings of VRRP, BGP and the pair go together. Pure.

import { HeadgateError } from '../base/errors.ts';
import type { Settings } from './table.ts';

type Given = Pick<Settings, 'announce' | 'bgp' | 'vrrp' | 'pairPeer' | 'externalAnnouncer' | 'hosts'> &
  Pick<Settings, 'kubeconfig' | 'inCluster' | 'manifests'>;

/** The settings of BGP; undefined if this host does not announce by it. Errors: SETTINGS_INVALID. */
export function bgpSettings(settings: Given): Settings['bgp'] {
  const faults = faultsOf(settings);
  if (faults.length === 0) return settings.announce === 'vrrp' ? undefined : settings.bgp;
  const lines = faults.map((fault) => `  ${fault}`).join('\n');
  throw new HeadgateError('SETTINGS_INVALID', `Cannot use these settings:\n${lines}`, { retry: 'never' });
}

function faultsOf(given: Given): readonly string[] {
  const { announce, bgp, vrrp, pairPeer, externalAnnouncer, hosts } = given;
  if (announce === 'vrrp')
    return bgp === undefined
      ? []
      : ['announce: "vrrp" does not go with bgp: set announce to bgp or both, or leave bgp out'];
  const isBoth = announce === 'both';
  return [
    ...(bgp === undefined ? [`bgp: missing, must be a mapping if announce is "${announce}"`] : []),
    ...(bgp?.peers.length === 0 && !hasObjects(given)
      ? ['bgp: peers: at least one router is needed without objects, whose BGPPeers could name them']
      : []),
    ...(vrrp !== undefined && !isBoth
      ? ['vrrp: does not go with announce "bgp": leave it out, or set announce to "both"']
      : []),
    ...(vrrp === undefined && isBoth ? ['vrrp: missing, must be a mapping if announce is "both"'] : []),
    ...(hosts.length > 0 && isBoth && pairPeer !== ''
      ? ['pairPeer: does not go with hosts, which are no pair: leave one of them out']
      : []),
    ...(pairPeer === '' || isBoth
      ? []
      : ['pairPeer: does not go with announce "bgp", whose hosts are not a pair: leave it out']),
    ...(externalAnnouncer
      ? [`externalAnnouncer: does not go with announce "${announce}": leave it out`]
      : []),
  ];
}

function hasObjects({ kubeconfig, inCluster, manifests }: Given): boolean {
  return kubeconfig !== '' || inCluster || manifests.length > 0;
}
