import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { alertRules, ruleGroups, rulesFile } from '../support/report/rules.ts';
import { anchorsOf } from '../support/repository/markdown.ts';
import { type AlertCase, alertCases, type Series } from './alert-cases.ts';
import { type Course, type Outage, outages } from './outages.ts';

const test = requires(ava, { programs: ['promtool'] });
const run = promisify(execFile);
/** Seconds between two scrapes, and two evaluations. */
const STEP_S = 60;
const operations = new URL('../../docs/operations.md', import.meta.url);

test('promtool accepts the rules', async (t) => {
  const { stdout } = await run('promtool', ['check', 'rules', '--lint=all', '--lint-fatal', rulesFile]);
  t.regex(stdout, /SUCCESS: \d+ rules found/);
});

test('Each alert has an outage, a case that fires and a case that does not', (t) => {
  const alerts = alertRules().map(({ alert }) => alert);
  t.deepEqual(Object.keys(alertCases), alerts);
  t.deepEqual(Object.keys(outages), alerts);
});

test.serial(
  'Each alert fires once in its outage, alone, lasts as long as the outage, and ends after it',
  async (t) => {
    t.timeout(600_000);
    const all = Object.entries(outages).flatMap(([alert, ofAlert]) =>
      [ofAlert].flat().map((outage, at): NamedOutage => ({ alert, cluster: `${alert}-${at}`, outage })),
    );
    const tests = Array.from(
      Map.groupBy(all, ({ outage: { begins = 20 } }) => begins),
      ([begins, each]) => testOfOutages(begins, each),
    );
    t.regex(await promtool(t, tests, `${STEP_S}s`), /^Unit Testing: {2}\S+\n {2}SUCCESS\n+$/);
  },
);

test('Each alert has a severity, a summary, a description and a section of docs/operations.md', async (t) => {
  const markdown = await readFile(operations, 'utf8');
  const [, alerts = ''] = markdown.split('\n## Alerts\n');
  const headings = [...alerts.matchAll(/^### `(\w+)`$/gm)].map(([, name]) => name);
  t.deepEqual(
    [...headings].sort(),
    alertRules()
      .map(({ alert }) => alert)
      .sort(),
  );
  const anchors = new Set(anchorsOf(markdown));
  for (const { alert, labels, annotations } of alertRules()) {
    t.regex(labels.severity ?? '', /^(critical|warning|info)$/, alert);
    t.deepEqual(Object.keys(annotations).sort(), ['description', 'runbook', 'summary'], alert);
    // A file of the repository and of the packages, not a site.
    const [page, anchor = ''] = annotations.runbook?.split('#') ?? [];
    t.is(page, 'docs/operations.md');
    t.true(anchors.has(anchor), `${alert}: ${anchor}`);
  }
});

test.serial('Each alert fires in its case, and not in a similar case', async (t) => {
  t.timeout(300_000);
  const tests = Object.entries<AlertCase>(alertCases).flatMap(
    ([alert, { at = '20m', count = 1, fires, quiet }]) => {
      const fired = `count(ALERTS{alertname="${alert}",alertstate="firing"})`;
      return [
        ...[fires].flat().map((series) => testOf(series, at, fired, [{ labels: '{}', value: count }])),
        testOf(quiet, at, fired, []),
      ];
    },
  );
  // promtool reports a failure with its expression, which names the alert.
  const said = await promtool(t, tests);
  t.regex(said, /^Unit Testing: {2}\S+\n {2}SUCCESS\n+$/);
});

test.serial('The text of each alert names only existing labels', async (t) => {
  t.timeout(300_000);
  // Expects no alert, so that promtool prints all alerts.
  const tests = Object.entries<AlertCase>(alertCases).map(
    ([alertname, { at: eval_time = '20m', fires }]) => ({
      interval: '1m',
      input_series: seriesOf([fires].flat()[0] ?? {}),
      alert_rule_test: [{ alertname, eval_time, exp_alerts: [] }],
    }),
  );
  const said = await promtool(t, tests);
  for (const alert of Object.keys(alertCases)) {
    const [, text = ''] =
      new RegExp(`alertname: ${alert}, [\\s\\S]*?got:\\[([\\s\\S]*?)\\]\\n`).exec(said) ?? [];
    const [, description = '', summary = ''] =
      /description="((?:[^"\\]|\\.)*)", runbook="[^"]+", summary="((?:[^"\\]|\\.)*)"/.exec(text) ?? [];
    for (const sentence of [description, summary]) {
      t.regex(sentence, /^[A-Z0-9a-z].+\w%?\)?[.]?$/, alert);
      t.notRegex(sentence, / {2}| [.,:/]|<no value>|error expanding|\{\{/, alert);
    }
  }
});

