// Writes docs/conformance.md from the table of conformance; with --check it writes nothing and fails where the file is old.

import { conformancePage } from './conformance-page.ts';
import { writeDocument } from './write-document.ts';

writeDocument('docs/conformance.md', conformancePage());
