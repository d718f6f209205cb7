import test from 'ava';
import type { MetricFamily } from '../../../agent/base/metric-family.ts';
import {
  formatFor,
  openMetrics,
  pieces,
  prometheusText,
  takesGzip,
} from '../../../health/scrape/exposition.ts';
import { readMetrics } from '../../support/report/metrics-text.ts';

const rows = [{ labels: 'a="1"' }, { labels: 'a="2"' }, { labels: '' }];
const families: readonly MetricFamily[] = [
  {
    name: 'x_total',
    type: 'counter',
    help: 'A "quoted" help with \\ in it',
    parts: [
      { labels: 'code="2xx"', rows, value: (row) => rows.indexOf(row as (typeof rows)[number]) },
      { labels: '', rows, value: () => 2.5 },
    ],
  },
  {
    name: 'none',
    type: 'gauge',
    help: 'Has no sample',
    parts: [{ labels: '', rows, value: () => Number.NaN }],
  },
  {
    name: 'y_seconds',
    type: 'histogram',
    help: 'H',
    parts: [
      { suffix: '_bucket', labels: '', rows: [{ labels: 'le="+Inf"' }], value: () => 3 },
      { suffix: '_sum', labels: '', rows: [{ labels: '' }], value: () => Number.POSITIVE_INFINITY },
    ],
  },
];

test('pieces() writes both formats, and the head of a family without samples', (t) => {
  const samples = [
    'x_total{code="2xx",a="1"} 0',
    'x_total{code="2xx",a="2"} 1',
    'x_total{code="2xx"} 2',
    'x_total{a="1"} 2.5',
    'x_total{a="2"} 2.5',
    'x_total 2.5',
  ];
  const rest = [
    '# HELP none Has no sample',
    '# TYPE none gauge',
    '# HELP y_seconds H',
    '# TYPE y_seconds histogram',
    'y_seconds_bucket{le="+Inf"} 3',
    'y_seconds_sum +Inf',
  ];
  t.deepEqual([...pieces(families, prometheusText)].join('').split('\n'), [
    '# HELP x_total A "quoted" help with \\\\ in it',
    '# TYPE x_total counter',
    ...samples,
    ...rest,
    '',
  ]);
  t.deepEqual([...pieces(families, openMetrics)].join('').split('\n'), [
    '# HELP x A \\"quoted\\" help with \\\\ in it',
    '# TYPE x counter',
    ...samples,
    ...rest,
    '',
  ]);
  readMetrics([...pieces(families, prometheusText)].join(''), 'text');
  readMetrics(`${[...pieces(families, openMetrics)].join('')}${openMetrics.end}`, 'openmetrics');
});

test('pieces() writes numbers as JavaScript does', (t) => {
  const numbers = [
    0,
    1,
    1_023,
    1_024,
    99_999,
    2 ** 31 - 1,
    2 ** 31,
    2 ** 53,
    1e21,
    1e300,
    0.5,
    1e-7,
    -1,
    -0.5,
  ];
  const all = numbers.map((number) => ({ labels: `n="${number}"`, number }));
  const [family] = families as [MetricFamily];
  const value = (row: unknown): number => (row as (typeof all)[number]).number;
  const text = [...pieces([{ ...family, parts: [{ labels: '', rows: all, value }] }], prometheusText)].join(
    '',
  );
  const lines = text.split('\n').slice(2, -1);
  t.deepEqual(
    lines,
    numbers.map((number) => `x_total{n="${number}"} ${number}`),
  );
});

for (const [accept, isOpen] of [
  [undefined, false],
  ['*/*', false],
  ['text/plain', false],
  ['text/html,application/xhtml+xml,*/*;q=0.8', false],
  ['application/openmetrics-text', true],
  ['application/openmetrics-text; version=2.0.0', false],
  ['application/openmetrics-text;version=1.0.0;q=0.4,text/plain;version=0.0.4;q=0.5', false],
  ['application/openmetrics-text;q=nonsense', false],
  // Prometheus 2 and 3.
  [
    'application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
    true,
  ],
  [
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1',
    true,
  ],
] as const) {
  test(`formatFor() answers "${accept}" with ${isOpen ? 'OpenMetrics' : 'plain text'}`, (t) => {
    t.is(formatFor(accept), isOpen ? openMetrics : prometheusText);
  });
}

test('takesGzip() follows q=0 and wildcards', (t) => {
  t.deepEqual(
    [undefined, '', 'br', 'gzip', 'deflate, gzip;q=1.0', 'gzip;q=0', '*', '*;q=0, gzip', 'gzip;q=0, *'].map(
      takesGzip,
    ),
    [false, false, false, true, true, false, true, true, false],
  );
});
