// Writes deploy/grafana/headgate.json from its table; with --check it writes nothing and fails where the file is old.

import { dashboardJson } from './dashboard.ts';
import { writeDocument } from './write-document.ts';

writeDocument('deploy/grafana/headgate.json', dashboardJson());
