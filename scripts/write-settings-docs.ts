// Writes docs/settings.md from the table of settings; with --check it writes nothing and fails where the file is old.

import { settingsPage } from './settings-page.ts';
import { writeDocument } from './write-document.ts';

writeDocument('docs/settings.md', settingsPage());
