// Writes docs/settings.md from the table of settings, or checks it with --check.

import { settingsPage } from './settings-page.ts';
import { writeDocument } from './write-document.ts';

writeDocument('docs/settings.md', settingsPage());
