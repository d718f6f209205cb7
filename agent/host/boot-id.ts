// The id of this boot of the machine, as systemd's specifier %b writes it.

import { readFileSync } from 'node:fs';

/** `unknown` if the kernel does not show it. */
export function bootId(): string {
  try {
    const id = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim().replaceAll('-', '');
    return /^[0-9a-f]{32}$/.test(id) ? id : UNKNOWN;
  } catch {
    return UNKNOWN;
  }
}

const UNKNOWN = 'unknown';
