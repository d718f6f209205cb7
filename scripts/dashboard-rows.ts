// The rows and panels of the Grafana dashboard. Values only.

import type { DashboardPanel, DashboardRow } from './dashboard-panel.ts';

const HOST = 'cluster=~"$cluster",instance=~"$instance"';
const OF = `${HOST},namespace=~"$namespace",service=~"$service"`;
/** Routes have no label for a Service. */
const OF_ROUTES = `${HOST},namespace=~"$namespace"`;
const RATE = '[$__rate_interval]';
const BY = 'namespace, service';
const SERVICE = '{{namespace}}/{{service}}';

const stat = (
  title: string,
  description: string,
  unit: string,
  expr: string,
  colors: NonNullable<DashboardPanel['colors']> = [['green', null]],
  legend = '',
): DashboardPanel => ({ title, description, kind: 'stat', unit, targets: { [legend]: expr }, colors });
const graph = (
  title: string,
  description: string,
  unit: string,
  targets: DashboardPanel['targets'],
): DashboardPanel => ({ title, description, kind: 'graph', unit, targets });

/** 1 is good, 0 is bad. */
const oneIsGood = [
  ['red', null],
  ['green', 1],
] as const;
/** 0 is good, any other value is bad. */
const zeroIsGood = [
  ['green', null],
  ['red', 1],
] as const;

const ratesBy = (name: string, by: string): string => `sum by (${by}) (rate(${name}{${OF}}${RATE}))`;
const ofHost = (name: string): string => `${name}{${HOST}}`;
const rateOfHost = (name: string, by: string): string => `sum by (${by}) (rate(${name}{${HOST}}${RATE}))`;
const quantile = (q: number, name: string, by = 'le'): string =>
  `histogram_quantile(${q}, sum by (${by}) (rate(${name}_bucket{${HOST}}${RATE})))`;

