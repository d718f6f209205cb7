// The conditions and Events of BGPPeers and of pools that are announced by BGP, from what hosts report of them. Pure.

import { hostsCondition, peerConditions } from '../../kubernetes/host-conditions.ts';
import type { HostReport } from '../../kubernetes/host-report.ts';
import type { EventText } from '../../kubernetes/writers/service-events.ts';
import type { ReportWords } from './host-reports.ts';

/** `fault`: why an object cannot be read; '' if it can. */
export function peerWords(fault: (name: string) => string): ReportWords {
  const words = {
    type: 'Established',
    upBy: 'With',
    nobody: 'No host that it selects announces by BGP and reports',
  };
  return {
    types: ['Accepted', 'Established'],
    conditions: (name, reports, now) => peerConditions(reports, words, fault(name), now),
    event: eventOf('Announce', { Up: 'SessionUp', Down: 'SessionDown', Refused: 'Refused' }, 'established'),
  };
}

export const poolWords: ReportWords = {
  types: ['Announced'],
  // A pool that no host announces by BGP has no such condition.
  conditions: (_, reports, now) =>
    reports.length === 0 ? [] : [hostsCondition(reports, { type: 'Announced', upBy: 'By', nobody: '' }, now)],
  event: eventOf('Announce', { Up: 'Announced', Down: 'NotAnnounced', Refused: 'NotAnnounced' }, 'announced'),
};

type Reasons = Readonly<Record<HostReport['state'], string>>;

/** Only a change of state is worth an Event. */
function eventOf(action: string, reasons: Reasons, up: string): ReportWords['event'] {
  return (before, { host, state, message }): EventText | undefined => {
    if (before?.state === state) return undefined;
    const words = message === '' ? up : state === 'Up' ? `${up} ${message}` : message;
    return {
      type: state === 'Up' ? 'Normal' : 'Warning',
      reason: reasons[state],
      action,
      note: `${host}: ${words}`,
    };
  };
}
