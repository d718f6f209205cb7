// Writes docs/annotations.md from the table of annotations; with --check it writes nothing and fails where the file is old.

import { annotationPage } from './annotation-page.ts';
import { writeDocument } from './write-document.ts';

writeDocument('docs/annotations.md', annotationPage());
