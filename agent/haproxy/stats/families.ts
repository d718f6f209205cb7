// The metrics of HAProxy: a table of names, types and meanings for listeners, pools, members and routes, and one for the
// process.
// docs/metrics.md is written from them. Pure.
// Why: docs/design/decisions/0028-labels-and-first-rows.md

import type { MetricFamily, MetricPart } from '../../base/metric-family.ts';
import { type Column, infoCounters, positionOf } from './columns.ts';
import { REFUSED } from './refusal-counts.ts';
import type { Series, SeriesKind } from './series.ts';
import type { Sample } from './statistics.ts';

/** NaN if the series has no such sample. */
type Value = (series: Series) => number;

interface Metric {
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly value: Value | readonly (readonly [labels: string, value: Value])[];
  /** Members that HAProxy only checks have no sample. */
  readonly isOfTraffic?: true;
}

const raw = (column: Column): Value => {
  const at = positionOf(column);
  return ({ values }) => values[at] as number;
};
const http = (column: Column): Value => {
  const at = positionOf(column);
  return ({ values, isHttp }) => (isHttp ? (values[at] as number) : Number.NaN);
};
const ofTls = (column: Column): Value => {
  const at = positionOf(column);
  return ({ values, source }) => (source?.tls === undefined ? Number.NaN : (values[at] as number));
};
const checked = (column: Column, divisor = 1): Value => {
  const at = positionOf(column);
  return ({ values, hasCheck }) => (hasCheck ? (values[at] as number) / divisor : Number.NaN);
};
/** HAProxy's average over the last 1,024 sessions is in milliseconds, and 0 before the first session. */
const average = (column: Column): Value => {
  const [at, sessions] = [positionOf(column), positionOf('stot')];
  return ({ values }) => ((values[sessions] as number) > 0 ? (values[at] as number) / 1_000 : Number.NaN);
};
const averageInHttp = (column: Column): Value => {
  const of = average(column);
  return (series) => (series.isHttp ? of(series) : Number.NaN);
};
const sum = (one: Column, other: Column): Value => {
  const [first, second] = [positionOf(one), positionOf(other)];
  return ({ values }) => (values[first] as number) + (values[second] as number);
};
const codes = (['1xx', '2xx', '3xx', '4xx', '5xx', 'other'] as const).map(
  (code) => [`code="${code}"`, http(`hrsp_${code}`)] as const,
);

const refused: Value = ({ values }) => values[REFUSED] as number;

/** HAProxy counts no others of a route. */
const classes = codes.filter(([label]) => label !== 'code="other"');

const counter = (name: string, help: string, value: Metric['value']): Metric => {
  return { name, type: 'counter', help, value };
};
const gauge = (name: string, help: string, value: Metric['value']): Metric => {
  return { name, type: 'gauge', help, value };
};

/** The metrics that listeners, pools and members have in common. */
const common = (
  of: string,
  sessions = `Sessions of the ${of}: connections, or requests in http mode`,
): readonly Metric[] => [
  gauge(
    `headgate_${of}_open_connections`,
    `Open connections of the ${of}, also in replaced workers`,
    raw('scur'),
  ),
  counter(`headgate_${of}_sessions_total`, sessions, raw('stot')),
  counter(`headgate_${of}_received_bytes_total`, `Bytes from clients through the ${of}`, raw('bin')),
  counter(`headgate_${of}_sent_bytes_total`, `Bytes to clients through the ${of}`, raw('bout')),
];

const membersOf = (of: string) => (of === 'member' ? 'the member' : `members of the ${of}`);

const toMembers = (of: string): readonly Metric[] => [
  counter(
    `headgate_${of}_connection_errors_total`,
    of === 'member'
      ? 'Failed connection attempts to the member'
      : `Clients of the ${of} that got no member, after all attempts or because there was none`,
    raw('econ'),
  ),
  counter(`headgate_${of}_response_errors_total`, `Responses that ${membersOf(of)} broke off`, raw('eresp')),
  counter(`headgate_${of}_retries_total`, `Retried connection attempts to ${membersOf(of)}`, raw('wretr')),
  counter(
    `headgate_${of === 'member' ? of : `${of}_member`}_aborts_total`,
    `Transfers that ${membersOf(of)} aborted`,
    raw('srv_abrt'),
  ),
  gauge(
    `headgate_${of}_queue_time_average_seconds`,
    `Average time in the queue of the ${of} over the last 1,024 sessions`,
    average('qtime'),
  ),
  gauge(
    `headgate_${of}_connect_time_average_seconds`,
    `Average time to connect to ${membersOf(of)} over the last 1,024 sessions`,
    average('ctime'),
  ),
  gauge(
    `headgate_${of}_response_time_average_seconds`,
    `Average time to the first byte of the response of ${membersOf(of)} over the last 1,024 sessions; http mode only`,
    averageInHttp('rtime'),
  ),
  gauge(
    `headgate_${of}_session_time_average_seconds`,
    `Average duration of the last 1,024 sessions of the ${of}`,
    average('ttime'),
  ),
  counter(
    `headgate_${of}_http_responses_total`,
    `HTTP responses of the ${of}, by class; http mode only`,
    codes,
  ),
];
/** HAProxy's status of a pool without members is UP. */
const anyActive = (): Value => {
  const active = positionOf('act');
  return ({ values }) => Number((values[active] as number) > 0);
};
/** Only a member with a connection limit has a queue. */
const queue = (): Value => {
  const [limit, waiting] = [positionOf('slim'), positionOf('qcur')];
  return ({ values }) => (Number.isNaN(values[limit]) ? Number.NaN : (values[waiting] as number));
};

