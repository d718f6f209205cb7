import { readFileSync } from 'node:fs';
import test from 'ava';
import { dashboardJson } from '../../scripts/dashboard.ts';
import { rows } from '../../scripts/dashboard-rows.ts';

const file = new URL('../../deploy/grafana/headgate.json', import.meta.url);
const dashboard = JSON.parse(readFileSync(file, 'utf8'));

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description: string;
  readonly datasource?: { readonly uid: string };
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number };
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[];
}

const panels: readonly Panel[] = dashboard.panels;

test('deploy/grafana/headgate.json equals its source', (t) => {
  t.is(readFileSync(file, 'utf8'), dashboardJson());
});

test('Panels have unique ids and do not overlap', (t) => {
  t.is(new Set(panels.map(({ id }) => id)).size, panels.length);
  const taken = new Map<string, string>();
  for (const {
    title,
    gridPos: { h, w, x, y },
  } of panels) {
    t.true(x >= 0 && x + w <= 24, title);
    for (let column = x; column < x + w; column++)
      for (let line = y; line < y + h; line++) {
        t.is(taken.get(`${column},${line}`), undefined, title);
        taken.set(`${column},${line}`, title);
      }
  }
});

test('Every panel has a description and queries only the selected data source, clusters and hosts', (t) => {
  const shown = panels.filter(({ type }) => type !== 'row');
  t.is(shown.length, rows.flatMap((row) => row.panels).length);
  for (const { title, description, datasource, targets = [] } of shown) {
    t.regex(description, /^[A-Z0-9].*\.$/, title);
    t.is(datasource?.uid, '$datasource', title);
    t.true(targets.length > 0, title);
    t.is(new Set(targets.map(({ refId }) => refId)).size, targets.length, title);
    for (const { expr } of targets)
      for (const selector of expr.match(/\{[^}]*\}/g) ?? []) {
        t.true(selector.includes('cluster=~"$cluster"'), `${title}: ${expr}`);
        t.true(selector.includes('instance=~"$instance"') || expr.includes('ALERTS'), `${title}: ${expr}`);
      }
  }
});

test('Every used variable is defined', (t) => {
  const defined = new Set(dashboard.templating.list.map(({ name }: { name: string }) => name));
  const used = [...JSON.stringify(dashboard).matchAll(/\$(\w+)/g)].map(([, name = '']) => name);
  t.true(used.length > 100);
  t.deepEqual(
    [...new Set(used)].filter((name) => !name.startsWith('__') && !defined.has(name)),
    [],
  );
});
