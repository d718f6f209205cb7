// Writes docs/conformance.md from the table of rules and the tests, or checks it with --check.

import { conformance } from '../test/conformance/conformance.ts';
import { shownBy } from '../test/support/repository/shown-by.ts';
import { testSources } from '../test/support/repository/test-sources.ts';
import { root } from './check.ts';
import { conformancePage } from './conformance-page.ts';
import { writeDocument } from './write-document.ts';

writeDocument('docs/conformance.md', conformancePage(conformance, shownBy(testSources(root))));
