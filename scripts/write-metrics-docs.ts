// Writes the tables of docs/metrics.md from the text of /metrics, or checks them with --check.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { everyMetric } from '../test/support/report/every-metric.ts';
import { root } from './check.ts';
import { metricsPage } from './metrics-page.ts';
import { writeDocument } from './write-document.ts';

const PAGE = 'docs/metrics.md';
writeDocument(PAGE, metricsPage(readFileSync(join(root, PAGE), 'utf8'), await everyMetric()));
