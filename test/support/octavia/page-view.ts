// The data of an amphora's status page for tests: a load balancer with one listener, where each text may be any text.

import type { AmphoraPageView } from '../../../health/amphora-page-model.ts';

const AT = '2026-01-01T00:00:00.000Z';

/** `text`: for whatever may be any text. */
export function amphoraView(text = 'web'): AmphoraPageView {
  const members = { ready: 1, down: 0, all: 1 };
  return {
    summary: {
      ...{ host: text, version: text, startedAt: AT, fault: '' },
      amphora: { id: text, topology: text, address: text },
      heartbeat: { controllers: [text], sent: 7, lastAt: AT, lastTo: text, fault: '' },
      loadBalancers: [
        {
          ...{ id: text, listeners: 1, isRunning: true, text, since: AT },
          ...{ isBehind: false, lastReload: text, fault: '' },
        },
      ],
      listeners: { all: 1, unserved: 0 },
      members,
    },
    list: {
      rows: [
        {
          ...{ id: text, loadBalancer: text, type: text, place: text, engine: 'haproxy' },
          ...{ status: 'OPEN', connections: 3, members, morePools: 0 },
          pools: [{ id: text, status: 'UP', members: [{ id: text, status: 'UP' }], moreMembers: 0 }],
        },
      ],
      found: 1,
    },
  };
}
