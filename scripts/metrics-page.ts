// The tables of docs/metrics.md, made from what /metrics says of each metric: name, type, labels and HELP. Pure.

const END = '<!-- The end of what is written. -->';

/** Which metrics each table has, by its name in the page; a metric stands in the first table that takes it. */
const TABLES: Readonly<Record<string, RegExp>> = {
  'operating status': /_operating_status$|_verdicts?$/,
  listeners: /^headgate_listener_/,
  pools: /^headgate_pool_/,
  members: /^headgate_member_/,
  routes: /^headgate_route_/,
  HAProxy:
    /^headgate_haproxy_(?:statistics|info$|worker|old|threads|idle|open|connection|tasks|run|fds|pool|requests|sent|dropped)/,
  BGP: /^bird_|^headgate_bgp_/,
  VRRP: /^headgate_(?:vrrp|keepalived)_/,
  pair: /^headgate_(?:pair|standing|maintenance$|maintenance_|connection_sync|handover)/,
  process: /^headgate_(?:process|nodejs)_/,
  agent: /^headgate_/,
};

/** The labels of metrics that have no sample in the text, or only sometimes: no garbage need have been collected. */
const LABELS: Readonly<Record<string, readonly string[]>> = {
  headgate_listener_operating_status: ['namespace', 'service', 'port', 'protocol', 'family', 'status'],
  headgate_nodejs_active_requests: ['type'],
  headgate_nodejs_gc_duration_seconds: ['kind'],
};

export interface ServedMetric {
  readonly type: string;
  readonly help: string;
  /** Undefined if there is no sample. */
  readonly labels: readonly string[] | undefined;
}

/** `page`: the document as it is; `metrics`: a text of /metrics with every metric. */
export function metricsPage(page: string, metrics: string): string {
  const rows = rowsByTable(metrics);
  return page.replaceAll(
    new RegExp(
      `(<!-- Written by scripts/write-metrics-docs\\.ts: ([\\w ]+)\\. -->\n)[\\s\\S]*?(${END})`,
      'g',
    ),
    (_, begin: string, table: string, end: string) => {
      const lines = rows.get(table) ?? [];
      return `${begin}\n| name | type | labels | meaning |\n|---|---|---|---|\n${lines.join('\n')}\n\n${end}`;
    },
  );
}

/** Key: the name of a table. */
function rowsByTable(metrics: string): ReadonlyMap<string, readonly string[]> {
  const rows = new Map<string, string[]>();
  for (const [name, { type, help, labels: served = [] }] of servedMetrics(metrics)) {
    const labels = LABELS[name] ?? served;
    const [table] = Object.entries(TABLES).find(([, names]) => names.test(name)) ?? [];
    if (table === undefined) continue;
    const cell = labels.map((label) => `\`${label}\``).join(', ');
    const row = `| \`${name}\` | ${type} | ${cell === '' ? '–' : cell} | ${help.replace(/\.$/, '')}. |`;
    rows.set(table, [...(rows.get(table) ?? []), row]);
  }
  return rows;
}

/** `text`: in Prometheus' text format. Key: the name of a metric. */
export function servedMetrics(text: string): ReadonlyMap<string, ServedMetric> {
  const metrics = new Map<string, ServedMetric>();
  const helps = new Map(
    [...text.matchAll(/^# HELP (\S+) (.*)$/gm)].map(([, name = '', help = '']) => [name, help]),
  );
  let current = '';
  for (const line of text.split('\n')) {
    const [, name = '', type = ''] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    const metric = metrics.get(current);
    if (name !== '') {
      current = name;
      metrics.set(name, { type, help: helps.get(name) ?? '', labels: undefined });
    } else if (metric !== undefined && line.startsWith(current)) {
      const labels = [...line.matchAll(/[{,](\w+)="/g)].map(([, label = '']) => label);
      metrics.set(current, { ...metric, labels: labels.filter((label) => label !== 'le') });
    }
  }
  return metrics;
}
