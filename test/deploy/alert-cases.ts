// For each alert, series that make it fire and similar series that must not, in the form of `promtool test rules` with a
// value for each minute. https://prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules/

export interface AlertCase {
  readonly fires: Series | readonly Series[];
  readonly quiet: Series;
  /** The time of the evaluation; default `20m`. */
  readonly at?: string;
  /** The number of firing alerts; default 1. */
  readonly count?: number;
}

/** `name{labels}` → values. */
export type Series = Readonly<Record<string, string>>;

/** A series of host `a` or `b`. */
const a = (name: string, labels = ''): string => series(name, 'a', labels);
const b = (name: string, labels = ''): string => series(name, 'b', labels);

function series(name: string, instance: string, labels: string): string {
  return `${name}{job="headgate",instance="${instance}"${labels === '' ? '' : `,${labels}`}}`;
}

const WEB = 'namespace="default",service="web",port="80",protocol="TCP",family="v4"';
const UNSERVED = 'namespace="default",service="web"';
const OTHER = 'namespace="default",service="other",port="80",protocol="TCP",family="v4"';
const UDP = 'namespace="default",service="dns",port="53",protocol="UDP",family="v4"';
const ASKED = `${WEB},owner="pool",profile="asked"`;
const ROUTE = 'kind="HTTPRoute",namespace="default",route="api"';
const ROUTER = 'vrrp_instance="vrrp-51",anchor="192.0.2.1"';
/** The longest range of any case. */
const LONG = 400;
const always = (value: number): string => `${value}+0x${LONG}`;
/** A counter that grows by this number each minute. */
const growing = (step: number): string => `0+${step}x${LONG}`;
/** A value in every second minute. */
const flapping = (one: number, other: number): string => `${one} ${other} `.repeat(60).trim();

/** The states of a virtual router on a host. */
const vrrp = (of: typeof a, state: string): Series =>
  Object.fromEntries(
    ['master', 'backup', 'fault', 'unknown'].map((each) => [
      of('headgate_vrrp_state', `${ROUTER},state="${each}"`),
      always(Number(each === state)),
    ]),
  );

const pools = (error: number, online: number): Series => ({
  [a('headgate_operating_status', 'kind="pool",status="ERROR"')]: always(error),
  [a('headgate_operating_status', 'kind="pool",status="ONLINE"')]: always(online),
});

/** Changes of pods, `late` of a hundred a minute after more than five seconds. `le` is 5.0 in Prometheus 3. */
const programming = (late: number, total = 100, le = '5'): Series => ({
  [a('headgate_network_programming_duration_seconds_bucket', `path="runtime",le="${le}"`)]: growing(
    total - late,
  ),
  [a('headgate_network_programming_duration_seconds_count', 'path="runtime"')]: growing(total),
});

const pair = (values: Readonly<Record<'heard' | 'ready' | 'same', number>>): Series => ({
  [a('headgate_pair_peer_heard', 'peer="192.0.2.2"')]: always(values.heard),
  [a('headgate_pair_peer_ready', 'peer="192.0.2.2"')]: always(values.ready),
  [a('headgate_pair_parity', 'of="model"')]: always(values.same),
  [a('headgate_pair_parity', 'of="running"')]: always(1),
});

