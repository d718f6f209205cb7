// Writes the table of docs/security.md about what protects, or checks it with --check.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { securityPage } from './security-page.ts';
import { writeDocument } from './write-document.ts';

const PAGE = 'docs/security.md';
writeDocument(
  PAGE,
  securityPage(readFileSync(fileURLToPath(new URL(`../${PAGE}`, import.meta.url)), 'utf8')),
);
