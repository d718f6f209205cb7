// The metrics of HAProxy: one table of names, types and meanings for its listeners, pools and members, one for its
// process. docs/metrics.md has the same rows (a test compares). Pure.

import type { MetricFamily, MetricPart } from '../../base/metric-family.ts';
import { type Column, infoCounters, positionOf } from './columns.ts';
import type { Series, SeriesKind } from './series.ts';
import type { Sample } from './statistics.ts';

/** NaN: this series has no such value. */
type Value = (series: Series) => number;

interface Metric {
  readonly name: string;
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly value: Value | readonly (readonly [labels: string, value: Value])[];
}

const raw = (column: Column): Value => {
  const at = positionOf(column);
  return ({ values }) => values[at] as number;
};
const http = (column: Column): Value => {
  const at = positionOf(column);
  return ({ values, isHttp }) => (isHttp ? (values[at] as number) : Number.NaN);
};
const checked = (column: Column, divisor = 1): Value => {
  const at = positionOf(column);
  return ({ values, hasCheck }) => (hasCheck ? (values[at] as number) / divisor : Number.NaN);
};
/** HAProxy's averages over the last 1,024 sessions are in milliseconds, and 0 before the first session. */
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

const counter = (name: string, help: string, value: Metric['value']): Metric => ({
  name,
  type: 'counter',
  help,
  value,
});
const gauge = (name: string, help: string, value: Metric['value']): Metric => ({
  name,
  type: 'gauge',
  help,
  value,
});

/** What listeners, pools and members have in common. */
const common = (
  of: string,
  sessions = 'Sessions: connections, or requests in http mode',
): readonly Metric[] => [
  gauge(`headgate_${of}_open_connections`, 'Connections now', raw('scur')),
  counter(`headgate_${of}_sessions_total`, sessions, raw('stot')),
  counter(`headgate_${of}_received_bytes_total`, 'Bytes from clients', raw('bin')),
  counter(`headgate_${of}_sent_bytes_total`, 'Bytes to clients', raw('bout')),
];

const toMembers = (of: string): readonly Metric[] => [
  counter(
    `headgate_${of}_connection_errors_total`,
    'Connections to a member that could not be made',
    raw('econ'),
  ),
  counter(`headgate_${of}_response_errors_total`, 'Answers of a member that broke off', raw('eresp')),
  counter(`headgate_${of}_retries_total`, 'Connections to a member that were tried again', raw('wretr')),
  counter(`headgate_${of}_member_aborts_total`, 'Transfers that the member broke off', raw('srv_abrt')),
  gauge(
    `headgate_${of}_queue_time_average_seconds`,
    'Time in the queue, of the last 1,024 sessions',
    average('qtime'),
  ),
  gauge(
    `headgate_${of}_connect_time_average_seconds`,
    'Time to connect to the member, of the last 1,024 sessions',
    average('ctime'),
  ),
  gauge(
    `headgate_${of}_response_time_average_seconds`,
    'Time until the answer begins, of the last 1,024 sessions; only in http mode',
    averageInHttp('rtime'),
  ),
  gauge(`headgate_${of}_session_time_average_seconds`, 'Length of the last 1,024 sessions', average('ttime')),
  counter(`headgate_${of}_http_responses_total`, 'Answers in http mode', codes),
];
/** HAProxy's own word for a pool without members is UP. */
const anyActive = (): Value => {
  const active = positionOf('act');
  return ({ values }) => Number((values[active] as number) > 0);
};
/** Only a member with a limit has a queue. */
const queue = (): Value => {
  const [limit, waiting] = [positionOf('slim'), positionOf('qcur')];
  return ({ values }) => (Number.isNaN(values[limit]) ? Number.NaN : (values[waiting] as number));
};

const seriesMetrics: Readonly<Record<SeriesKind, readonly Metric[]>> = {
  listener: [
    gauge('headgate_listener_up', 'Whether it takes connections', ({ status }) => Number(status === 'OPEN')),
    gauge('headgate_listener_connection_limit', 'How many connections it takes', raw('slim')),
    ...common('listener', 'Connections that were let in'),
    counter('headgate_listener_connections_total', 'Connections', raw('conn_tot')),
    counter(
      'headgate_listener_denied_connections_total',
      'Connections that source ranges or the rate limit refused',
      sum('dcon', 'dses'),
    ),
    counter('headgate_listener_request_errors_total', 'Requests that could not be read', raw('ereq')),
    counter('headgate_listener_http_requests_total', 'Requests in http mode', http('req_tot')),
    counter('headgate_listener_http_responses_total', 'Answers in http mode', codes),
  ],
  pool: [
    gauge('headgate_pool_up', 'Whether a member takes connections', anyActive()),
    gauge('headgate_pool_active_members', 'Members that take connections', raw('act')),
    ...common('pool'),
    gauge('headgate_pool_queue', 'Connections that wait for a member', raw('qcur')),
    ...toMembers('pool'),
    counter('headgate_pool_redispatches_total', 'Connections that went to another member', raw('wredis')),
    counter('headgate_pool_client_aborts_total', 'Transfers that the client broke off', raw('cli_abrt')),
    counter('headgate_pool_downs_total', 'How often it had no member left', raw('chkdown')),
    counter('headgate_pool_downtime_seconds_total', 'Time without a member', raw('downtime')),
  ],
  member: [
    gauge('headgate_member_up', 'Whether it takes new connections', ({ status }) => Number(isUp(status))),
    gauge('headgate_member_draining', 'It only keeps the connections it has', ({ status }) =>
      status.startsWith('DRAIN') ? 1 : Number.NaN,
    ),
    gauge('headgate_member_weight', 'Its weight', raw('weight')),
    ...common('member'),
    gauge('headgate_member_queue', 'Connections that wait for it', queue()),
    ...toMembers('member'),
    gauge(
      'headgate_member_check_passed',
      'Whether its last health check was passed',
      // Before the first one, which each worker begins with, there is nothing to say.
      ({ hasCheck, checkStatus }) =>
        hasCheck && !/^(\* )?(INI|UNK)$/.test(checkStatus)
          ? Number(/^\*? ?L\dOKC?$/.test(checkStatus))
          : Number.NaN,
    ),
    gauge(
      'headgate_member_check_duration_seconds',
      'Of its last health check',
      checked('check_duration', 1_000),
    ),
    counter('headgate_member_check_failures_total', 'Health checks that failed', checked('chkfail')),
    counter('headgate_member_downs_total', 'How often checks took it out of service', checked('chkdown')),
    counter('headgate_member_downtime_seconds_total', 'Time out of service', checked('downtime')),
  ],
};

