// The paths of one conntrackd's files, and the name of its table. Several on a host share none.

import { join } from 'node:path';
import { tableOf } from '../paths.ts';

export interface ConntrackdPaths {
  readonly config: string;
  /** Rules of nftables, which the unit loads before conntrackd starts. */
  readonly rules: string;
  readonly table: string;
  /** The folder of the files below. */
  readonly directory: string;
  readonly lock: string;
  readonly socket: string;
  readonly log: string;
}

export function conntrackdPaths(stateDir: string, runtimeDir: string): ConntrackdPaths {
  const directory = join(runtimeDir, 'conntrackd');
  return {
    config: join(stateDir, 'conntrackd', 'conntrackd.conf'),
    rules: join(stateDir, 'conntrackd', 'rules.nft'),
    table: `${tableOf(stateDir)}_sync`,
    directory,
    lock: join(directory, 'conntrackd.lock'),
    socket: join(directory, 'conntrackd.ctl'),
    log: join(directory, 'conntrackd.log'),
  };
}
