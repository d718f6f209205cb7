// Writes docs/settings.md from the table of settings, or checks it with --check.

import { settingsDocument } from '../agent/settings/help.ts';
import { writeDocument } from './write-document.ts';

writeDocument('docs/settings.md', settingsDocument());
