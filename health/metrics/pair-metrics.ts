// Metrics of the pair: the peer, and how fit this host is to serve. Without a peer they have no samples.

import type { MetricRegistry } from './metric-registry.ts';

/** undefined without a peer. */
export type PairState =
  | {
      readonly lowered: readonly { readonly reason: string }[];
      readonly maintenance: boolean;
      readonly parity: Readonly<Record<'model' | 'running', string>>;
      readonly twoMasters: readonly string[];
      readonly peerAddress: string;
      /** undefined if the peer sends no reports. */
      readonly peer: unknown;
      /** '' if the peer can take over now. */
      readonly peerNotReady: string;
      /** undefined if this host has no VRRP. */
      readonly handover: { readonly left: number | undefined } | undefined;
      /** Milliseconds since the epoch; 0 if the credentials cannot be used. */
      readonly credentialsExpire: number;
    }
  | undefined;

/** Reasons that lower a host. */
export const STANDING_REASONS = ['haproxy', 'listeners', 'maintenance', 'failover', 'catching-up'] as const;
/** Reasons to refuse a connection. */
export const PAIR_REFUSALS = ['address', 'handshake', 'message', 'silence'] as const;
/** The connections in a planned failover. */
const HANDOVERS = ['kept', 'cut'] as const;

export type PairMetrics = ReturnType<typeof pairMetrics>;

export function pairMetrics(registry: MetricRegistry, state: () => PairState) {
  /** No sample while the value is undefined. */
  const number = (
    name: string,
    help: string,
    value: (pair: NonNullable<PairState>) => number | undefined,
  ): void =>
    registry.gauge(name, help, ['peer'], () => {
      const pair = state();
      const now = pair && value(pair);
      return pair === undefined || now === undefined ? [] : [[{ peer: pair.peerAddress }, now]];
    });
  number('headgate_pair_peer_heard', 'Whether this host receives reports from the peer', ({ peer }) =>
    Number(peer !== undefined),
  );
  number('headgate_pair_peer_ready', 'Whether the peer could take over unnoticed', ({ peerNotReady }) =>
    Number(peerNotReady === ''),
  );
  number(
    'headgate_pair_two_masters',
    'VRRP instances that have had two masters for more than a second',
    (pair) => pair.twoMasters.length,
  );
  number('headgate_maintenance', 'Whether an operator has locked this host', (pair) =>
    Number(pair.maintenance),
  );
  number(
    'headgate_handover_connections',
    'Open connections to VIPs that this host has handed over; none while they are not counted',
    ({ handover }) => (handover === undefined ? 0 : handover.left),
  );
  number(
    'headgate_pair_credentials_expiry_timestamp_seconds',
    "When the pair's certificate expires, since the Unix epoch; 0 if it cannot be used",
    ({ credentialsExpire }) => credentialsExpire / 1000,
  );
  registry.gauge('headgate_pair_parity', 'Whether the peer has the same state', ['of'], () =>
    Object.entries(state()?.parity ?? {}).map(([of, sameness]) => [{ of }, Number(sameness === 'same')]),
  );
  const lowered = "Whether a reason lowers this host's standing in the pair";
  registry.gauge('headgate_standing_lowered', lowered, ['reason'], () => {
    const pair = state();
    if (pair === undefined) return [];
    const reasons = new Set(pair.lowered.map(({ reason }) => reason));
    return STANDING_REASONS.map((reason) => [{ reason }, Number(reasons.has(reason))]);
  });
  return {
    pairRefused: registry.counter<[reason: (typeof PAIR_REFUSALS)[number]]>(
      'headgate_pair_refused_total',
      'Connections of the pair that this host refused or closed, by reason',
      ['reason'],
      PAIR_REFUSALS.map((reason) => [reason]),
    ),
    handedOver: registry.counter<[connections: (typeof HANDOVERS)[number]]>(
      'headgate_handovers_total',
      'Planned failovers from this host, by whether its connections were kept',
      ['connections'],
      HANDOVERS.map((connections) => [connections]),
    ),
  };
}
