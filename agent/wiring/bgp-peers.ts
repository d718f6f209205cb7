// The peers of a host: those of the settings, then the BGPPeers that select it. Where two do not go together the settings count,
// and of two objects the older one. Pure.

import { MAX_PEERS, peerFaults, placeOfPeer } from '../base/bgp-peer-rules.ts';
import type { StoredPeer } from '../kubernetes/bgp-peer.ts';
import type { BgpPeer, BgpSettings } from '../vips/bgp.ts';
import { isSelected, type SelectedHost } from './selected-host.ts';

export interface HostPeers {
  readonly peers: readonly BgpPeer[];
  /** Name of a BGPPeer → why it is no peer of this host although it selects it. */
  readonly refused: ReadonlyMap<string, string>;
}

export function hostPeers(
  { asn, peers: own }: Pick<BgpSettings, 'asn' | 'peers'>,
  objects: Iterable<StoredPeer>,
  host: SelectedHost,
): HostPeers {
  const refused = new Map<string, string>();
  const taken: BgpPeer[] = [];
  const selected = [...objects].filter((each) => isSelected(each, host));
  for (const object of selected.sort(byAge)) {
    const peer = peerOf(object);
    const why = whyNot(peer, asn, own, taken);
    if (why === '') taken.push(peer);
    else refused.set(object.name, why);
  }
  taken.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { peers: [...own, ...taken], refused };
}

function peerOf({ name, spec, passwordSecret: secret }: StoredPeer): BgpPeer {
  return { ...spec, name, passwordFile: '', object: { secret } };
}

/** '' if there is no reason. */
function whyNot(peer: BgpPeer, asn: number, own: readonly BgpPeer[], taken: readonly BgpPeer[]): string {
  const faults = peerFaults(peer, asn).map(({ field, fault }) => `spec.${field}: ${fault}`);
  if (faults.length > 0) return faults.join('; ');
  if (own.some(({ name }) => name === peer.name))
    return `metadata.name: "${peer.name}" is a peer of the setting bgp, which counts: give the object another name`;
  const place = placeOfPeer(peer);
  const other = [...own, ...taken].find((each) => placeOfPeer(each) === place);
  if (other !== undefined) {
    const whose =
      other.object === undefined
        ? `the peer "${other.name}" of the setting bgp`
        : `the older BGPPeer "${other.name}"`;
    return `spec.address: ${place} is the address of ${whose}, which counts`;
  }
  if (own.length + taken.length < MAX_PEERS) return '';
  return `the host has ${MAX_PEERS} peers, the most that are possible: the older ones count`;
}

function byAge(a: StoredPeer, b: StoredPeer): number {
  if (a.created !== b.created) return a.created < b.created ? -1 : 1;
  return a.name < b.name ? -1 : 1;
}
