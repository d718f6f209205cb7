import test from 'ava';
import { metricsPage, servedMetrics } from '../../scripts/metrics-page.ts';
import { everyMetric } from '../support/report/every-metric.ts';

test('metricsPage() writes each metric into one table, and keeps the text around the tables', async (t) => {
  const mark = (table: string) => `<!-- Written by scripts/write-metrics-docs.ts: ${table}. -->`;
  const end = '<!-- The end of what is written. -->';
  const page = `# Metrics\n\n${mark('agent')}\nold\n${end}\n\nText.\n\n${mark('pools')}\n${end}\n`;
  const written = metricsPage(
    page,
    [
      '# HELP headgate_leader Whether it leads',
      '# TYPE headgate_leader gauge',
      'headgate_leader{lease="a"} 1',
    ]
      .concat('# HELP headgate_pool_queue Queue', '# TYPE headgate_pool_queue gauge', 'headgate_pool_queue 0')
      .join('\n'),
  );
  t.is(
    written,
    `# Metrics\n\n${mark('agent')}\n\n| name | type | labels | meaning |\n|---|---|---|---|\n| \`headgate_leader\` | gauge | \`lease\` | Whether it leads. |\n\n${end}\n\nText.\n\n${mark('pools')}\n\n| name | type | labels | meaning |\n|---|---|---|---|\n| \`headgate_pool_queue\` | gauge | – | Queue. |\n\n${end}\n`,
  );
  t.false(metricsPage(page, await everyMetric()).includes('headgate_vrrp_state'));
});

test('servedMetrics() reads names, types, HELP and labels', (t) => {
  const text = [
    '# HELP a_total Counts',
    '# TYPE a_total counter',
    'a_total{x="1",y="{2}"} 3',
    '# TYPE b_seconds histogram',
    'b_seconds_bucket{le="0.1",kind="k"} 1',
    'b_seconds_sum{kind="k"} 0.1',
    '# TYPE c gauge',
    '# TYPE d gauge',
    'd 1',
  ].join('\n');
  t.deepEqual(
    [...servedMetrics(text)],
    [
      ['a_total', { type: 'counter', help: 'Counts', labels: ['x', 'y'] }],
      ['b_seconds', { type: 'histogram', help: '', labels: ['kind'] }],
      ['c', { type: 'gauge', help: '', labels: undefined }],
      ['d', { type: 'gauge', help: '', labels: [] }],
    ],
  );
});