export const rows: readonly DashboardRow[] = [
  {
    title: 'Overview',
    panels: [
      stat(
        'Agents',
        'Agents that Prometheus can scrape.',
        'short',
        `sum(up{job="headgate",${HOST}})`,
        oneIsGood,
      ),
      stat(
        'HAProxy serves',
        '1 while HAProxy answers on every host.',
        'short',
        `min(${ofHost('headgate_haproxy_serving')})`,
        oneIsGood,
      ),
      stat(
        'Alerts',
        'Firing alerts of Headgate.',
        'short',
        'count(ALERTS{alertname=~"Headgate.*",alertstate="firing",cluster=~"$cluster"}) or vector(0)',
        zeroIsGood,
      ),
      stat(
        'Load balancers',
        'Served Services, on the host with the most.',
        'short',
        `max(${ofHost('headgate_load_balancers')})`,
      ),
      stat(
        'Problems',
        'Problems that authors of objects must fix.',
        'short',
        `sum(max by (reason) (${ofHost('headgate_problems')}))`,
        [
          ['green', null],
          ['yellow', 1],
        ],
      ),
      stat(
        'Peer ready',
        '1 while every peer can take over without loss.',
        'short',
        `min(${ofHost('headgate_pair_peer_ready')})`,
        oneIsGood,
      ),
      graph('New connections', 'Per second, by host.', 'cps', {
        '{{instance}}': rateOfHost('headgate_haproxy_connections_total', 'instance'),
      }),
      graph('Open connections', 'Of clients, by host, and the limit of HAProxy.', 'short', {
        '{{instance}}': ofHost('headgate_haproxy_open_connections'),
        '{{instance}} limit': ofHost('headgate_haproxy_connection_limit'),
      }),
      graph(
        'Operating status of load balancers',
        'Number in each status, on the host with the most.',
        'short',
        {
          '{{status}}': `max by (status) (headgate_operating_status{${HOST},kind="load_balancer"})`,
        },
      ),
    ],
  },
  {
    title: 'Forwarding path',
    panels: [
      graph('New connections', 'Per second, by Service.', 'cps', {
        [SERVICE]: ratesBy('headgate_listener_connections_total', BY),
      }),
      graph('Open connections', 'By Service.', 'short', {
        [SERVICE]: `sum by (${BY}) (headgate_listener_open_connections{${OF}})`,
      }),
      graph('Bytes', 'Per second, by Service, from and to clients.', 'Bps', {
        [`${SERVICE} to clients`]: ratesBy('headgate_listener_sent_bytes_total', BY),
        [`${SERVICE} from clients`]: ratesBy('headgate_listener_received_bytes_total', BY),
      }),
      graph('HTTP responses', 'Per second, by status code, of Services in http mode.', 'reqps', {
        '{{code}}': ratesBy('headgate_listener_http_responses_total', 'code'),
      }),
      graph('Share of 5xx', 'Of HTTP responses, by Service in http mode.', 'percentunit', {
        [SERVICE]: `sum by (${BY}) (rate(headgate_listener_http_responses_total{${OF},code="5xx"}${RATE})) / sum by (${BY}) (rate(headgate_listener_http_responses_total{${OF}}${RATE}))`,
      }),
      graph(
        'Share of 5xx by route',
        'Of HTTP responses, the worst routes; only with the setting routeMetrics.',
        'percentunit',
        {
          '{{kind}} {{namespace}}/{{route}}': `topk(10, sum by (kind, namespace, route) (rate(headgate_route_http_responses_total{${OF_ROUTES},code="5xx"}${RATE})) / sum by (kind, namespace, route) (rate(headgate_route_http_responses_total{${OF_ROUTES}}${RATE})))`,
        },
      ),
      graph(
        'Requests by route',
        'Per second, the busiest routes; only with the setting routeMetrics.',
        'reqps',
        {
          '{{kind}} {{namespace}}/{{route}}': `topk(10, sum by (kind, namespace, route) (rate(headgate_route_http_responses_total{${OF_ROUTES}}${RATE})))`,
        },
      ),
      graph('Failed TLS handshakes', 'Per second, by Service; also connections without any data.', 'cps', {
        [SERVICE]: ratesBy('headgate_listener_tls_handshake_failures_total', BY),
      }),
      graph('Denied connections', 'Per second, by source ranges and rate limits, by Service.', 'cps', {
        [SERVICE]: ratesBy('headgate_listener_denied_connections_total', BY),
      }),
      graph(
        'Refused',
        'Per second, by check of listeners with routes; `headgate why URL` explains each.',
        'reqps',
        {
          [`${SERVICE} {{check}}`]: `${ratesBy('headgate_listener_refusals_total', `${BY}, check`)} > 0`,
        },
      ),
      graph(
        'Answers of authorization servers',
        'Per second, by class: 5xx is also no answer, and clients get 503.',
        'reqps',
        {
          [`${SERVICE} {{code}}`]: `sum by (${BY}, code) (rate(headgate_pool_http_responses_total{${OF},profile=~".*asked.*"}${RATE})) > 0`,
        },
      ),
      graph('Time of authorization servers', 'To the answer: average of the last 1,024 questions.', 's', {
        [SERVICE]: `max by (${BY}) (headgate_pool_response_time_average_seconds{${OF},profile=~".*asked.*"})`,
      }),
      graph('Busy', 'Share of time in which HAProxy works, by host.', 'percentunit', {
        '{{instance}}': `1 - ${ofHost('headgate_haproxy_idle_ratio')}`,
      }),
      graph(
        'Limits',
        'Share of the connection limit in use, of each host and of its fullest listener.',
        'percentunit',
        {
          '{{instance}}': `${ofHost('headgate_haproxy_open_connections')} / ${ofHost('headgate_haproxy_connection_limit')}`,
          'fullest listener of {{instance}}': `max by (instance) (headgate_listener_open_connections{${OF}} / headgate_listener_connection_limit{${OF}})`,
        },
      ),
      graph("HAProxy's memory", 'In its pools, by host.', 'bytes', {
        '{{instance}}': ofHost('headgate_haproxy_pool_allocated_bytes'),
      }),
    ],
  },
  {
    title: 'Pools and members',
    panels: [
      graph('Operating status of pools', 'Number in each status, on the host with the most.', 'short', {
        '{{status}}': `max by (status) (headgate_operating_status{${HOST},kind="pool"})`,
      }),
      graph('Members that accept connections', 'By Service, on the host with the fewest.', 'short', {
        [SERVICE]: `min by (${BY}) (headgate_pool_active_members{${OF}})`,
      }),
      graph('Queue', 'Connections that wait for a member, by Service.', 'short', {
        [SERVICE]: `sum by (${BY}) (headgate_pool_queue{${OF}})`,
      }),
      graph(
        'Failed connections to members',
        'Per second, by Service; clients do not notice those that were retried or moved to another member.',
        'cps',
        {
          [`${SERVICE} failed`]: ratesBy('headgate_pool_connection_errors_total', BY),
          [`${SERVICE} retried`]: ratesBy('headgate_pool_retries_total', BY),
          [`${SERVICE} moved`]: ratesBy('headgate_pool_redispatches_total', BY),
        },
      ),
      graph('Time to connect', 'Average of the last 1,024 sessions, by Service.', 's', {
        [SERVICE]: `max by (${BY}) (headgate_pool_connect_time_average_seconds{${OF}})`,
      }),
      graph('Time to the response', 'Average of the last 1,024 sessions, by Service in http mode.', 's', {
        [SERVICE]: `max by (${BY}) (headgate_pool_response_time_average_seconds{${OF}})`,
      }),
      graph('Sessions of members', 'Per second, by address.', 'cps', {
        '{{service}} {{address}}': ratesBy('headgate_member_sessions_total', 'service, address'),
      }),
      graph('Failed checks', 'Per second, by member with a health monitor.', 'cps', {
        '{{service}} {{address}}': ratesBy('headgate_member_check_failures_total', 'service, address'),
      }),
      graph('Operating status of members', 'Number in each status, on the host with the most.', 'short', {
        '{{status}}': `max by (status) (headgate_operating_status{${HOST},kind="member"})`,
      }),
      {
        title: 'Load balancers',
        description: 'Each load balancer by its operating status on each host.',
        kind: 'table',
        unit: 'short',
        targets: { '': `headgate_load_balancer_operating_status{${OF}}` },
      },
      {
        title: 'Members',
        description: 'Each member on each host: 1 while it accepts new connections.',
        kind: 'table',
        unit: 'short',
        column: 'up',
        targets: { '': `headgate_member_up{${OF}}` },
      },
    ],
  },
  {
    title: 'Pair',
    panels: [
      graph('Master', '1 on the host that is master of the instance.', 'short', {
        '{{instance}} {{vrrp_instance}}': `headgate_vrrp_state{${HOST},state="master"}`,
      }),
      graph('Priority', 'The priority in force.', 'short', {
        '{{instance}} {{vrrp_instance}}': ofHost('headgate_vrrp_priority'),
      }),
      graph('VIPs', 'VIPs of the instance, by host: the same on both.', 'short', {
        '{{instance}} {{vrrp_instance}}': ofHost('headgate_vrrp_vips'),
      }),
      graph('Advertisements', 'Per second: the master sends, the backup receives.', 'pps', {
        '{{instance}} {{vrrp_instance}} sent': rateOfHost(
          'headgate_vrrp_advertisements_sent_total',
          'instance, vrrp_instance',
        ),
        '{{instance}} {{vrrp_instance}} received': rateOfHost(
          'headgate_vrrp_advertisements_received_total',
          'instance, vrrp_instance',
        ),
      }),
      graph('The peer', '1 while it sends reports, and while it can take over.', 'short', {
        '{{instance}}: {{peer}} sends reports': ofHost('headgate_pair_peer_heard'),
        '{{instance}}: {{peer}} is ready': ofHost('headgate_pair_peer_ready'),
      }),
      graph('Parity', '1 while the peer has the same desired and the same running state.', 'short', {
        '{{instance}} {{of}}': ofHost('headgate_pair_parity'),
      }),
      graph('Lowered', '1 for each reason that lowers a host.', 'short', {
        '{{instance}} {{reason}}': ofHost('headgate_standing_lowered'),
      }),
      graph(
        'Two masters',
        '1 while another master sends advertisements, and the number of instances with two masters by the reports of the agents.',
        'short',
        {
          '{{instance}} {{vrrp_instance}} receives another': ofHost('headgate_vrrp_rival'),
          '{{instance}} and {{peer}}': ofHost('headgate_pair_two_masters'),
        },
      ),
      graph('Certificate', 'Time until the certificate of the pair expires.', 's', {
        '{{instance}}': `${ofHost('headgate_pair_credentials_expiry_timestamp_seconds')} - time()`,
      }),
    ],
  },
  {
    title: 'BGP',
    panels: [
      graph('Sessions', '1 while the session with the router is established.', 'short', {
        '{{instance}} {{name}} IPv{{ip_version}}': ofHost('bird_protocol_up'),
      }),
      graph('BFD', '1 while BFD with the router is up.', 'short', {
        '{{instance}} {{name}}': ofHost('bird_bfd_session_up'),
      }),
      graph('Routes', 'Routes that the router has of the host.', 'short', {
        '{{instance}} {{name}} IPv{{ip_version}}': ofHost('bird_protocol_prefix_export_count'),
      }),
      graph('VIPs by route', 'First, last (other hosts are preferred) or withheld.', 'short', {
        '{{instance}} {{worn}}': ofHost('headgate_bgp_vips'),
      }),
      graph('Sessions lost', 'Established sessions that have ended, per second.', 'short', {
        '{{instance}} {{name}}': rateOfHost('headgate_bgp_session_losses_total', 'instance, name'),
      }),
      graph('Hosts', '1 while the host of the setting hosts answers BFD.', 'short', {
        '{{instance}}: {{host}}': ofHost('headgate_host_up'),
      }),
      graph('VIPs without a router', 'VIPs that the host announces and no router has.', 'short', {
        '{{instance}}': `count by (instance) (${ofHost('headgate_bgp_vip_routers')} == 0)`,
      }),
    ],
  },
  {
    title: 'Reconfiguration latency',
    panels: [
      graph('From the change of pods to traffic', "Kubernetes' network programming latency.", 's', {
        'p50 {{path}}': quantile(0.5, 'headgate_network_programming_duration_seconds', 'le, path'),
        'p99 {{path}}': quantile(0.99, 'headgate_network_programming_duration_seconds', 'le, path'),
      }),
      graph('From the event to the acknowledgement', "The agent's own share, without reloads.", 's', {
        p50: quantile(0.5, 'headgate_ack_duration_seconds'),
        p99: quantile(0.99, 'headgate_ack_duration_seconds'),
      }),
      graph('Plans', 'Per second, by what they need.', 'cps', {
        '{{kind}}': rateOfHost('headgate_plans_total', 'kind'),
      }),
      graph('Reloads', 'Per second, by reason and result.', 'cps', {
        '{{reason}} {{result}}': rateOfHost('headgate_haproxy_reloads_total', 'reason, result'),
      }),
      graph('Runtime commands', 'Per second, by kind.', 'cps', {
        '{{command}}': rateOfHost('headgate_haproxy_commands_total', 'command'),
      }),
      graph('Waiting', 'Changes for the loop, servers to delete, due reloads, old workers.', 'short', {
        '{{instance}} changes': ofHost('headgate_waiting_changes'),
        '{{instance}} servers to delete': ofHost('headgate_haproxy_servers_to_delete'),
        '{{instance}} reload due': ofHost('headgate_haproxy_reload_due'),
        '{{instance}} old workers': ofHost('headgate_haproxy_old_workers'),
      }),
      graph('Repairs', 'Per second, by what was repaired.', 'cps', {
        '{{instance}} {{what}}': rateOfHost('headgate_repairs_total', 'instance, what'),
      }),
      graph('Events', 'Changes of objects per second, by source.', 'cps', {
        '{{source}}': rateOfHost('headgate_events_total', 'source'),
      }),
      graph('State on disk', '1 while the desired state is on disk.', 'short', {
        '{{instance}}': ofHost('headgate_state_persisted'),
      }),
    ],
  },
  {
    title: 'Cluster and addresses',
    panels: [
      graph(
        'The API server',
        '1 while the agent receives changes of the kind; cluster lost: 1 once the cluster may be gone.',
        'short',
        {
          '{{instance}} {{kind}}': ofHost('headgate_api_connected'),
          '{{instance}} cluster lost': ofHost('headgate_cluster_lost'),
        },
      ),
      graph('Leader', '1 on the agent that writes to the cluster.', 'short', {
        '{{instance}}': ofHost('headgate_leader'),
      }),
      graph('Writes of Services', 'Per second, by result.', 'cps', {
        '{{result}}': rateOfHost('headgate_status_writes_total', 'result'),
      }),
      graph('Address pools', 'Addresses by state.', 'short', {
        '{{pool}} {{family}} {{state}}': `max by (pool, family, state) (${ofHost('headgate_address_pool_addresses')})`,
      }),
      graph(
        'Claims and provisioning',
        'Claims not saved yet, and open requests to the provisioner.',
        'short',
        {
          '{{instance}} claims': ofHost('headgate_unkept_claims'),
          '{{instance}} requests': ofHost('headgate_provisioner_pending'),
        },
      ),
      graph('Problems', 'Problems that authors of objects must fix, by reason.', 'short', {
        '{{reason}}': `max by (reason) (${ofHost('headgate_problems')})`,
      }),
    ],
  },
  {
    title: 'The agent itself',
    panels: [
      graph('Processor', 'Share of a core.', 'percentunit', {
        '{{instance}}': rateOfHost('headgate_process_cpu_seconds_total', 'instance'),
      }),
      graph('Memory', 'Resident memory, and the JavaScript heap in it.', 'bytes', {
        '{{instance}} resident': ofHost('headgate_process_resident_memory_bytes'),
        '{{instance}} heap': ofHost('headgate_nodejs_heap_size_used_bytes'),
      }),
      graph('Event loop', 'Delay of a timer that is due once a second.', 's', {
        '{{instance}} p99': ofHost('headgate_nodejs_eventloop_lag_p99_seconds'),
        '{{instance}} max': ofHost('headgate_nodejs_eventloop_lag_max_seconds'),
      }),
      graph('Scrapes', 'Duration, and the age of the metrics of HAProxy.', 's', {
        '{{instance}}': `scrape_duration_seconds{job="headgate",${HOST}}`,
        '{{instance}} age': ofHost('headgate_haproxy_statistics_age_seconds'),
      }),
      graph('Garbage collection', 'Share of time.', 'percentunit', {
        '{{instance}} {{kind}}': rateOfHost('headgate_nodejs_gc_duration_seconds_sum', 'instance, kind'),
      }),
      graph('File descriptors', 'Open descriptors of the agent.', 'short', {
        '{{instance}}': ofHost('headgate_process_open_fds'),
      }),
    ],
  },
];
