import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import ava, { type ExecutionContext } from 'ava';
import { requires } from '../support/basics/requirements.ts';
import { alertRules, rulesFile } from '../support/report/rules.ts';
import { anchorsOf } from '../support/repository/markdown.ts';
import { type AlertCase, alertCases, type Series } from './alert-cases.ts';

const test = requires(ava, { programs: ['promtool'] });
const run = promisify(execFile);
const operations = new URL('../../docs/operations.md', import.meta.url);

test('promtool accepts the rules', async (t) => {
  const { stdout } = await run('promtool', ['check', 'rules', '--lint=all', '--lint-fatal', rulesFile]);
  t.regex(stdout, /SUCCESS: \d+ rules found/);
});

test('Each alert has a case that fires and a case that does not', (t) => {
  t.deepEqual(
    alertRules().map(({ alert }) => alert),
    Object.keys(alertCases),
  );
});

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
    t.deepEqual(Object.keys(annotations).sort(), ['description', 'runbook_url', 'summary'], alert);
    const [page, anchor = ''] = annotations.runbook_url?.split('#') ?? [];
    t.is(page, 'https://headgate.io/docs/operations');
    t.true(anchors.has(anchor), `${alert}: ${anchor}`);
  }
});

test('Each alert fires in its case, and not in a similar case', async (t) => {
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

test('The text of each alert names only existing labels', async (t) => {
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
      /description="((?:[^"\\]|\\.)*)", runbook_url="[^"]+", summary="((?:[^"\\]|\\.)*)"/.exec(text) ?? [];
    for (const sentence of [description, summary]) {
      t.regex(sentence, /^[A-Z0-9a-z].+\w%?\)?[.]?$/, alert);
      t.notRegex(sentence, / {2}| [.,:/]|<no value>|error expanding|\{\{/, alert);
    }
  }
});

/** The output of `promtool test rules`. */
async function promtool(t: ExecutionContext<unknown>, tests: readonly object[]): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'hg-rules-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const file = join(directory, 'test.yaml');
  await writeFile(file, JSON.stringify({ rule_files: [rulesFile], evaluation_interval: '1m', tests }));
  return run('promtool', ['test', 'rules', file], { maxBuffer: 16 * 1024 * 1024 }).then(
    ({ stdout }) => stdout,
    ({ stdout, stderr }) => `${stdout}${stderr}`,
  );
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
