// The paths of one keepalived's files. Several keepalived on a host share none.

import { join } from 'node:path';

export interface KeepalivedPaths {
  readonly config: string;
  readonly pidFile: string;
  readonly vrrpPidFile: string;
  /** Where keepalived writes `keepalived.json`. */
  readonly directory: string;
  /** The state of keepalived. */
  readonly dump: string;
  readonly fifo: string;
  /** keepalived's track file: the number by which the priority of this host is lowered. */
  readonly standing: string;
  readonly log: string;
  /** The counters of VRRP, kept over restarts of the agent. */
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
