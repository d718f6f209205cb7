// Writes the landing's unit from that of HAProxy, and the template units systemd/*@.service from the units without "@", or
// checks them with --check.

import { readFileSync } from 'node:fs';
import { instanceUnit, instantiated, landingUnit } from './instance-units.ts';
import { writeDocument } from './write-document.ts';

writeDocument('systemd/headgate-haproxy-landing.service', landingUnit(unit('headgate-haproxy')));
for (const name of instantiated) {
  const text = unit(name);
  writeDocument(`systemd/${name}@.service`, instanceUnit(text));
}

function unit(name: string): string {
  return readFileSync(new URL(`../systemd/${name}.service`, import.meta.url), 'utf8');
}
