// Writes docs/ingress-annotations.md from the table of annotations of Ingresses, or checks it with --check.

import { ingressPage } from './ingress-page.ts';
import { writeDocument } from './write-document.ts';

writeDocument('docs/ingress-annotations.md', ingressPage());
