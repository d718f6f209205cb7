// Writes systemd/*@.service from the units without "@"; with --check it writes nothing and fails where one is old.

import { readFileSync } from 'node:fs';
import { instanceUnit, instantiated } from './instance-units.ts';
import { writeDocument } from './write-document.ts';

for (const name of instantiated) {
  const text = readFileSync(new URL(`../systemd/${name}.service`, import.meta.url), 'utf8');
  writeDocument(`systemd/${name}@.service`, instanceUnit(text));
}
