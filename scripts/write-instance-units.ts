// Writes the template units systemd/*@.service from the units without "@", or checks them with --check.

import { readFileSync } from 'node:fs';
import { instanceUnit, instantiated } from './instance-units.ts';
import { writeDocument } from './write-document.ts';

for (const name of instantiated) {
  const text = readFileSync(new URL(`../systemd/${name}.service`, import.meta.url), 'utf8');
  writeDocument(`systemd/${name}@.service`, instanceUnit(text));
}
