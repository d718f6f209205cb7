// For each alert, an outage: what the agent's series do before it, while it lasts, and after it. The series of the first ones
// are those that a real host has (test/real/alert-causes.test.ts).

/** `name{labels}` → its course. */
export type Courses = Readonly<Record<string, Course>>;

export interface Course {
  readonly kind: 'gauge' | 'counter';
  /** The value of a gauge; what a counter counts in a minute. */
  readonly healthy: number;
  readonly faulty: number;
}

export interface Outage {
  readonly courses: Courses;
  /** Minutes before it; default 20. A range of an hour needs more. */
  readonly begins?: number;
  /** Minutes; default 10. */
  readonly lasts?: number;
  /** The alert fires so many minutes after the beginning, once and with every evaluation until it ends. */
  readonly fires: number;
  /** It ends so many minutes after the end of the outage. */
  readonly ends: number;
}

const gauge = (healthy: number, faulty: number): Course => ({ kind: 'gauge', healthy, faulty });
const counter = (healthy: number, faulty: number): Course => ({ kind: 'counter', healthy, faulty });

const on = (instance: string, name: string, labels = ''): string =>
  `${name}{job="headgate",instance="${instance}"${labels === '' ? '' : `,${labels}`}}`;
const a = (name: string, labels = ''): string => on('a', name, labels);

const port = (number: number, more = ''): string =>
  `namespace="default",service="web",port="${number}",protocol="TCP",family="v4"${more}`;
const WEB = port(80);
const ROUTE = 'kind="HTTPRoute",namespace="default",route="api"';
const ROUTER = 'vrrp_instance="vrrp-51",anchor="192.0.2.1"';
const PEER = 'peer="192.0.2.2"';

interface Pool {
  /** In the outage, as those below. */
  readonly members?: number;
  readonly listener?: number;
  /** In a minute: connections that HAProxy accepts. */
  readonly connections?: number;
  readonly errors?: number;
  readonly redispatches?: number;
  /** An HTTP listener's answers of 5xx in a minute; undefined in mode tcp. */
  readonly fives?: number;
  /** 1: all members fail their monitor. */
  readonly down?: number;
}

/** A load balancer with 60 connections in a minute, which is not served any more. */
function unserved(owner: string): Courses {
  const verdict = `namespace="default",service="web",verdict="not served"${owner}`;
  return {
    [a('headgate_load_balancer_verdict', verdict)]: gauge(0, 1),
    [a('headgate_listener_connections_total', port(53, owner))]: counter(60, 0),
  };
}

/** A pool of three members with 60 connections in a minute, and what becomes of it. */
function pool(outage: Pool, labels = WEB): Courses {
  const {
    members = 3,
    listener = 1,
    connections = 60,
    errors = 0,
    redispatches = 0,
    fives,
    down = 0,
  } = outage;
  const answers = (code: string, of: number, faulty: number): Courses => ({
    [a('headgate_listener_http_responses_total', `${labels},code="${code}"`)]: counter(of, faulty),
  });
  return {
    [a('headgate_pool_active_members', labels)]: gauge(3, members),
    [a('headgate_listener_up', labels)]: gauge(1, listener),
    [a('headgate_listener_connections_total', labels)]: counter(60, connections),
    [a('headgate_listener_open_connections', labels)]: gauge(0, 0),
    [a('headgate_pool_sessions_total', labels)]: counter(60, connections),
    [a('headgate_pool_connection_errors_total', labels)]: counter(0, errors),
    [a('headgate_pool_redispatches_total', labels)]: counter(0, redispatches),
    [a('headgate_pool_operating_status', `${labels},status="ERROR"`)]: gauge(0, down),
    ...(fives === undefined ? {} : { ...answers('5xx', 0, fives), ...answers('2xx', 120, 120 - fives) }),
  };
}

