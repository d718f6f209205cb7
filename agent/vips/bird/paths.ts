// The paths of one BIRD's files, all in memory: after a boot nothing is announced until the agent has proved that it serves.

import { join } from 'node:path';

export interface BirdPaths {
  readonly directory: string;
  /** Has passwords: mode 0600. */
  readonly config: string;
  /** A file that is checked before it becomes `config`. */
  readonly candidate: string;
  /** The routes of VIPs, which `config` includes. */
  readonly vips: Readonly<Record<'v4' | 'v6', string>>;
  readonly socket: string;
  readonly pidFile: string;
  /** The addresses that this agent has made local. */
  readonly local: string;
  /** Is there while the kernel passes packets on. */
  readonly passing: string;
  readonly log: string;
}

export function birdPaths(runtimeDir: string): BirdPaths {
  const directory = join(runtimeDir, 'bird');
  return {
    directory,
    config: join(directory, 'bird.conf'),
    candidate: join(directory, 'candidate.conf'),
    vips: { v4: join(directory, 'vips4.conf'), v6: join(directory, 'vips6.conf') },
    socket: join(directory, 'bird.sock'),
    pidFile: join(directory, 'bird.pid'),
    local: join(directory, 'local-vips'),
    passing: join(directory, 'passing'),
    log: join(directory, 'bird.log'),
  };
}
