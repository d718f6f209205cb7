// Writes deploy/headgate.schema.json from the table of settings, or checks it with --check.

import { settingsSchema } from './settings-schema.ts';
import { writeDocument } from './write-document.ts';

writeDocument('deploy/headgate.schema.json', settingsSchema());
