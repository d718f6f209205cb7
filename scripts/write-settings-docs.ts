// Writes docs/settings.md from the table of settings; with --check it writes nothing and fails where the file is old.

import { settingsDocument } from '../agent/settings/help.ts';
import { writeDocument } from './write-document.ts';

writeDocument('docs/settings.md', settingsDocument());
