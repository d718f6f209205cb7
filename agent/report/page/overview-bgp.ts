// What the status page shows of BGP: the sessions with routers, and the hosts that serve the same VIPs. Pure.

import type { PageBgp } from '../../../health/page-model.ts';
import type { AgentStatus } from '../answers/status.ts';
import { cut } from './overview-row.ts';

/** undefined if this host does not announce by BGP. */
export function bgpOf(bgp: AgentStatus['bgp'], hosts: AgentStatus['hosts']): PageBgp | undefined {
  if (bgp === undefined) return undefined;
  const { asn, vips, unreached, sessions } = bgp;
  return {
    ...{ asn, vips, unreached },
    sessions: sessions.map(({ peer, address, asn: theirs, state, since, why, routes, bfd }) => ({
      ...{ peer, address, asn: theirs, since, bfd },
      isUp: state === 'Established',
      why: cut(why),
      routes: routes.v4 + routes.v6,
    })),
    hosts: (hosts?.hosts ?? []).map(({ name, address, isSelf, fault, bfd, version, lowered, parity }) => ({
      ...{ name, address, isSelf, bfd, version },
      lowered: [...lowered],
      fault: cut(fault),
      hasSame: parity.model === 'same' && parity.running === 'same',
    })),
  };
}
