// Metrics of the pair: the peer, and how this host stands beside it. Where there is no peer, they have no row.

import type { Counter, MetricRegistry } from './metric-registry.ts';

/** undefined where this host has no peer. */
export type PairState =
  | {
      readonly lowered: readonly { readonly reason: string }[];
      readonly maintenance: boolean;
      readonly parity: Readonly<Record<'model' | 'running', string>>;
      readonly twoMasters: readonly string[];
      readonly peerAddress: string;
      /** undefined while it is not heard. */
      readonly peer: unknown;
      /** '' where it could take over now. */
      readonly peerNotReady: string;
      /** undefined where this host has no VRRP. */
      readonly handover: { readonly left: number } | undefined;
      /** Milliseconds since the epoch; 0 where they cannot be used. */
      readonly credentialsExpire: number;
    }
  | undefined;

/** What may lower a host. */
export const STANDING_REASONS = ['haproxy', 'listeners', 'maintenance', 'failover', 'catching-up'] as const;
/** Why a connection may be refused. */
export const PAIR_REFUSALS = ['address', 'handshake', 'message', 'silence'] as const;

/** What becomes of connections in a planned failover. */
export const HANDOVERS = ['kept', 'cut'] as const;

export class PairMetrics {
  readonly #refusals: Counter;
  readonly #handovers: Counter;

  constructor(registry: MetricRegistry, state: () => PairState) {
    const number = (name: string, help: string, value: (pair: NonNullable<PairState>) => number): void =>
      registry.gauge(name, help, ['peer'], () => {
        const pair = state();
        return pair === undefined ? [] : [[{ peer: pair.peerAddress }, value(pair)]];
      });
    number('headgate_pair_peer_heard', 'Whether the peer is heard', ({ peer }) => Number(peer !== undefined));
    number('headgate_pair_peer_ready', 'Whether the peer could take over now', ({ peerNotReady }) =>
      Number(peerNotReady === ''),
    );
    number(
      'headgate_pair_two_masters',
      'How many VRRP instances have two masters',
      ({ twoMasters }) => twoMasters.length,
    );
    number('headgate_maintenance', 'Whether an operator has locked this host', ({ maintenance }) =>
      Number(maintenance),
    );
    number(
      'headgate_handover_connections',
      'Connections to VIPs that this host has handed over and that go on here; -1 while they are not counted',
      ({ handover }) => handover?.left ?? 0,
    );
    number(
      'headgate_pair_credentials_expiry_timestamp_seconds',
      'When the certificate of the pair ends',
      ({ credentialsExpire }) => credentialsExpire / 1000,
    );
    registry.gauge('headgate_pair_parity', 'Whether the peer has the same', ['of'], () =>
      Object.entries(state()?.parity ?? {}).map(([of, sameness]) => [{ of }, Number(sameness === 'same')]),
    );
    registry.gauge('headgate_standing_lowered', 'What lowers this host in the pair', ['reason'], () => {
      const pair = state();
      if (pair === undefined) return [];
      const lowered = new Set(pair.lowered.map(({ reason }) => reason));
      return STANDING_REASONS.map((reason) => [{ reason }, Number(lowered.has(reason))]);
    });
    this.#refusals = registry.counter(
      'headgate_pair_refused_total',
      'Connections to the pair that were refused or ended, by why',
      ['reason'],
      PAIR_REFUSALS.map((reason) => ({ reason })),
    );
    this.#handovers = registry.counter(
      'headgate_handovers_total',
      'Planned failovers from this host, by what became of its connections',
      ['connections'],
      HANDOVERS.map((connections) => ({ connections })),
    );
  }

  handedOver(connections: (typeof HANDOVERS)[number]): void {
    this.#handovers.inc({ connections });
  }

  pairRefused(reason: (typeof PAIR_REFUSALS)[number]): void {
    this.#refusals.inc({ reason });
  }
}