export const alertCases: Readonly<Record<string, AlertCase>> = {
  HeadgateHaproxyDown: {
    fires: { [a('headgate_haproxy_serving')]: always(0) },
    // For a moment during a start.
    quiet: { [a('headgate_haproxy_serving')]: flapping(0, 1) },
  },
  HeadgateConnectionsNearLimit: {
    fires: {
      [a('headgate_haproxy_open_connections')]: always(85),
      [a('headgate_haproxy_connection_limit')]: always(100),
    },
    quiet: {
      [a('headgate_haproxy_open_connections')]: always(79),
      [a('headgate_haproxy_connection_limit')]: always(100),
    },
  },
  HeadgateManyPoolsDown: { fires: pools(30, 70), quiet: pools(2, 1) },
  HeadgateAuthorizerAway: {
    fires: [
      // No member, or time-outs; and one of two members answers 500 although the other one is asked then.
      { [a('headgate_pool_http_responses_total', `${ASKED},code="5xx"`)]: growing(2) },
      {
        [a('headgate_pool_http_responses_total', `${ASKED},code="5xx"`)]: growing(6),
        [a('headgate_pool_http_responses_total', `${ASKED},code="2xx"`)]: growing(60),
      },
    ],
    quiet: {
      // It lets no client in, which is an answer.
      [a('headgate_pool_http_responses_total', `${ASKED},code="5xx"`)]: always(0),
      [a('headgate_pool_http_responses_total', `${ASKED},code="4xx"`)]: growing(60),
      // The only two errors.
      [b('headgate_pool_http_responses_total', `${ASKED},code="5xx"`)]: `0+0x18 2+0x${LONG}`,
      // The same Service as the backend of a route.
      [a('headgate_pool_http_responses_total', `${WEB},owner="pool",code="5xx"`)]: growing(60),
    },
  },
  HeadgatePoolDown: {
    fires: [
      // Mode http: HAProxy answers 503, whether the Service has ever had members or not.
      {
        [a('headgate_pool_active_members', WEB)]: always(0),
        [a('headgate_listener_up', WEB)]: always(1),
        [a('headgate_pool_connection_errors_total', WEB)]: growing(60),
      },
      // Mode tcp: clients kept their connections for hours before it lost its members.
      {
        [a('headgate_pool_active_members', WEB)]: `3+0x10 0+0x${LONG}`,
        [a('headgate_listener_up', WEB)]: `1+0x10 0+0x${LONG}`,
        [a('headgate_listener_connections_total', WEB)]: always(60),
        [a('headgate_listener_open_connections', WEB)]: `7+0x10 0+0x${LONG}`,
      },
      // The kernel path counts no errors.
      {
        [a('headgate_pool_active_members', UDP)]: `3+0x10 0+0x${LONG}`,
        [a('headgate_listener_up', UDP)]: `1+0x10 0+0x${LONG}`,
        [a('headgate_listener_connections_total', UDP)]: `0+60x10 600+0x${LONG}`,
      },
    ],
    quiet: {
      // Mode http, scaled to zero, with two stray requests.
      [a('headgate_pool_active_members', WEB)]: always(0),
      [a('headgate_listener_up', WEB)]: always(1),
      [a('headgate_pool_connection_errors_total', WEB)]: `0+0x12 2+0x${LONG}`,
      // Mode tcp: it has never had a member, or no client used it before.
      [a('headgate_pool_active_members', UDP)]: always(0),
      [a('headgate_listener_up', UDP)]: always(0),
      [a('headgate_listener_connections_total', UDP)]: always(60),
      [a('headgate_listener_open_connections', UDP)]: always(0),
      // Its members fail their monitor and serve clients all the same.
      [a('headgate_pool_active_members', OTHER)]: always(0),
      [a('headgate_listener_up', OTHER)]: always(1),
      [a('headgate_listener_connections_total', OTHER)]: growing(60),
      [a('headgate_pool_connection_errors_total', OTHER)]: always(0),
      // The standby host of a pair: it has no clients.
      [b('headgate_pool_active_members', WEB)]: `3+0x10 0+0x${LONG}`,
      [b('headgate_listener_up', WEB)]: `1+0x10 0+0x${LONG}`,
      [b('headgate_listener_connections_total', WEB)]: always(0),
      [b('headgate_listener_open_connections', WEB)]: always(0),
    },
  },
  HeadgateNotServed: {
    fires: {
      [a('headgate_load_balancer_verdict', `${UNSERVED},verdict="not served"`)]: `0+0x5 1+0x${LONG}`,
      [a('headgate_listener_connections_total', WEB)]: `0+60x5 300+0x${LONG}`,
    },
    // One that no client has used, one that is served in part, and a host whose HAProxy does not run at all.
    quiet: {
      [a('headgate_load_balancer_verdict', `${UNSERVED},verdict="not served"`)]: always(1),
      [a('headgate_listener_connections_total', WEB)]: always(60),
      [b('headgate_load_balancer_verdict', `${UNSERVED},verdict="served in part"`)]: always(1),
      [b('headgate_listener_connections_total', WEB)]: growing(60),
      [series('headgate_haproxy_serving', 'c', '')]: always(0),
      [series('headgate_load_balancer_verdict', 'c', `${UNSERVED},verdict="not served"`)]: always(1),
      [series('headgate_listener_connections_total', 'c', WEB)]: `0+60x5 300+0x${LONG}`,
    },
  },
  HeadgateMembersFail: {
    fires: [
      {
        [a('headgate_pool_connection_errors_total', WEB)]: growing(2),
        [a('headgate_pool_sessions_total', WEB)]: growing(2),
        [a('headgate_load_balancer_verdict', `${UNSERVED},verdict="members fail"`)]: always(1),
      },
      // A load balancer of the kernel path.
      { [a('headgate_load_balancer_verdict', `${UNSERVED},verdict="members fail"`)]: always(1) },
    ],
    quiet: {
      // Half of the connections.
      [a('headgate_pool_connection_errors_total', WEB)]: growing(30),
      [a('headgate_pool_sessions_total', WEB)]: growing(60),
      // The only one.
      [a('headgate_pool_connection_errors_total', OTHER)]: `0+0x18 1+0x${LONG}`,
      [a('headgate_pool_sessions_total', OTHER)]: `0+0x18 1+0x${LONG}`,
      // Another alert covers this.
      [a('headgate_pool_active_members', UDP)]: always(0),
      [a('headgate_pool_connection_errors_total', UDP)]: growing(60),
      [a('headgate_pool_sessions_total', UDP)]: growing(60),
      // A Gateway whose authorization server is away.
      [a('headgate_load_balancer_verdict', `${UNSERVED},owner="gateway",verdict="members fail"`)]: always(1),
      // Its requests get answers of 5xx.
      [a('headgate_load_balancer_verdict', 'namespace="default",service="other",verdict="members fail"')]:
        always(1),
    },
  },
  HeadgateMembersDown: {
    fires: {
      [a('headgate_pool_operating_status', `${WEB},status="ERROR"`)]: always(1),
      [a('headgate_pool_active_members', WEB)]: always(0),
    },
    quiet: {
      // Its members fail clients, and it has no monitor.
      [a('headgate_pool_operating_status', `${UDP},status="ERROR"`)]: always(1),
      [a('headgate_pool_active_members', UDP)]: always(3),
      [a('headgate_pool_operating_status', `${WEB},status="DEGRADED"`)]: always(1),
      // Other alerts cover these.
      [a('headgate_pool_operating_status', `${OTHER},status="ERROR"`)]: always(1),
      [a('headgate_pool_active_members', OTHER)]: always(0),
      [a('headgate_pool_connection_errors_total', OTHER)]: growing(60),
      [a('headgate_pool_sessions_total', OTHER)]: growing(60),
      [b('headgate_pool_operating_status', `${WEB},status="ERROR"`)]: always(1),
      [b('headgate_pool_active_members', WEB)]: always(0),
      [b('headgate_operating_status', 'kind="pool",status="ERROR"')]: always(30),
      [b('headgate_operating_status', 'kind="pool",status="ONLINE"')]: always(70),
    },
  },
  HeadgatePoolQueue: {
    fires: { [a('headgate_pool_queue', WEB)]: always(3) },
    quiet: { [a('headgate_pool_queue', WEB)]: flapping(3, 0) },
  },
  HeadgateListenerFull: {
    fires: {
      [a('headgate_listener_open_connections', WEB)]: always(95),
      [a('headgate_listener_connection_limit', WEB)]: always(100),
    },
    quiet: {
      [a('headgate_listener_open_connections', WEB)]: always(85),
      [a('headgate_listener_connection_limit', WEB)]: always(100),
    },
  },
  HeadgateConnectErrors: {
    fires: {
      [a('headgate_pool_connection_errors_total', WEB)]: growing(6),
      [a('headgate_pool_sessions_total', WEB)]: growing(60),
    },
    // A large share of very few.
    quiet: {
      [a('headgate_pool_connection_errors_total', WEB)]: growing(3),
      [a('headgate_pool_sessions_total', WEB)]: growing(3),
    },
  },
  HeadgateRedispatches: {
    // One of several members is dead.
    fires: {
      [a('headgate_pool_redispatches_total', WEB)]: growing(20),
      [a('headgate_pool_sessions_total', WEB)]: growing(60),
    },
    quiet: {
      // A lost packet now and then among very many connections.
      [a('headgate_pool_redispatches_total', WEB)]: growing(3),
      [a('headgate_pool_sessions_total', WEB)]: growing(6000),
      // A large share of very few.
      [a('headgate_pool_redispatches_total', OTHER)]: growing(0.5),
      [a('headgate_pool_sessions_total', OTHER)]: growing(1),
      // Another alert covers this.
      [a('headgate_pool_redispatches_total', UDP)]: growing(180),
      [a('headgate_pool_connection_errors_total', UDP)]: growing(60),
      [a('headgate_pool_sessions_total', UDP)]: growing(60),
    },
  },
  HeadgateConnectSlow: {
    fires: {
      [a('headgate_pool_connect_time_average_seconds', WEB)]: always(0.2),
      [a('headgate_pool_sessions_total', WEB)]: growing(60),
    },
    // Without new sessions, the average of the last ones stays.
    quiet: {
      [a('headgate_pool_connect_time_average_seconds', WEB)]: always(0.2),
      [a('headgate_pool_sessions_total', WEB)]: always(60),
    },
  },
  HeadgateHttpErrors: {
    fires: {
      [a('headgate_listener_http_responses_total', `${WEB},code="5xx"`)]: growing(60),
      [a('headgate_listener_http_responses_total', `${WEB},code="2xx"`)]: growing(600),
    },
    quiet: {
      [a('headgate_listener_http_responses_total', `${WEB},code="5xx"`)]: growing(6),
      [a('headgate_listener_http_responses_total', `${WEB},code="2xx"`)]: growing(600),
    },
  },
  HeadgateRouteErrors: {
    fires: {
      [a('headgate_route_http_responses_total', `${ROUTE},code="5xx"`)]: growing(60),
      [a('headgate_route_http_responses_total', `${ROUTE},code="2xx"`)]: growing(600),
    },
    quiet: {
      [a('headgate_route_http_responses_total', `${ROUTE},code="5xx"`)]: growing(6),
      [a('headgate_route_http_responses_total', `${ROUTE},code="2xx"`)]: growing(600),
    },
  },
  HeadgateTlsHandshakeFailures: {
    fires: {
      [a('headgate_listener_tls_handshake_failures_total', WEB)]: growing(120),
      [a('headgate_listener_connections_total', WEB)]: growing(400),
    },
    // A probe by TCP every second.
    quiet: {
      [a('headgate_listener_tls_handshake_failures_total', WEB)]: growing(60),
      [a('headgate_listener_connections_total', WEB)]: growing(400),
    },
  },
  HeadgateHaproxyBusy: {
    fires: { [a('headgate_haproxy_idle_ratio')]: always(0.05) },
    quiet: { [a('headgate_haproxy_idle_ratio')]: flapping(0.05, 0.5) },
  },
  HeadgateStatisticsMissing: {
    fires: {
      [a('headgate_haproxy_statistics_up')]: always(0),
      [a('headgate_haproxy_serving')]: always(1),
    },
    // Another alert covers this.
    quiet: {
      [a('headgate_haproxy_statistics_up')]: always(0),
      [a('headgate_haproxy_serving')]: always(0),
    },
  },
  HeadgateNoMaster: {
    // Two backups receive advertisements of another host.
    fires: [
      { ...vrrp(a, 'fault'), ...vrrp(b, 'fault') },
      vrrp(a, 'fault'),
      { ...vrrp(a, 'backup'), ...vrrp(b, 'backup') },
    ],
    // The master's agent does not run; its keepalived runs, and the backup receives its advertisements.
    quiet: vrrp(a, 'backup'),
  },
  HeadgateTwoMasters: {
    fires: [
      { ...vrrp(a, 'master'), ...vrrp(b, 'master') },
      { [a('headgate_vrrp_rival', 'vrrp_instance="vrrp-51"')]: always(1) },
      { [a('headgate_pair_two_masters', 'peer="192.0.2.2"')]: always(1) },
    ],
    quiet: {
      ...vrrp(a, 'master'),
      ...vrrp(b, 'backup'),
      // Another pair, on another network, with an instance of the same name.
      [series('headgate_vrrp_state', 'c', 'vrrp_instance="vrrp-51",anchor="198.51.100.1",state="master"')]:
        always(1),
      [a('headgate_vrrp_rival', 'vrrp_instance="vrrp-51"')]: always(0),
      [a('headgate_pair_two_masters', 'peer="192.0.2.2"')]: always(0),
    },
  },
  HeadgateVrrpFault: { fires: vrrp(a, 'unknown'), quiet: vrrp(a, 'backup') },
  HeadgateVipNotAnnounced: {
    fires: {
      [a('headgate_bgp_vip_routers', 'vip="198.51.100.1"')]: always(0),
      [b('headgate_bgp_vip_routers', 'vip="198.51.100.1"')]: always(0),
      [b('headgate_bgp_vip_routers', 'vip="198.51.100.2"')]: always(1),
    },
    // Another host announces it.
    quiet: {
      [a('headgate_bgp_vip_routers', 'vip="198.51.100.1"')]: always(0),
      [b('headgate_bgp_vip_routers', 'vip="198.51.100.1"')]: always(1),
    },
  },
  HeadgateBgpNoSession: {
    fires: {
      [a('bird_protocol_up', 'proto="BGP",name="tor-a",ip_version="4"')]: always(0),
      [a('bird_protocol_up', 'proto="BGP",name="tor-b",ip_version="4"')]: always(0),
    },
    quiet: {
      [a('bird_protocol_up', 'proto="BGP",name="tor-a",ip_version="4"')]: always(0),
      [a('bird_protocol_up', 'proto="BGP",name="tor-b",ip_version="4"')]: always(1),
      'bird_protocol_up{job="bird",instance="a",proto="BGP",name="upstream",ip_version="4"}': always(0),
    },
  },
  HeadgateBgpSessionDown: {
    fires: {
      [a('bird_protocol_up', 'proto="BGP",name="tor-a",ip_version="4"')]: always(0),
      [a('bird_protocol_up', 'proto="BGP",name="tor-b",ip_version="4"')]: always(1),
    },
    quiet: {
      [a('bird_protocol_up', 'proto="BGP",name="tor-a",ip_version="4"')]: always(1),
      // The operator's own BIRD, by its own exporter.
      'bird_protocol_up{job="bird",instance="a",proto="BGP",name="upstream",ip_version="4"}': always(0),
    },
  },
  HeadgateBgpFlapping: {
    fires: { [a('headgate_bgp_session_losses_total', 'name="tor-a"')]: growing(1) },
    // A router that restarts.
    quiet: { [a('headgate_bgp_session_losses_total', 'name="tor-a"')]: `0+0x10 1+0x${LONG}` },
  },
  HeadgateHostMissing: {
    fires: {
      [a('headgate_host_up', 'host="lb3"')]: always(0),
      [b('headgate_host_up', 'host="lb3"')]: always(0),
    },
    quiet: {
      [a('headgate_host_up', 'host="lb2"')]: always(1),
      [b('headgate_host_up', 'host="lb1"')]: always(1),
    },
  },
  HeadgatePassingLimited: {
    fires: { [a('headgate_passing_limited_total')]: growing(500) },
    // The end of a host with many connections.
    quiet: { [a('headgate_passing_limited_total')]: `0+0x10 900+0x${LONG}` },
  },
  HeadgateBgpRoutesRefused: {
    fires: { [a('headgate_problems', 'reason="BgpRoutesHeldBack"')]: flapping(0, 1) },
    quiet: { [a('headgate_problems', 'reason="BgpRoutesHeldBack"')]: always(0) },
  },
  HeadgateKeepalivedFault: {
    fires: { ...vrrp(a, 'master'), [a('headgate_keepalived_fault')]: always(1) },
    // Other alerts cover the first two.
    quiet: {
      ...vrrp(a, 'unknown'),
      [a('headgate_keepalived_fault')]: always(1),
      ...vrrp(b, 'master'),
      [b('headgate_vrrp_rival', 'vrrp_instance="vrrp-51"')]: always(1),
      [b('headgate_keepalived_fault')]: always(1),
      [series('headgate_keepalived_fault', 'c', '')]: always(0),
    },
  },
  HeadgateFrequentFailovers: {
    fires: { [a('headgate_vrrp_transitions_total', 'vrrp_instance="vrrp-51",state="master"')]: growing(1) },
    quiet: {
      [a('headgate_vrrp_transitions_total', 'vrrp_instance="vrrp-51",state="master"')]: `0+0x5 1+0x${LONG}`,
      [a('headgate_vrrp_transitions_total', 'vrrp_instance="vrrp-51",state="backup"')]: growing(1),
    },
  },
  HeadgatePeerLost: {
    fires: pair({ heard: 0, ready: 0, same: 0 }),
    quiet: pair({ heard: 1, ready: 0, same: 0 }),
  },
  HeadgatePeerBehind: {
    fires: pair({ heard: 1, ready: 0, same: 0 }),
    // Another alert covers this.
    quiet: pair({ heard: 0, ready: 0, same: 0 }),
  },
  HeadgatePeerNotReady: {
    fires: pair({ heard: 1, ready: 0, same: 1 }),
    quiet: pair({ heard: 1, ready: 0, same: 0 }),
    at: '30m',
  },
  HeadgateHostLowered: {
    fires: { [a('headgate_standing_lowered', 'reason="haproxy"')]: always(1) },
    quiet: { [a('headgate_standing_lowered', 'reason="maintenance"')]: always(1) },
  },
  HeadgateMaintenanceForgotten: {
    fires: { [a('headgate_maintenance', 'peer="192.0.2.2"')]: always(1) },
    quiet: { [a('headgate_maintenance', 'peer="192.0.2.2"')]: `1+0x200 0+0x${LONG}` },
    at: '250m',
  },
  HeadgateCertificateExpiring: {
    // promtool's clock begins at 0.
    fires: {
      [a('headgate_pair_credentials_expiry_timestamp_seconds', 'peer="192.0.2.2"')]: always(13 * 86_400),
    },
    quiet: {
      [a('headgate_pair_credentials_expiry_timestamp_seconds', 'peer="192.0.2.2"')]: always(15 * 86_400),
    },
    at: '65m',
  },
  HeadgateReloadFailing: {
    fires: {
      [a('headgate_haproxy_reloads_total', 'reason="repair",result="failed"')]: growing(0.5),
      [a('headgate_haproxy_reloads_total', 'reason="settings",result="failed"')]: growing(0.5),
    },
    quiet: {
      // A reload can have several reasons.
      [a('headgate_haproxy_reloads_total', 'reason="repair",result="failed"')]: `0+0x12 1+0x${LONG}`,
      [a('headgate_haproxy_reloads_total', 'reason="settings",result="failed"')]: `0+0x12 1+0x${LONG}`,
      [a('headgate_haproxy_reloads_total', 'reason="listener",result="failed"')]: `0+0x12 1+0x${LONG}`,
      [a('headgate_haproxy_reloads_total', 'reason="repair",result="done"')]: growing(5),
    },
  },
  HeadgateReloadOverdue: {
    fires: { [a('headgate_haproxy_reload_due')]: always(1) },
    quiet: { [a('headgate_haproxy_reload_due')]: flapping(1, 0) },
  },
  HeadgateKeepalivedReloadFailing: {
    fires: { [a('headgate_keepalived_reloads_total', 'result="failed"')]: `0+0x15 1+0x${LONG}` },
    quiet: {
      [a('headgate_keepalived_reloads_total', 'result="failed"')]: always(1),
      [a('headgate_keepalived_reloads_total', 'result="done"')]: growing(1),
    },
  },
  HeadgateProcessLost: {
    fires: { [a('headgate_repairs_total', 'what="process"')]: `0+0x15 1+0x${LONG}` },
    quiet: {
      [a('headgate_repairs_total', 'what="process"')]: always(1),
      [a('headgate_repairs_total', 'what="audit"')]: growing(1),
    },
  },
  HeadgateDrift: {
    fires: { [a('headgate_repairs_total', 'what="audit"')]: growing(0.2) },
    quiet: {
      // Four pools at once.
      [a('headgate_repairs_total', 'what="audit"')]: `0+0x15 4+0x${LONG}`,
      [a('headgate_repairs_total', 'what="process"')]: growing(1),
    },
    at: '60m',
  },
  HeadgateLoadBalancerRejected: {
    fires: { [a('headgate_problems', 'reason="ConfigurationRejected"')]: always(1) },
    quiet: {
      [a('headgate_problems', 'reason="ConfigurationRejected"')]: always(0),
      [a('headgate_problems', 'reason="InvalidFile"')]: always(1),
    },
  },
  HeadgateAddressUnavailable: {
    fires: { [a('headgate_problems', 'reason="AddressUnavailable"')]: always(1) },
    quiet: {
      [a('headgate_problems', 'reason="AddressUnavailable"')]: always(0),
      [a('headgate_problems', 'reason="AddressPending"')]: always(1),
    },
  },
  HeadgateAddressConflict: {
    fires: { [a('headgate_problems', 'reason="AddressConflict"')]: always(1) },
    quiet: {
      [a('headgate_problems', 'reason="AddressConflict"')]: always(0),
      [a('headgate_problems', 'reason="AddressInUse"')]: always(1),
    },
  },
  // The evaluation is 20 minutes after 1970 began.
  HeadgateCertificateExpired: {
    fires: { [a('headgate_certificate_expiry_seconds', 'namespace="shop",secret="web"')]: always(1000) },
    quiet: { [a('headgate_certificate_expiry_seconds', 'namespace="shop",secret="web"')]: always(1300) },
  },
  HeadgateCertificateExpires: {
    fires: { [a('headgate_certificate_expiry_seconds', 'namespace="shop",secret="web"')]: always(600_000) },
    quiet: {
      [a('headgate_certificate_expiry_seconds', 'namespace="shop",secret="web"')]: always(700_000),
      // Another alert covers this.
      [a('headgate_certificate_expiry_seconds', 'namespace="shop",secret="old"')]: always(100),
    },
  },
  HeadgateStateNotPersisted: {
    fires: { [a('headgate_state_persisted')]: always(0) },
    quiet: { [a('headgate_state_persisted')]: flapping(0, 1) },
  },
  HeadgateApiDisconnected: {
    // One alert, whatever the number of kinds.
    fires: {
      [a('headgate_api_connected', 'kind="Service"')]: always(0),
      [a('headgate_api_connected', 'kind="Node"')]: always(0),
      [a('headgate_api_connected', 'kind="Gateway"')]: always(1),
    },
    quiet: {
      [a('headgate_api_connected', 'kind="Service"')]: flapping(0, 1),
      // Another alert covers this.
      [b('headgate_api_connected', 'kind="Service"')]: always(0),
      [b('headgate_cluster_lost')]: always(1),
    },
  },
  HeadgateClusterLost: {
    fires: { [a('headgate_cluster_lost')]: always(1) },
    quiet: {
      [a('headgate_cluster_lost')]: always(0),
      [a('headgate_api_connected', 'kind="Service"')]: always(0),
    },
  },
  HeadgateNoLeader: {
    fires: {
      [a('headgate_leader', 'lease="headgate-system/headgate"')]: always(0),
      [b('headgate_leader', 'lease="headgate-system/headgate"')]: always(0),
    },
    quiet: {
      [a('headgate_leader', 'lease="headgate-system/headgate"')]: always(0),
      [b('headgate_leader', 'lease="headgate-system/headgate"')]: always(1),
      // Another alert covers this: the API server is away.
      'headgate_leader{job="headgate",cluster="c2",instance="c",lease="headgate-system/headgate"}': always(0),
      'headgate_api_connected{job="headgate",cluster="c2",instance="c",kind="Service"}': always(0),
    },
  },
  HeadgateWritesFailing: {
    fires: {
      [a('headgate_status_writes_total', 'result="failed"')]: growing(1),
      [b('headgate_claim_writes_total', 'result="failed"')]: growing(1),
    },
    quiet: {
      [a('headgate_status_writes_total', 'result="failed"')]: growing(0.2),
      [a('headgate_status_writes_total', 'result="done"')]: growing(10),
    },
    count: 2,
  },
  HeadgateAddressPoolExhausted: {
    fires: {
      [a('headgate_address_pool_addresses', 'pool="public",family="v4",state="free"')]: always(0),
      [a('headgate_address_pool_addresses', 'pool="public",family="v4",state="used"')]: always(8),
    },
    quiet: {
      [a('headgate_address_pool_addresses', 'pool="public",family="v4",state="free"')]: always(1),
      [a('headgate_address_pool_addresses', 'pool="public",family="v4",state="held"')]: always(0),
    },
  },
  HeadgateClaimsUnkept: {
    fires: { [a('headgate_unkept_claims')]: always(2) },
    quiet: { [a('headgate_unkept_claims')]: flapping(2, 0) },
  },
  HeadgateProvisionerStuck: {
    fires: { [a('headgate_provisioner_pending')]: always(2) },
    quiet: { [a('headgate_provisioner_pending')]: flapping(2, 0) },
  },
  HeadgateObjectProblems: {
    fires: {
      [a('headgate_problems', 'reason="InvalidFile"')]: always(2),
      [a('headgate_problems', 'reason="AddressPending"')]: always(1),
    },
    // Other alerts cover these.
    quiet: {
      [a('headgate_problems', 'reason="ConfigurationRejected"')]: always(1),
      [a('headgate_problems', 'reason="AllMembersDown"')]: always(1),
      [a('headgate_problems', 'reason="MembersFail"')]: always(1),
      [a('headgate_problems', 'reason="InvalidFile"')]: always(0),
    },
    at: '65m',
    count: 2,
  },
  HeadgateNoAgent: {
    fires: [{ [a('up')]: always(0), [b('up')]: always(0) }, { 'up{job="node",instance="a"}': always(1) }],
    quiet: { [a('up')]: always(0), [b('up')]: always(1) },
  },
  HeadgateAgentDown: {
    fires: { [a('up')]: always(0), [b('up')]: always(1) },
    quiet: { [a('up')]: flapping(0, 1), [b('up')]: always(1), 'up{job="node",instance="a"}': always(0) },
  },
  HeadgateAgentRestarting: {
    fires: { [a('headgate_process_start_time_seconds')]: growing(60) },
    quiet: { [a('headgate_process_start_time_seconds')]: `1+0x5 2+0x5 3+0x${LONG}` },
  },
  HeadgateProgrammingFastBurn: {
    fires: [programming(20), programming(20, 100, '5.0')],
    // Two of only three changes within an hour were late, which is too few to report.
    quiet: programming(0.04, 0.05),
    at: '70m',
  },
  HeadgateProgrammingSlowBurn: {
    fires: [programming(8), programming(8, 100, '5.0')],
    quiet: programming(3),
    at: '60m',
  },
  HeadgateChangesStuck: {
    fires: { [a('headgate_waiting_changes')]: always(4) },
    quiet: { [a('headgate_waiting_changes')]: flapping(40, 0) },
  },
  HeadgateEventLoopLag: {
    fires: { [a('headgate_nodejs_eventloop_lag_p99_seconds')]: always(0.2) },
    quiet: { [a('headgate_nodejs_eventloop_lag_p99_seconds')]: flapping(0.2, 0.02) },
  },
  HeadgateScrapeSlow: {
    fires: { [a('scrape_duration_seconds')]: always(6) },
    quiet: { [a('scrape_duration_seconds')]: always(1), 'scrape_duration_seconds{job="node"}': always(6) },
  },
};
