// Where one HAProxy keeps its files and sockets.

import { join } from 'node:path';

/** Who may read HAProxy's files and use its sockets besides root: their owner, or also their group. */
export type HaproxyAccess = 'owner' | 'group';

/** The folder of a HAProxy in the state and the runtime folder: the main one's, or that of the landing. */
export type HaproxyFolder = 'haproxy' | 'haproxy-landing';

/** Files and sockets of one HAProxy. */
export interface HaproxyPaths {
  /** The mode of the files that the agent writes; their group may read them if HAProxy runs as another user. */
  readonly fileMode: number;
  /** The mode of the sockets, as in haproxy.cfg. */
  readonly socketMode: string;
  readonly config: string;
  /** The folder of certificates with their keys. */
  readonly certificates: string;
  /** The mode of that folder. */
  readonly certificatesMode: number;
  /** The folder of the maps of routes, which have no secrets: HAProxy finds them also after a reboot. */
  readonly routes: string;
  /** The folder of error pages, likewise. */
  readonly pages: string;
  /** The folder of public keys of tokens, likewise. */
  readonly keys: string;
  readonly adminSocket: string;
  readonly masterSocket: string;
  readonly peersSocket: string;
  /** HAProxy sends copies of requests to itself there. */
  readonly mirrorSocket: string;
  /** HAProxy asks authorization servers there. */
  readonly authSocket: string;
  /** The socket of the program that writes the connection log to a file; one for all HAProxies of the agent. */
  readonly logSocket: string;
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
  folder: HaproxyFolder = 'haproxy',
): HaproxyPaths {
  const runtime = join(runtimeDir, folder);
  return {
    fileMode: access === 'group' ? 0o640 : 0o600,
    socketMode: access === 'group' ? '660' : '600',
    config: join(stateDir, folder, 'haproxy.cfg'),
    certificates: join(runtime, 'certificates'),
    certificatesMode: access === 'group' ? 0o750 : 0o700,
    routes: join(stateDir, folder, 'routes'),
    pages: join(stateDir, folder, 'pages'),
    keys: join(stateDir, folder, 'keys'),
    adminSocket: join(runtime, 'admin.sock'),
    masterSocket: join(runtime, 'master.sock'),
    peersSocket: join(runtime, 'peers.sock'),
    mirrorSocket: join(runtime, 'mirrors.sock'),
    authSocket: join(runtime, 'auth.sock'),
    logSocket: join(runtimeDir, 'connection-log', 'log.sock'),
    serverState: join(runtime, 'servers.state'),
    counters: join(stateDir, folder, 'counters'),
    pidFile: join(runtime, 'haproxy.pid'),
    log: join(runtime, 'haproxy.log'),
  };
}
