// Where one HAProxy keeps its files and sockets.

import { join } from 'node:path';

/** Who may read HAProxy's files and use its sockets besides root: their owner, or also their group. */
export type HaproxyAccess = 'owner' | 'group';

/** Files and sockets of one HAProxy. */
export interface HaproxyPaths {
  /** The mode of the files that the agent writes; their group may read them if HAProxy runs as another user. */
  readonly fileMode: number;
  /** The mode of the sockets, as in haproxy.cfg. */
  readonly socketMode: string;
  readonly config: string;
  readonly adminSocket: string;
  readonly masterSocket: string;
  readonly peersSocket: string;
  /** The members that are down, which a new worker reads when it boots. */
  readonly serverState: string;
  /** The counters of workers that have ended. */
  readonly counters: string;
  readonly pidFile: string;
  readonly log: string;
}

export function haproxyPaths(
  stateDir: string,
  runtimeDir: string,
  access: HaproxyAccess = 'owner',
): HaproxyPaths {
  const runtime = join(runtimeDir, 'haproxy');
  return {
    fileMode: access === 'group' ? 0o640 : 0o600,
    socketMode: access === 'group' ? '660' : '600',
    config: join(stateDir, 'haproxy', 'haproxy.cfg'),
    adminSocket: join(runtime, 'admin.sock'),
    masterSocket: join(runtime, 'master.sock'),
    peersSocket: join(runtime, 'peers.sock'),
    serverState: join(runtime, 'servers.state'),
    counters: join(stateDir, 'haproxy', 'counters'),
    pidFile: join(runtime, 'haproxy.pid'),
    log: join(runtime, 'haproxy.log'),
  };
}
