// Lowers the VRRP priority of a host without a peer agent while its dataplane does not serve.

import { Rounds } from '../base/rounds.ts';
import type { Meter } from '../dataplane/meter.ts';
import type { Announcer } from '../vips/announcer.ts';

/** The priority changes when two checks in a row agree. */
const CHECK_INTERVAL_MS = 500;

export function lowerWithoutPeer(
  dataplane: Pick<Meter, 'status'>,
  announcer: Pick<Announcer, 'standing'>,
): Pick<Rounds, 'close'> {
  let wasServing = dataplane.status().serving;
  const check = (): void => {
    const isServing = dataplane.status().serving;
    if (isServing === wasServing) announcer.standing(isServing ? [] : ['haproxy']);
    wasServing = isServing;
  };
  check();
  const rounds = new Rounds({ intervalMs: () => CHECK_INTERVAL_MS, work: check, onFailed: () => undefined });
  rounds.start();
  return rounds;
}
