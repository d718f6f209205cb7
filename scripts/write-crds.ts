// Writes deploy/crds/ from the schemas of our objects; with --check it writes nothing and fails where a file is old.

import { crdFiles } from './crds.ts';
import { writeDocument } from './write-document.ts';

for (const [path, text] of crdFiles()) writeDocument(path, text);
