// Whether the peer could take over the traffic without an effect on clients. Pure.

import type { PairReport } from '../peers/report.ts';
import { areAlike } from '../roles.ts';

/** Why not, as a sentence; '' if it could. `peer` is undefined without a recent report. */
export function whyPeerIsNotReady(
  own: Pick<PairReport, 'model' | 'running' | 'roles'>,
  peer: PairReport | undefined,
): string {
  if (peer === undefined) return 'The peer is not heard';
  if (!peer.synced) return 'The peer has not read the objects yet';
  if (peer.model === '') return 'The peer does not report its desired state';
  if (peer.running === '') return 'HAProxy does not answer on the peer';
  if (peer.model !== own.model) return 'The peer is behind: its desired state differs from that of this host';
  // With the same load balancers in quarantine on both hosts, neither serves all of the desired state.
  if (peer.running !== peer.model && peer.running !== own.running)
    return `The peer is behind: its HAProxy does not serve ${peer.pending || 'some'} load balancers as it should`;
  if (!areAlike(own.roles, peer.roles))
    return `The peer cannot take over: its virtual routers are ${Object.keys(peer.roles).join(', ') || 'none'}, not those of this host`;
  if (Object.values(peer.roles).includes('fault'))
    return 'The peer cannot take over: its VRRP is in state fault';
  // A peer that has handed over may take over again.
  const lowered = peer.lowered.filter((reason) => reason !== 'failover');
  return lowered.length === 0 ? '' : `The peer is lowered: ${lowered.join(', ')}`;
}

export type Sameness = 'same' | 'differs' | 'unknown';

export interface PairParity {
  readonly model: Sameness;
  readonly running: Sameness;
}

export function parityOf(
  own: Pick<PairReport, 'model' | 'running'>,
  peer: PairReport | undefined,
): PairParity {
  const compare = (mine: string, theirs: string | undefined): Sameness => {
    if (theirs === undefined || theirs === '' || mine === '') return 'unknown';
    return mine === theirs ? 'same' : 'differs';
  };
  return { model: compare(own.model, peer?.model), running: compare(own.running, peer?.running) };
}
