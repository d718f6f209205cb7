// The names of the dataplane's tables and file.

import { join } from 'node:path';

/** Other programs of the host leave tables of this name alone. */
export const TABLE = 'headgate';

/** The rules for the next boot, and for `nft -f`; below the state directory. */
export function rulesFile(stateDir: string): string {
  return join(stateDir, 'nftables', 'headgate.nft');
}
