// Whether the peer could take the traffic over without anybody noticing. Pure.

import type { PairReport } from '../peers/report.ts';
import { areAlike } from '../roles.ts';

/** Why not, as a sentence; '' where it could. `peer` is undefined while it is not heard. */
export function whyPeerIsNotReady(
  own: Pick<PairReport, 'model' | 'running' | 'roles'>,
  peer: PairReport | undefined,
): string {
  if (peer === undefined) return 'The peer is not heard';
  if (!peer.synced) return 'The peer has not read the objects yet';
  if (peer.model === '') return 'The peer does not tell what it wants';
  if (peer.running === '') return 'HAProxy does not answer on the peer';
  if (peer.model !== own.model) return 'The peer is behind: it does not want what this host wants';
  // Where both have the same load balancers in quarantine, neither serves all that is desired.
  if (peer.running !== peer.model && peer.running !== own.running)
    return `The peer is behind: its HAProxy does not serve ${peer.pending || 'some'} load balancers as it should`;
  if (!areAlike(own.roles, peer.roles))
    return `The peer cannot take over: its virtual routers are ${Object.keys(peer.roles).join(', ') || 'none'}, not those of this host`;
  if (Object.values(peer.roles).includes('fault'))
    return 'The peer cannot take over: its VRRP is in state fault';
  // What it has handed over it may get back.
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
