// Writes docs/conformance/ingress-nginx.md from the list of the suite's tests, or checks it with --check.

import { migrationPage } from './migration-page.ts';
import { writeDocument } from './write-document.ts';

writeDocument('docs/conformance/ingress-nginx.md', migrationPage());
