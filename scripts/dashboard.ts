// The Grafana dashboard: places the panels of dashboard-rows.ts, and returns the JSON that Grafana imports. Pure.
// https://grafana.com/docs/grafana/latest/visualizations/dashboards/build-dashboards/view-dashboard-json-model/

import type { DashboardPanel } from './dashboard-panel.ts';
import { rows } from './dashboard-rows.ts';

/** The version of the current Grafana, which accepts older versions, too; older Grafana accepts this version. */
const SCHEMA_VERSION = 42;
const DATASOURCE = { type: 'prometheus', uid: '$datasource' };
const COLUMNS = 24;
const SIZES = { stat: [4, 4], graph: [8, 8], table: [24, 9] } as const;

/** The text of deploy/grafana/headgate.json. */
export function dashboardJson(): string {
  return `${JSON.stringify(dashboard(), undefined, 2)}\n`;
}

function dashboard(): object {
  return {
    uid: 'headgate',
    title: 'Headgate',
    description:
      'Load balancers by Headgate: the forwarding path, pools, the pair, and how fast changes become traffic.',
    tags: ['headgate', 'load-balancer'],
    schemaVersion: SCHEMA_VERSION,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    timezone: 'browser',
    time: { from: 'now-3h', to: 'now' },
    timepicker: {},
    links: [],
    annotations: { list: [failovers()] },
    templating: { list: variables() },
    panels: placed(),
  };
}

/**
 * A mark in every graph at the time when a host became master. Over three minutes, because an increase needs two samples,
 * which may be a minute apart.
 */
function failovers(): object {
  return {
    name: 'Failovers',
    enable: true,
    iconColor: 'orange',
    datasource: DATASOURCE,
    expr: 'increase(headgate_vrrp_transitions_total{cluster=~"$cluster",instance=~"$instance",state="master"}[3m]) > 0',
    titleFormat: 'Failover of {{vrrp_instance}}',
    textFormat: '{{instance}}',
    step: '1m',
  };
}

function variables(): readonly object[] {
  const all = { text: 'All', value: '$__all' };
  const query = (name: string, label: string, definition: string): object => ({
    name,
    label,
    type: 'query',
    datasource: DATASOURCE,
    definition,
    query: { query: definition, refId: name },
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    allValue: '.*',
    current: all,
    options: [],
    hide: 0,
  });
  return [
    {
      name: 'datasource',
      label: 'Data source',
      type: 'datasource',
      query: 'prometheus',
      options: [],
      hide: 0,
    },
    // Targets of one cluster need no such label: All matches those without it.
    query('cluster', 'Cluster', 'label_values(headgate_build_info, cluster)'),
    query('instance', 'Host', 'label_values(headgate_build_info{cluster=~"$cluster"}, instance)'),
    query(
      'namespace',
      'Namespace',
      'label_values(headgate_listener_up{cluster=~"$cluster",instance=~"$instance"}, namespace)',
    ),
    query(
      'service',
      'Service',
      'label_values(headgate_listener_up{cluster=~"$cluster",instance=~"$instance",namespace=~"$namespace"}, service)',
    ),
  ];
}

/** Places panels from left to right and from top to bottom; ids count from 1. */
function placed(): readonly object[] {
  const panels: object[] = [];
  let [x, y, lineHeight] = [0, 0, 0];
  const nextLine = (): void => {
    [x, y, lineHeight] = [0, y + lineHeight, 0];
  };
  for (const row of rows) {
    nextLine();
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title: row.title,
      collapsed: false,
      gridPos: { h: 1, w: COLUMNS, x: 0, y },
      panels: [],
    });
    y++;
    for (const panel of row.panels) {
      const [w, h] = SIZES[panel.kind];
      if (x + w > COLUMNS || (lineHeight > 0 && h !== lineHeight)) nextLine();
      panels.push(panelJson(panel, panels.length + 1, { h, w, x, y }));
      x += w;
      lineHeight = h;
    }
  }
  return panels;
}

function panelJson(panel: DashboardPanel, id: number, gridPos: object): object {
  const { title, description, kind, unit, targets, colors = [['green', null]] } = panel;
  const isInstant = kind !== 'graph';
  return {
    id,
    type: kind === 'graph' ? 'timeseries' : kind,
    title,
    description,
    datasource: DATASOURCE,
    gridPos,
    fieldConfig: {
      defaults: {
        unit,
        color: { mode: kind === 'graph' ? 'palette-classic' : 'thresholds' },
        thresholds: { mode: 'absolute', steps: colors.map(([color, value]) => ({ color, value })) },
        ...(kind === 'graph'
          ? { min: 0, custom: { lineWidth: 1, fillOpacity: 10, showPoints: 'never' } }
          : {}),
      },
      overrides: [],
    },
    options: optionsOf(kind),
    ...(kind === 'table' ? { transformations: [columns(panel.column)] } : {}),
    targets: Object.entries(targets).map(([legendFormat, expr], at) => ({
      refId: String.fromCharCode(65 + at),
      datasource: DATASOURCE,
      expr,
      legendFormat,
      instant: isInstant,
      range: !isInstant,
      ...(kind === 'table' ? { format: 'table' } : {}),
    })),
  };
}

/** Shows the labels of a series instead of its name and time, and its value if the panel names the value. */
function columns(column: string | undefined): object {
  const excludeByName = { Time: true, __name__: true, job: true, family: true };
  return {
    id: 'organize',
    options:
      column === undefined
        ? { excludeByName: { ...excludeByName, Value: true }, renameByName: {} }
        : { excludeByName, renameByName: { Value: column } },
  };
}

function optionsOf(kind: DashboardPanel['kind']): object {
  if (kind === 'graph')
    return {
      legend: { displayMode: 'list', placement: 'bottom', showLegend: true, calcs: [] },
      tooltip: { mode: 'multi', sort: 'desc' },
    };
  if (kind === 'table') return { showHeader: true, cellHeight: 'sm' };
  return {
    reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
    colorMode: 'background',
    graphMode: 'none',
    justifyMode: 'auto',
    orientation: 'auto',
    textMode: 'auto',
  };
}