/** The pool of an authorization server that answers 60 questions in a minute with 2xx, and then with 5xx. */
function questions(outage: Pool): Courses {
  const labels = port(80, ',owner="pool",profile="asked"');
  const { [a('headgate_listener_up', labels)]: _, ...courses } = pool(outage, labels);
  return {
    ...courses,
    [a('headgate_pool_http_responses_total', `${labels},code="2xx"`)]: counter(60, 0),
    [a('headgate_pool_http_responses_total', `${labels},code="5xx"`)]: counter(0, 60),
  };
}

const vrrp = (instance: string, healthy: string, faulty: string): Courses =>
  Object.fromEntries(
    ['master', 'backup', 'fault', 'unknown'].map((state) => [
      on(instance, 'headgate_vrrp_state', `${ROUTER},state="${state}"`),
      gauge(Number(state === healthy), Number(state === faulty)),
    ]),
  );

const pair = (faulty: Readonly<Record<'heard' | 'ready' | 'same', number>>): Courses => ({
  [a('headgate_pair_peer_heard', PEER)]: gauge(1, faulty.heard),
  [a('headgate_pair_peer_ready', PEER)]: gauge(1, faulty.ready),
  [a('headgate_pair_parity', 'of="model"')]: gauge(1, faulty.same),
  [a('headgate_pair_parity', 'of="running"')]: gauge(1, faulty.same),
});

const programming = (late: number): Courses => ({
  [a('headgate_network_programming_duration_seconds_bucket', 'path="runtime",le="5"')]: counter(
    100,
    100 - late,
  ),
  [a('headgate_network_programming_duration_seconds_count', 'path="runtime"')]: counter(100, 100),
});

const LEASE = 'lease="headgate-system/headgate"';
const KINDS = ['Service', 'EndpointSlice', 'Node', 'HTTPRoute', 'Gateway', 'Ingress'];
const apiAway: Courses = Object.fromEntries(
  KINDS.map((kind) => [a('headgate_api_connected', `kind="${kind}"`), gauge(1, 0)]),
);
const EXPIRY = a('headgate_certificate_expiry_seconds', 'namespace="shop",secret="web"');

/** The courses of one gauge without labels. */
const one = (name: string, healthy: number, faulty: number, labels = ''): Courses => ({
  [a(name, labels)]: gauge(healthy, faulty),
});
const count = (name: string, labels: string, faulty: number, healthy = 0): Courses => ({
  [a(name, labels)]: counter(healthy, faulty),
});

