// Where one keepalived keeps its things; several on a host have nothing in common.

import { join } from 'node:path';

export interface KeepalivedPaths {
  readonly config: string;
  readonly pidFile: string;
  readonly vrrpPidFile: string;
  /** Where keepalived writes what it knows of itself, `keepalived.json`. */
  readonly directory: string;
  readonly dump: string;
  readonly fifo: string;
  /** How far this host is lowered, for keepalived's track file. */
  readonly standing: string;
  readonly log: string;
  /** What is counted of VRRP, for the agent that comes after this one. */
  readonly counters: string;
}

export function keepalivedPaths(stateDir: string, runtimeDir: string): KeepalivedPaths {
  const directory = join(runtimeDir, 'keepalived');
  return {
    config: join(stateDir, 'keepalived', 'keepalived.conf'),
    directory,
    pidFile: join(directory, 'keepalived.pid'),
    vrrpPidFile: join(directory, 'vrrp.pid'),
    dump: join(directory, 'keepalived.json'),
    fifo: join(directory, 'notify.fifo'),
    standing: join(directory, 'standing'),
    log: join(directory, 'keepalived.log'),
    counters: join(stateDir, 'keepalived', 'counters'),
  };
}
