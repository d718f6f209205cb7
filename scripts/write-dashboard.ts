// Writes deploy/grafana/headgate.json from dashboard-rows.ts, or checks it with --check.

import { dashboardJson } from './dashboard.ts';
import { writeDocument } from './write-document.ts';

writeDocument('deploy/grafana/headgate.json', dashboardJson());