/** The output of `promtool test rules`. */
async function promtool(
  t: ExecutionContext<unknown>,
  tests: readonly object[],
  evaluation_interval = '1m',
): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'hg-rules-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const file = join(directory, 'test.yaml');
  await writeFile(
    file,
    JSON.stringify({ rule_files: [rulesFile], evaluation_interval, group_eval_order: ruleGroups(), tests }),
  );
  return run('promtool', ['test', 'rules', file], { maxBuffer: 16 * 1024 * 1024 }).then(
    ({ stdout }) => stdout,
    ({ stdout, stderr }) => `${stdout}${stderr}`,
  );
}

interface NamedOutage {
  readonly alert: string;
  readonly cluster: string;
  readonly outage: Outage;
}

const AN_AGENT = { 'up{job="headgate",instance="a"}': { kind: 'gauge', healthy: 1, faulty: 1 } } as const;

/** All outages that begin at one time, each in a cluster of its own. */
function testOfOutages(begins: number, all: readonly NamedOutage[]): object {
  const ends = Math.max(...all.map(({ outage: { lasts = 10, ends: after } }) => begins + lasts + after));
  const minutes = Math.ceil(ends) + 10;
  return {
    interval: `${STEP_S}s`,
    input_series: all.flatMap(({ cluster, outage: { courses, lasts = 10 } }) =>
      Object.entries({ ...AN_AGENT, ...courses }).map(([series, course]) => ({
        series: series.replace('{', `{cluster="${cluster}",`),
        values: valuesOf(
          course,
          [begins, lasts, minutes - begins - lasts].map((each) => (each * 60) / STEP_S),
        ),
      })),
    ),
    promql_expr_test: all.flatMap((each) =>
      Object.entries(timesOf(each, begins, `${minutes}m`)).map(([expr, value]) => ({
        expr,
        eval_time: `${minutes}m`,
        exp_samples: [{ labels: '{}', value }],
      })),
    ),
  };
}

/** When the first and the last evaluation with a firing alert are, and how many there are, of this alert and of all. */
function timesOf(
  { alert, cluster, outage }: NamedOutage,
  begins: number,
  range: string,
): Record<string, number> {
  const { lasts = 10, fires, ends } = outage;
  const first = (begins + fires) * 60;
  const last = (begins + lasts + ends) * 60 - STEP_S;
  const any = `ALERTS{cluster="${cluster}",alertstate="firing"}`;
  const firing = any.replace('}', `,alertname="${alert}"}`);
  return {
    [`min(min_over_time(timestamp(${firing})[${range}:${STEP_S}s]))`]: first,
    [`max(max_over_time(timestamp(${firing})[${range}:${STEP_S}s]))`]: last,
    [`sum(count_over_time(${firing}[${range}]))`]: (last - first) / STEP_S + 1,
    [`sum(count_over_time(${any}[${range}]))`]: (last - first) / STEP_S + 1,
  };
}

/** `steps`: before the outage, in it, and after it. */
function valuesOf({ kind, healthy, faulty }: Course, steps: readonly number[]): string {
  let value = 0;
  return [healthy, faulty, healthy]
    .map((each, part) => {
      const count = (steps[part] ?? 0) - 1;
      if (kind === 'gauge') return `${each}+0x${count}`;
      const step = (each * STEP_S) / 60;
      const from = value + step;
      value = from + step * count;
      return `${from}+${step}x${count}`;
    })
    .join(' ');
}

function seriesOf(series: Series): readonly object[] {
  return Object.entries(series).map(([name, values]) => ({ series: name, values }));
}

function testOf(series: Series, at: string, expr: string, samples: readonly object[]): object {
  return {
    interval: '1m',
    input_series: seriesOf(series),
    promql_expr_test: [{ expr, eval_time: at, exp_samples: samples }],
  };
}
