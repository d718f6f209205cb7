// Which of HAProxy's metrics Octavia's amphorae show, by the names after `haproxy_KIND_`, and the texts that differ. The words
// are those of Octavia's prometheus_proxy.py, mistakes included, because dashboards rely on them.

export type MetricKind = 'process' | 'frontend' | 'backend' | 'server';

export const SHOWN: Readonly<Record<MetricKind, ReadonlySet<string>>> = {
  process: words(`
    pool_allocated_bytes pool_used_bytes pool_failures_total max_connections current_connections
    connections_total requests_total max_ssl_connections current_ssl_connections ssl_connections_total
    current_connection_rate limit_connection_rate max_connection_rate current_session_rate
    limit_session_rate max_session_rate current_ssl_rate limit_ssl_rate max_ssl_rate
    current_frontend_ssl_key_rate max_frontend_ssl_key_rate frontent_ssl_reuse
    current_backend_ssl_key_rate max_backend_ssl_key_rate ssl_cache_lookups_total ssl_cache_misses_total
    http_comp_bytes_in_total http_comp_bytes_out_total limit_http_comp listeners dropped_logs_total
  `),
  frontend: words(`
    status current_sessions max_sessions limit_sessions sessions_total limit_session_rate max_session_rate
    connections_rate_max connections_total bytes_in_total bytes_out_total requests_denied_total
    responses_denied_total request_errors_total denied_connections_total denied_sessions_total
    failed_header_rewriting_total http_requests_rate_max http_requests_total http_responses_total
    intercepted_requests_total http_cache_lookups_total http_cache_hits_total http_comp_bytes_in_total
    http_comp_bytes_out_total http_comp_bytes_bypassed_total http_comp_responses_total
  `),
  backend: words(`
    status current_sessions max_sessions limit_sessions sessions_total max_session_rate
    last_session_seconds current_queue max_queue connection_attempts_total connection_reuses_total
    bytes_in_total bytes_out_total queue_time_average_seconds connect_time_average_seconds
    response_time_average_seconds total_time_average_seconds max_queue_time_seconds
    max_connect_time_seconds max_response_time_seconds max_total_time_seconds requests_denied_total
    responses_denied_total connection_errors_total response_errors_total retry_warnings_total
    redispatch_warnings_total failed_header_rewriting_total client_aborts_total server_aborts_total
    active_servers backup_servers check_up_down_total check_last_change_seconds downtime_seconds_total
    loadbalanced_total http_requests_total http_responses_total http_cache_lookups_total
    http_cache_hits_total http_comp_bytes_in_total http_comp_bytes_out_total
    http_comp_bytes_bypassed_total http_comp_responses_total
  `),
  server: words(`
    status current_sessions max_sessions limit_sessions sessions_total max_session_rate
    last_session_seconds current_queue max_queue queue_limit bytes_in_total bytes_out_total
    queue_time_average_seconds connect_time_average_seconds response_time_average_seconds
    total_time_average_seconds max_queue_time_seconds max_connect_time_seconds max_response_time_seconds
    max_total_time_seconds connection_attempts_total connection_reuses_total responses_denied_total
    connection_errors_total response_errors_total retry_warnings_total redispatch_warnings_total
    failed_header_rewriting_total client_aborts_total server_aborts_total weight check_failures_total
    check_up_down_total downtime_seconds_total check_last_change_seconds current_throttle
    loadbalanced_total http_responses_total server_idle_connections_current server_idle_connections_limit
  `),
};

/** Names that are not HAProxy's with another word for the kind. */
export const RENAMED: ReadonlyMap<string, string> = new Map([
  ['backend_server_aborts_total', 'pool_member_aborts_total'],
  ['backend_active_servers', 'pool_active_members'],
  ['backend_backup_servers', 'pool_backup_members'],
  ['server_server_idle_connections_current', 'member_idle_connections_current'],
  ['server_server_idle_connections_limit', 'member_idle_connections_limit'],
]);

/** HELP texts instead of HAProxy's, by name. */
export const HELP: ReadonlyMap<string, string> = new Map([
  ['process_pool_allocated_bytes', 'Total amount of memory allocated in the memory pools (in bytes).'],
  ['process_pool_used_bytes', 'Total amount of memory used in the memory pools (in bytes).'],
  ['process_pool_failures_total', 'Total number of failed memory pool allocations.'],
  ['process_current_ssl_connections', 'Number of active SSL connections.'],
  ['frontend_status', 'Current status of the listener. 0=OFFLINE, 1=ONLINE, 2=DEGRADED.'],
  ['frontend_denied_connections_total', 'Total number of requests denied by connection rules.'],
  ['frontend_denied_sessions_total', 'Total number of requests denied by session rules.'],
  ['frontend_failed_header_rewriting_total', 'Total number of failed header rewriting rules.'],
  ['backend_status', 'Current status of the pool. 0=OFFLINE, 1=ONLINE.'],
  ['backend_last_session_seconds', 'Number of seconds since last session assigned to a member.'],
  ['backend_max_response_time_seconds', 'Maximum observed time spent waiting for a member response.'],
  ['backend_server_aborts_total', 'Total number of data transfers aborted by the server.'],
  ['backend_active_servers', 'Current number of active members.'],
  ['backend_backup_servers', 'Current number of backup members.'],
  ['backend_downtime_seconds_total', 'Total downtime (in seconds) for the pool.'],
  [
    'backend_loadbalanced_total',
    'Total number of times a pool was selected, either for new sessions, or when redispatching.',
  ],
  ['server_status', 'Current status of the member. 0=ERROR, 1=ONLINE, 2=OFFLINE, 3=DRAIN.'],
  ['server_last_session_seconds', 'Number of seconds since last session assigned to the member.'],
  ['server_queue_limit', 'Configured maxqueue for the member (0 meaning no limit).'],
  ['server_max_response_time_seconds', 'Maximum observed time spent waiting for a member response.'],
  ['server_weight', 'Member weight.'],
  [
    'server_check_failures_total',
    'Total number of failed check (Only counts checks failed when the member is up).',
  ],
  ['server_downtime_seconds_total', 'Total downtime (in seconds) for the member.'],
  [
    'server_current_throttle',
    'Current throttle percentage for the member, when slowstart is active, or no value if not in slowstart.',
  ],
  [
    'server_loadbalanced_total',
    'Total number of times a member was selected, either for new sessions, or when redispatching.',
  ],
]);

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}
