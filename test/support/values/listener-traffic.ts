// What a listener has counted, with the numbers that a test needs; nothing else is counted.

import type { ListenerTraffic } from '../../../agent/dataplane/status.ts';

export function listenerTraffic(
  known: Pick<ListenerTraffic, 'name'> & Partial<ListenerTraffic>,
): ListenerTraffic {
  const none = Number.NaN;
  return {
    ...{ total: none, open: none, bytesIn: none, bytesOut: none, errors: none, retries: none, latency: none },
    ...known,
  };
}