/** In the order of the rules. */
export const outages: Readonly<Record<string, Outage | readonly Outage[]>> = {
  HeadgateHaproxyDown: { courses: one('headgate_haproxy_serving', 1, 0), fires: 1, ends: 0 },
  HeadgateConnectionsNearLimit: {
    courses: {
      ...one('headgate_haproxy_open_connections', 20, 90),
      ...one('headgate_haproxy_connection_limit', 100, 100),
    },
    fires: 2,
    ends: 0,
  },
  HeadgateManyPoolsDown: {
    courses: {
      ...one('headgate_operating_status', 0, 30, 'kind="pool",status="ERROR"'),
      ...one('headgate_operating_status', 70, 40, 'kind="pool",status="ONLINE"'),
    },
    fires: 2,
    ends: 0,
  },
  HeadgateAuthorizerAway: [
    // No member: questions get 503.
    { courses: questions({ members: 0, errors: 60 }), fires: 1, ends: 2 },
    // It hangs, or answers 500; HAProxy has asked three times.
    { courses: questions({ errors: 0 }), fires: 1, ends: 2 },
    // All members are dead but ready.
    { courses: questions({ errors: 60, redispatches: 180 }), fires: 1, ends: 2 },
  ],
  HeadgatePoolDown: [
    // Mode tcp, scaled to zero: the kernel refuses, and nothing is counted. A second port, and a route to the same Service.
    {
      courses: {
        ...pool({ members: 0, listener: 0, connections: 0 }),
        ...pool({ members: 0, listener: 0, connections: 0 }, port(443)),
        ...pool({ members: 0, connections: 60, errors: 60 }, port(80, ',owner="pool"')),
      },
      fires: 2,
      ends: 0,
    },
    { courses: pool({ members: 0, listener: 0, connections: 0 }), begins: 70, lasts: 200, fires: 2, ends: 0 },
    // Mode http: HAProxy answers 503.
    { courses: pool({ members: 0, errors: 60, fives: 120 }), fires: 2, ends: 0 },
    // All fail their monitor, and do not accept either.
    { courses: pool({ members: 0, errors: 60, redispatches: 180, down: 1 }), fires: 2, ends: 0 },
  ],
  // Nobody has a health monitor: the members count as active.
  HeadgateNotServed: [
    // The kernel path: the rules are gone, and so are their counters.
    { courses: unserved(''), fires: 2, ends: 0 },
    { courses: unserved(',owner="gateway"'), begins: 70, lasts: 200, fires: 2, ends: 0 },
  ],
  HeadgateMembersFail: [
    { courses: pool({ errors: 60, redispatches: 180 }), fires: 3, ends: 0 },
    { courses: pool({ errors: 60, redispatches: 180, fives: 120 }), fires: 3, ends: 0 },
  ],
  HeadgateMembersDown: { courses: pool({ members: 0, down: 1 }), fires: 2, ends: 0 },
  HeadgatePoolQueue: { courses: one('headgate_pool_queue', 0, 3, WEB), fires: 5, ends: 0 },
  HeadgateListenerFull: {
    courses: {
      ...one('headgate_listener_open_connections', 20, 95, WEB),
      ...one('headgate_listener_connection_limit', 100, 100, WEB),
    },
    fires: 5,
    ends: 0,
  },
  // Four of five members are dead: some clients meet four of them in a row.
  HeadgateConnectErrors: [
    { courses: pool({ errors: 12, redispatches: 100 }), fires: 6, ends: 3 },
    // In mode http they get 503, too.
    { courses: pool({ errors: 12, redispatches: 100, fives: 24 }), fires: 6, ends: 3 },
  ],
  // One of three members is dead.
  HeadgateRedispatches: { courses: pool({ redispatches: 20 }), fires: 5, ends: 4 },
  HeadgateConnectSlow: {
    courses: {
      ...one('headgate_pool_connect_time_average_seconds', 0.001, 0.2, WEB),
      ...count('headgate_pool_sessions_total', WEB, 60, 60),
    },
    lasts: 15,
    fires: 10,
    ends: 0,
  },
  HeadgateHttpErrors: { courses: pool({ fives: 30 }), fires: 6, ends: 3 },
  HeadgateRouteErrors: {
    courses: {
      ...count('headgate_route_http_responses_total', `${ROUTE},code="5xx"`, 120),
      ...count('headgate_route_http_responses_total', `${ROUTE},code="2xx"`, 0, 120),
    },
    fires: 5,
    ends: 4,
  },
  HeadgateTlsHandshakeFailures: {
    courses: {
      ...count('headgate_listener_tls_handshake_failures_total', WEB, 300),
      ...count('headgate_listener_connections_total', WEB, 400, 400),
    },
    lasts: 15,
    fires: 11,
    ends: 3,
  },
  HeadgateHaproxyBusy: {
    courses: one('headgate_haproxy_idle_ratio', 0.6, 0.02),
    lasts: 15,
    fires: 10,
    ends: 0,
  },
  HeadgateStatisticsMissing: {
    courses: { ...one('headgate_haproxy_statistics_up', 1, 0), ...one('headgate_haproxy_serving', 1, 1) },
    fires: 5,
    ends: 0,
  },
  HeadgateNoMaster: {
    courses: { ...vrrp('a', 'master', 'backup'), ...vrrp('b', 'backup', 'backup') },
    fires: 1,
    ends: 0,
  },
  // Both hosts report it, too.
  HeadgateTwoMasters: {
    courses: {
      ...vrrp('a', 'master', 'master'),
      ...vrrp('b', 'backup', 'master'),
      ...one('headgate_pair_two_masters', 0, 1, PEER),
      [on('b', 'headgate_pair_two_masters', 'peer="192.0.2.1"')]: gauge(0, 1),
      [on('b', 'headgate_vrrp_rival', 'vrrp_instance="vrrp-51"')]: gauge(0, 1),
    },
    fires: 1,
    ends: 0,
  },
  HeadgateVrrpFault: {
    courses: {
      ...vrrp('a', 'backup', 'fault'),
      ...vrrp('b', 'master', 'master'),
      ...one('headgate_keepalived_fault', 0, 1),
    },
    fires: 2,
    ends: 0,
  },
  HeadgateVipNotAnnounced: {
    courses: one('headgate_bgp_vip_routers', 2, 0, 'vip="198.51.100.1"'),
    fires: 1,
    ends: 0,
  },
  HeadgateBgpNoSession: {
    courses: one('bird_protocol_up', 1, 0, 'proto="BGP",name="tor-a",ip_version="4"'),
    fires: 1,
    ends: 0,
  },
  HeadgateBgpSessionDown: {
    courses: {
      ...one('bird_protocol_up', 1, 0, 'proto="BGP",name="tor-a",ip_version="4"'),
      ...one('bird_protocol_up', 1, 1, 'proto="BGP",name="tor-b",ip_version="4"'),
    },
    fires: 2,
    ends: 0,
  },
  HeadgateBgpFlapping: {
    courses: count('headgate_bgp_session_losses_total', 'name="tor-a"', 1),
    fires: 3,
    ends: 11,
  },
  HeadgateHostMissing: { courses: one('headgate_host_up', 1, 0, 'host="lb2"'), fires: 1, ends: 0 },
  HeadgatePassingLimited: {
    courses: count('headgate_passing_limited_total', '', 500),
    fires: 2,
    ends: 2,
  },
  HeadgateBgpRoutesRefused: {
    courses: one('headgate_problems', 0, 1, 'reason="BgpRoutesHeldBack"'),
    lasts: 15,
    fires: 5,
    ends: 5,
  },
  HeadgateKeepalivedFault: {
    courses: { ...vrrp('a', 'master', 'master'), ...one('headgate_keepalived_fault', 0, 1) },
    fires: 5,
    ends: 0,
  },
  HeadgateFrequentFailovers: {
    courses: count('headgate_vrrp_transitions_total', 'vrrp_instance="vrrp-51",state="master"', 1),
    begins: 40,
    fires: 3,
    ends: 26,
  },
  HeadgatePeerLost: { courses: pair({ heard: 0, ready: 0, same: 0 }), fires: 2, ends: 0 },
  // Another model is also another state that HAProxy serves.
  HeadgatePeerBehind: { courses: pair({ heard: 1, ready: 0, same: 0 }), fires: 5, ends: 0 },
  HeadgatePeerNotReady: { courses: pair({ heard: 1, ready: 0, same: 1 }), lasts: 20, fires: 15, ends: 0 },
  HeadgateHostLowered: {
    courses: one('headgate_standing_lowered', 0, 1, 'reason="haproxy"'),
    fires: 5,
    ends: 0,
  },
  HeadgateMaintenanceForgotten: {
    courses: one('headgate_maintenance', 0, 1, PEER),
    lasts: 260,
    fires: 240,
    ends: 0,
  },
  HeadgateCertificateExpiring: {
    // promtool's clock begins at 0.
    courses: one('headgate_pair_credentials_expiry_timestamp_seconds', 30 * 86_400, 5 * 86_400, PEER),
    lasts: 90,
    fires: 60,
    ends: 0,
  },
  HeadgateReloadFailing: {
    courses: {
      ...count('headgate_haproxy_reloads_total', 'reason="repair",result="failed"', 1),
      ...count('headgate_haproxy_reloads_total', 'reason="settings",result="failed"', 1),
    },
    fires: 2,
    ends: 7,
  },
  HeadgateReloadOverdue: { courses: one('headgate_haproxy_reload_due', 0, 1), lasts: 15, fires: 10, ends: 0 },
  HeadgateKeepalivedReloadFailing: {
    courses: count('headgate_keepalived_reloads_total', 'result="failed"', 1),
    fires: 0,
    ends: 14,
  },
  HeadgateProcessLost: {
    courses: count('headgate_repairs_total', 'what="process"', 1),
    fires: 0,
    ends: 14,
  },
  HeadgateDrift: {
    courses: count('headgate_repairs_total', 'what="audit"', 1),
    begins: 70,
    fires: 3,
    ends: 56,
  },
  HeadgateLoadBalancerRejected: {
    courses: one('headgate_problems', 0, 1, 'reason="ConfigurationRejected"'),
    fires: 2,
    ends: 0,
  },
  HeadgateAddressUnavailable: {
    courses: one('headgate_problems', 0, 1, 'reason="AddressUnavailable"'),
    fires: 2,
    ends: 0,
  },
  HeadgateAddressConflict: {
    courses: one('headgate_problems', 0, 1, 'reason="AddressConflict"'),
    fires: 1,
    ends: 0,
  },
  HeadgateCertificateExpired: { courses: { [EXPIRY]: gauge(30 * 86_400, 60) }, fires: 1, ends: 0 },
  HeadgateCertificateExpires: {
    courses: { [EXPIRY]: gauge(30 * 86_400, 6 * 86_400) },
    lasts: 15,
    fires: 10,
    ends: 0,
  },
  HeadgateStateNotPersisted: { courses: one('headgate_state_persisted', 1, 0), fires: 2, ends: 0 },
  // The API server is away: one alert, whatever the number of kinds.
  HeadgateApiDisconnected: {
    courses: { ...apiAway, ...one('headgate_leader', 1, 0, LEASE), ...one('headgate_cluster_lost', 0, 0) },
    fires: 5,
    ends: 0,
  },
  HeadgateClusterLost: {
    courses: { ...apiAway, ...one('headgate_cluster_lost', 0, 1) },
    fires: 0,
    ends: 0,
  },
  HeadgateNoLeader: {
    courses: {
      ...one('headgate_leader', 1, 0, LEASE),
      ...one('headgate_api_connected', 1, 1, 'kind="Service"'),
    },
    fires: 5,
    ends: 0,
  },
  HeadgateWritesFailing: {
    courses: count('headgate_status_writes_total', 'result="failed"', 2),
    fires: 2,
    ends: 12,
  },
  HeadgateAddressPoolExhausted: {
    courses: one('headgate_address_pool_addresses', 1, 0, 'pool="public",family="v4",state="free"'),
    fires: 5,
    ends: 0,
  },
  HeadgateClaimsUnkept: { courses: one('headgate_unkept_claims', 0, 2), fires: 5, ends: 0 },
  HeadgateProvisionerStuck: {
    courses: one('headgate_provisioner_pending', 0, 2),
    lasts: 15,
    fires: 10,
    ends: 0,
  },
  HeadgateObjectProblems: {
    courses: one('headgate_problems', 0, 2, 'reason="InvalidFile"'),
    lasts: 90,
    fires: 60,
    ends: 0,
  },
  HeadgateNoAgent: { courses: one('up', 1, 0), lasts: 4, fires: 2, ends: 0 },
  HeadgateAgentDown: {
    courses: { ...one('up', 1, 0), [on('b', 'up')]: gauge(1, 1) },
    fires: 5,
    ends: 0,
  },
  HeadgateAgentRestarting: {
    // A start in each minute of the outage.
    courses: { [a('headgate_process_start_time_seconds')]: counter(0, 60) },
    begins: 40,
    fires: 2,
    ends: 27,
  },
  HeadgateProgrammingFastBurn: { courses: programming(100), begins: 230, lasts: 12, fires: 8, ends: 4 },
  HeadgateProgrammingSlowBurn: { courses: programming(10), begins: 60, lasts: 120, fires: 89, ends: 12 },
  HeadgateChangesStuck: { courses: one('headgate_waiting_changes', 0, 4), fires: 5, ends: 0 },
  HeadgateEventLoopLag: {
    courses: one('headgate_nodejs_eventloop_lag_p99_seconds', 0.01, 0.3),
    lasts: 15,
    fires: 10,
    ends: 0,
  },
  HeadgateScrapeSlow: { courses: one('scrape_duration_seconds', 0.1, 7), lasts: 15, fires: 10, ends: 0 },
};