const ofTraffic = (...metrics: readonly Metric[]): readonly Metric[] =>
  metrics.map((metric) => ({ ...metric, isOfTraffic: true }));

const seriesMetrics: Readonly<Record<SeriesKind, readonly Metric[]>> = {
  listener: [
    gauge(
      'headgate_listener_up',
      'Whether the listener accepts connections: not without a ready member, unless it answers 503 in http mode',
      ({ status }) => Number(status === 'OPEN'),
    ),
    gauge(
      'headgate_listener_connection_limit',
      'Limit of concurrent connections of the listener',
      raw('slim'),
    ),
    ...common('listener', 'Connections to the listener that were allowed'),
    counter(
      'headgate_listener_connections_total',
      'Connections to the listener, also those that were denied',
      raw('conn_tot'),
    ),
    counter(
      'headgate_listener_denied_connections_total',
      'Connections to the listener that source ranges or the rate limit denied',
      sum('dcon', 'dses'),
    ),
    counter(
      'headgate_listener_tls_handshake_failures_total',
      'Connections to the listener that ended before or in the TLS handshake, also empty ones such as a probe by TCP; of listeners that end TLS only',
      ofTls('ssl_failed_handshake'),
    ),
    counter('headgate_listener_request_errors_total', 'Invalid requests to the listener', raw('ereq')),
    counter(
      'headgate_listener_http_requests_total',
      'HTTP requests to the listener; http mode only',
      http('req_tot'),
    ),
    counter(
      'headgate_listener_http_responses_total',
      'HTTP responses of the listener, by class; http mode only',
      codes,
    ),
  ],
  pool: [
    gauge('headgate_pool_up', 'Whether any member of the pool accepts connections', anyActive()),
    gauge('headgate_pool_active_members', 'Members of the pool that accept connections', raw('act')),
    ...common('pool'),
    gauge('headgate_pool_queue', 'Connections in the queue of the pool', raw('qcur')),
    ...toMembers('pool'),
    counter(
      'headgate_pool_redispatches_total',
      'Connections of the pool moved to another member, because the first one did not accept',
      raw('wredis'),
    ),
    counter(
      'headgate_pool_client_aborts_total',
      'Transfers of the pool that clients aborted',
      raw('cli_abrt'),
    ),
    counter('headgate_pool_downs_total', 'Times that the pool lost its last member', raw('chkdown')),
    counter(
      'headgate_pool_downtime_seconds_total',
      'Time of the pool without an active member',
      raw('downtime'),
    ),
  ],
  member: [
    gauge('headgate_member_up', 'Whether the member accepts new connections', ({ status }) =>
      Number(isUp(status)),
    ),
    gauge(
      'headgate_member_draining',
      'Always 1 for a draining member; others have no sample',
      ({ status }) => (status.startsWith('DRAIN') ? 1 : Number.NaN),
    ),
    gauge('headgate_member_weight', 'Weight of the member in HAProxy', raw('weight')),
    ...ofTraffic(
      ...common('member'),
      gauge('headgate_member_queue', 'Connections in the queue of the member', queue()),
      ...toMembers('member'),
    ),
    gauge(
      'headgate_member_check_passed',
      'Whether the last health check of the member passed',
      // No sample before the worker's first check.
      ({ hasCheck, checkStatus }) =>
        hasCheck && !/^(\* )?(INI|UNK)$/.test(checkStatus)
          ? Number(/^\*? ?L\dOKC?$/.test(checkStatus))
          : Number.NaN,
    ),
    gauge(
      'headgate_member_check_duration_seconds',
      'Duration of the last health check of the member',
      checked('check_duration', 1_000),
    ),
    counter('headgate_member_check_failures_total', 'Failed health checks of the member', checked('chkfail')),
    counter(
      'headgate_member_downs_total',
      'Times that health checks took the member out of service',
      checked('chkdown'),
    ),
    counter(
      'headgate_member_downtime_seconds_total',
      'Time that health checks kept the member out of service',
      checked('downtime'),
    ),
  ],
  route: [
    counter(
      'headgate_route_http_responses_total',
      'HTTP responses to requests of the route, by class',
      classes,
    ),
  ],
  listenerCheck: [
    counter(
      'headgate_listener_refusals_total',
      'Connections and requests that a check of the listener or of its routes refused, by check; of listeners with routes for HTTP',
      refused,
    ),
  ],
  routeCheck: [
    counter('headgate_route_refusals_total', 'Requests that a check of the route refused, by check', refused),
  ],
};

