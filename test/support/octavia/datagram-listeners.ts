// Builders of Octavia's objects of UDP and SCTP, with the fields that its template reads.

const id = (kind: string, number: number): string =>
  `${kind}0000000-0000-4000-8000-${String(number).padStart(12, '0')}`;

export const LISTENER = id('1', 1);
export const POOL = id('2', 1);
export const MONITOR = id('4', 1);
export const member = (number: number): string => id('3', number);

export interface MemberGiven {
  readonly number: number;
  readonly address?: string;
  readonly port?: number;
  readonly weight?: number;
  readonly enabled?: boolean;
  readonly monitorAddress?: string;
  readonly monitorPort?: number;
}

export interface ListenerGiven {
  readonly protocol?: 'UDP' | 'SCTP';
  readonly vips?: readonly string[];
  readonly port?: number;
  readonly enabled?: boolean;
  readonly connectionLimit?: number;
  readonly algorithm?: 'ROUND_ROBIN' | 'LEAST_CONNECTIONS' | 'SOURCE_IP';
  readonly persistence?: { readonly timeout?: number; readonly granularity?: string } | undefined;
  readonly monitor?: Readonly<Record<string, unknown>> & { readonly type: string };
  readonly poolEnabled?: boolean;
  /** undefined: the listener has no pool. */
  readonly members?: readonly MemberGiven[] | undefined;
}

/** A listener of UDP port 53 on 10.9.0.100 with the members 10.9.0.31 and so on, by their numbers. */
export function listener(given: ListenerGiven): Readonly<Record<string, unknown>> {
  const { protocol = 'UDP', vips = ['10.9.0.100'], members, persistence, monitor } = given;
  const [vip = '', ...additional] = vips;
  const pool = members && {
    id: POOL,
    protocol,
    lb_algorithm: given.algorithm ?? 'ROUND_ROBIN',
    enabled: given.poolEnabled ?? true,
    provisioning_status: 'ACTIVE',
    session_persistence:
      (persistence && {
        type: 'SOURCE_IP',
        persistence_timeout: persistence.timeout ?? null,
        persistence_granularity: persistence.granularity ?? null,
      }) ??
      null,
    health_monitor:
      (monitor && {
        ...{ id: MONITOR, enabled: true, delay: 5, timeout: 3, fall_threshold: 3, rise_threshold: 2 },
        ...{ provisioning_status: 'ACTIVE', url_path: null, http_method: null, expected_codes: null },
        ...monitor,
      }) ??
      null,
    members: members.map((each) => ({
      id: member(each.number),
      ip_address: each.address ?? `10.9.0.${30 + each.number}`,
      protocol_port: each.port ?? 5353,
      weight: each.weight ?? 1,
      enabled: each.enabled ?? true,
      provisioning_status: 'ACTIVE',
      monitor_address: each.monitorAddress ?? null,
      monitor_port: each.monitorPort ?? null,
    })),
  };
  return {
    id: LISTENER,
    protocol,
    protocol_port: given.port ?? 53,
    enabled: given.enabled ?? true,
    connection_limit: given.connectionLimit ?? -1,
    default_pool: pool ?? null,
    load_balancer: {
      id: id('5', 1),
      enabled: true,
      vip: { ip_address: vip },
      additional_vips: additional.map((ip_address) => ({ ip_address })),
    },
  };
}
