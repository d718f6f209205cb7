// Writes docs/annotations.md from the table of annotations, or checks it with --check.

import { annotationPage } from './annotation-page.ts';
import { writeDocument } from './write-document.ts';

writeDocument('docs/annotations.md', annotationPage());