const KINDS = ['listener', 'listenerCheck', 'pool', 'member', 'route', 'routeCheck'] as const;

/** `UP`, `UP 1/3`, `no check`. */
function isUp(status: string): boolean {
  return status.startsWith('UP') || status === 'no check';
}

/** Every metric of HAProxy; without a sample only headgate_haproxy_statistics_up. */
export function haproxyFamilies(sample: Sample | undefined): readonly MetricFamily[] {
  const up = 'Whether the agent could read the statistics of HAProxy';
  const read = one('headgate_haproxy_statistics_up', up, Number(sample !== undefined));
  if (sample === undefined) return [read];
  const families = [read, ...processFamilies(sample)];
  for (const kind of KINDS) {
    const all = sample.series[kind];
    const served = all.filter(({ isServed }) => isServed);
    for (const { name, type, help, value, isOfTraffic } of seriesMetrics[kind]) {
      const rows = isOfTraffic ? served : all;
      if (rows.length === 0) continue;
      const values = typeof value === 'function' ? ([['', value]] as const) : value;
      const parts = values.map(
        ([labels, of]): MetricPart => ({ labels, rows, value: of as MetricPart['value'] }),
      );
      families.push({ name, type, help, parts });
    }
  }
  return families;
}

const MIB = 1024 * 1024;

function processFamilies({
  info,
  process,
  oldWorkers,
  oldConnections,
  seconds,
  age,
}: Sample): readonly MetricFamily[] {
  const total = (name: string, help: string, field: (typeof infoCounters)[number]): MetricFamily =>
    one(name, help, process[infoCounters.indexOf(field)] ?? 0, { type: 'counter' });
  const bytes = (name: string): number => {
    const exact = info.number(`${name}_bytes`);
    return Number.isNaN(exact) ? info.number(`${name}_MB`) * MIB : exact;
  };
  const version = `version="${info.version.text.replaceAll(/[\\"]/g, '')}"`;
  const duration = 'Duration of the last round that read the statistics of HAProxy, with its rests';
  const ageHelp = 'Age of the metrics of listeners, pools and members';
  const sent = 'Bytes that HAProxy has sent to clients and members';
  return [
    one('headgate_haproxy_info', 'Always 1; the version of HAProxy is a label', 1, { labels: version }),
    one('headgate_haproxy_statistics_duration_seconds', duration, seconds),
    one('headgate_haproxy_statistics_age_seconds', ageHelp, age, { isLive: true }),
    one(
      'headgate_haproxy_worker_start_time_seconds',
      'Start time of the active HAProxy worker, since the Unix epoch',
      info.number('Start_time_sec'),
    ),
    one('headgate_haproxy_old_workers', 'Replaced HAProxy workers that have not ended', oldWorkers),
    one(
      'headgate_haproxy_old_worker_connections',
      'Open connections of clients to replaced HAProxy workers',
      oldConnections,
    ),
    one('headgate_haproxy_threads', 'Threads of the active HAProxy worker', info.number('Nbthread')),
    one(
      'headgate_haproxy_idle_ratio',
      'Share of time in which HAProxy is idle, from 0 to 1',
      info.number('Idle_pct') / 100,
    ),
    one(
      'headgate_haproxy_open_connections',
      'Open connections of clients to the active worker',
      info.number('CurrConns'),
    ),
    one(
      'headgate_haproxy_connection_limit',
      'Limit of concurrent connections of HAProxy',
      info.number('Maxconn'),
    ),
    one('headgate_haproxy_tasks', 'Tasks in the active HAProxy worker', info.number('Tasks')),
    one('headgate_haproxy_run_queue', 'Tasks in HAProxy that wait for a thread', info.number('Run_queue')),
    one('headgate_haproxy_fds_limit', 'Limit of open file descriptors of HAProxy', info.number('Ulimit-n')),
    one('headgate_haproxy_pool_allocated_bytes', "Memory allocated by HAProxy's pools", bytes('PoolAlloc')),
    one('headgate_haproxy_pool_used_bytes', "Memory in use in HAProxy's pools", bytes('PoolUsed')),
    total('headgate_haproxy_connections_total', 'Connections that HAProxy has accepted', 'CumConns'),
    total(
      'headgate_haproxy_requests_total',
      'HTTP requests and TCP sessions that HAProxy has handled',
      'CumReq',
    ),
    total('headgate_haproxy_sent_bytes_total', sent, 'TotalBytesOut'),
    total('headgate_haproxy_dropped_logs_total', 'Log messages that HAProxy has lost', 'DroppedLogs'),
  ];
}

const NO_LABELS = [{ labels: '' }];

/** A family with one sample. */
function one(
  name: string,
  help: string,
  value: number | (() => number),
  { type = 'gauge', labels = '', isLive = false }: Partial<MetricFamily & MetricPart> = {},
): MetricFamily {
  const read = typeof value === 'number' ? () => value : value;
  return { name, type, help, parts: [{ labels, rows: NO_LABELS, value: read }], isLive };
}