/** `UP`, `UP 1/3`, `no check`. */
function isUp(status: string): boolean {
  return status.startsWith('UP') || status === 'no check';
}

/** Every metric of HAProxy; without a sample only that there is none. */
export function haproxyFamilies(sample: Sample | undefined): readonly MetricFamily[] {
  const read = one(
    'headgate_haproxy_statistics_up',
    'Whether the statistics of HAProxy could be read',
    Number(sample !== undefined),
  );
  if (sample === undefined) return [read];
  const families = [read, ...processFamilies(sample)];
  for (const kind of ['listener', 'pool', 'member'] as const) {
    const rows = sample.series[kind];
    if (rows.length === 0) continue;
    for (const { name, type, help, value } of seriesMetrics[kind]) {
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

function processFamilies({ info, process, oldWorkers, seconds, age }: Sample): readonly MetricFamily[] {
  const total = (name: (typeof infoCounters)[number]): number => process[infoCounters.indexOf(name)] ?? 0;
  const bytes = (name: string): number => {
    const exact = info.number(`${name}_bytes`);
    return Number.isNaN(exact) ? info.number(`${name}_MB`) * MIB : exact;
  };
  return [
    {
      name: 'headgate_haproxy_info',
      type: 'gauge',
      help: 'Always 1; the version is a label',
      parts: [
        { labels: `version="${info.version.text.replaceAll(/[\\"]/g, '')}"`, rows: NOTHING, value: () => 1 },
      ],
    },
    one('headgate_haproxy_statistics_duration_seconds', 'Time to read the statistics', seconds),
    {
      name: 'headgate_haproxy_statistics_age_seconds',
      type: 'gauge',
      help: 'How old the numbers of listeners, pools and members are',
      parts: [{ labels: '', rows: NOTHING, value: age }],
      isLive: true,
    },
    one(
      'headgate_haproxy_worker_start_time_seconds',
      'When the worker started',
      info.number('Start_time_sec'),
    ),
    one('headgate_haproxy_old_workers', 'Replaced workers whose last connections are followed', oldWorkers),
    one('headgate_haproxy_threads', 'Threads', info.number('Nbthread')),
    one(
      'headgate_haproxy_idle_ratio',
      'Share of time without work, from 0 to 1',
      info.number('Idle_pct') / 100,
    ),
    one('headgate_haproxy_open_connections', 'Connections of clients now', info.number('CurrConns')),
    one('headgate_haproxy_connection_limit', 'How many connections it takes', info.number('Maxconn')),
    one('headgate_haproxy_tasks', 'Tasks', info.number('Tasks')),
    one('headgate_haproxy_run_queue', 'Tasks that wait for a thread', info.number('Run_queue')),
    one('headgate_haproxy_fds_limit', 'How many file descriptors it may have', info.number('Ulimit-n')),
    one('headgate_haproxy_pool_allocated_bytes', "Memory in HAProxy's pools", bytes('PoolAlloc')),
    one('headgate_haproxy_pool_used_bytes', 'The part of it in use', bytes('PoolUsed')),
    one('headgate_haproxy_connections_total', 'Connections', total('CumConns'), 'counter'),
    one('headgate_haproxy_requests_total', 'Requests and TCP sessions', total('CumReq'), 'counter'),
    one(
      'headgate_haproxy_sent_bytes_total',
      'Bytes sent to clients and members',
      total('TotalBytesOut'),
      'counter',
    ),
    one(
      'headgate_haproxy_dropped_logs_total',
      'Log messages that were lost',
      total('DroppedLogs'),
      'counter',
    ),
  ];
}

const NOTHING = [{ labels: '' }];

function one(name: string, help: string, value: number, type: MetricFamily['type'] = 'gauge'): MetricFamily {
  return { name, type, help, parts: [{ labels: '', rows: NOTHING, value: () => value }] };
}
