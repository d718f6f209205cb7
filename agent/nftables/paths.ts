// The names of the dataplane's tables and file.

import { hash } from 'node:crypto';
import { join } from 'node:path';

/** The folder of the package's only instance. */
const DEFAULT_STATE_DIR = '/var/lib/headgate';

/** Two agents in one network namespace have tables of their own. */
export function tableOf(stateDir: string): string {
  return stateDir === DEFAULT_STATE_DIR ? 'headgate' : `headgate_${hash('sha256', stateDir).slice(0, 8)}`;
}

/** Beside those of the kernel path. */
export function egressTableOf(stateDir: string): string {
  return `${tableOf(stateDir)}_egress`;
}

/** As rulesFile(), of egress. */
export function egressFile(stateDir: string): string {
  return join(stateDir, 'nftables', 'egress.nft');
}

/** Through which a change gets to nft; below the runtime directory. */
export function changeFile(runtimeDir: string): string {
  return join(runtimeDir, 'nftables', 'change.nft');
}

/** The rules for the next boot, and for `nft -f`; below the state directory. */
export function rulesFile(stateDir: string): string {
  return join(stateDir, 'nftables', 'headgate.nft');
}
