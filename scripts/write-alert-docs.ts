// Writes the table of alerts in docs/operations.md from the rules for Prometheus, or checks it with --check.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { alertRules } from '../test/support/report/rules.ts';
import { alertsPage } from './alerts-page.ts';
import { root } from './check.ts';
import { writeDocument } from './write-document.ts';

const PAGE = 'docs/operations.md';
writeDocument(PAGE, alertsPage(readFileSync(join(root, PAGE), 'utf8'), alertRules()));
