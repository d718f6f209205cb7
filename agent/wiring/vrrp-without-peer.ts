// Lowers the VRRP priority of a host without a peer agent while its dataplane serves nothing.

import { Rounds } from '../base/rounds.ts';
import type { Dataplane } from '../dataplane/dataplane.ts';
import type { Announcer } from '../vips/announcer.ts';

/** The dataplane has to be absent at two looks in a row. */
const LOOK_INTERVAL_MS = 500;

export function lowerWithoutPeer(
  dataplane: Pick<Dataplane, 'status'>,
  announcer: Pick<Announcer, 'standing'>,
): Pick<Rounds, 'close'> {
  let wasServing = dataplane.status().serving;
  const look = (): void => {
    const isServing = dataplane.status().serving;
    if (isServing === wasServing) announcer.standing(isServing ? [] : ['haproxy']);
    wasServing = isServing;
  };
  look();
  const rounds = new Rounds({ intervalMs: () => LOOK_INTERVAL_MS, work: look, onFailed: () => undefined });
  rounds.start();
  return rounds;
}
