// Writes the table of commands in docs/operations.md from their definitions, or checks it with --check.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { commands } from '../agent/cli/commands.ts';
import { root } from './check.ts';
import { commandsPage } from './commands-page.ts';
import { writeDocument } from './write-document.ts';

const PAGE = 'docs/operations.md';
writeDocument(PAGE, commandsPage(readFileSync(join(root, PAGE), 'utf8'), commands));
