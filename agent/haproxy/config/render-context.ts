// The values of the host and its settings in haproxy.cfg.
// Why: docs/design/decisions/0022-grace-for-the-old-worker.md

import { bootId } from '../../host/boot-id.ts';
import type { HaproxyPaths } from '../paths.ts';
import { type ConnectionLogSettings, logWords } from './connection-log.ts';
import { namespaceConnections } from './limits.ts';
import type { SharedTables } from './shared-tables.ts';
import { NO_USERS, type UsersText } from './user-lists.ts';

/**
 * How long a replaced worker still accepts connections beside the new one. HAProxy before 3.1 stops the old worker before
 * it forks the new one; a longer time would let more clients with session affinity reach a worker without their entries
 * (docs/design/haproxy-versions.md).
 */
export const GRACE_MS = 50;

export interface RenderContext {
  readonly adminSocket: string;
  readonly peersSocket: string;
  readonly mirrorSocket: string;
  readonly authSocket: string;
  readonly serverState: string;
  /** The mode of both sockets, octal. */
  readonly socketMode: string;
  readonly maxConnections: number;
  /** The connections that the listeners of one namespace may have together. */
  readonly namespaceConnections: number;
  /** 0: HAProxy's own choice. */
  readonly threads: number;
  /** Before HAProxy 3.1; 0 with listeners in mode http, because with it HAProxy does not close their idle connections. */
  readonly graceMs: number;
  /** Milliseconds. */
  readonly hardStopAfter: number;
  /** HAProxy ends a worker after this many reloads, even with connections. */
  readonly maxReloads: number;
  readonly localPeer: string;
  /** undefined if no peer shares the stick tables. */
  readonly sharedTables?: SharedTables;
  /** '': HAProxy keeps the user that starts it. */
  readonly user: string;
  readonly group: string;
  /** The folder of certificates. */
  readonly certificates: string;
  /** The folder of the maps of routes. */
  readonly routes: string;
  /** The folder of error pages. */
  readonly pages: string;
  /** The folder of public keys of tokens. */
  readonly keys: string;
  readonly dotSegments?: DotSegments;
  readonly ambiguousPaths?: AmbiguousPaths;
  /**
   * TLS sessions are not kept: HAProxy has one cache for all listeners, and a session from one that asks for no certificate,
   * or for one of another authority, would count at one that does.
   */
  readonly forgetsSessions: boolean;
  /** A listener has routes. */
  readonly hasRoutes: boolean;
  /** A listener's routes ask authorization servers. */
  readonly asksServers: boolean;
  /** A listener's routes verify tokens. */
  readonly verifiesTokens: boolean;
  /** A listener reports requests that fail to the agent. */
  readonly reportsErrors: boolean;
  /** HAProxy counts the responses of each route. */
  readonly countsRoutes: boolean;
  /**
   * The boot in which that folder has the certificates: in another one HAProxy leaves out the addresses that end TLS, because
   * the folder is in memory. '' without TLS.
   */
  readonly boot: string;
  /** The target of the connection log, see logWords(). */
  readonly log: string;
  readonly logFormat: ConnectionLogSettings['connectionLogFormat'];
  /** The unique id of an ACL, by listener name and line. */
  readonly aclId: (listener: string, line: number) => number;
  /** The users of routes, with hashes of their passwords. */
  readonly users?: UsersText;
  /** Listeners to which the dispatcher of an old worker may still send connections; not of the file's structure. */
  readonly formerlyDispatched?: ReadonlySet<string>;
}

export type DotSegments = 'reject' | 'normalize' | 'pass';
export type AmbiguousPaths = 'reject-where-guarded' | 'reject' | 'pass';

export interface RenderSettings extends ConnectionLogSettings {
  /** What becomes of dot segments in paths to routes; absent: reject. */
  readonly dotSegments?: DotSegments;
  /** Absent: reject-where-guarded. */
  readonly ambiguousPaths?: AmbiguousPaths;
  /** 0: nine tenths of all. */
  readonly maxConnectionsPerNamespace: number;
  readonly threads: number;
  readonly hardStopAfter: number;
  readonly maxOldWorkers: number;
  readonly haproxyUser: string;
  readonly haproxyGroup: string;
  readonly routeMetrics: boolean;
}

export function renderContext(
  settings: RenderSettings,
  paths: HaproxyPaths,
  maxConnections: number,
  aclId: RenderContext['aclId'],
  {
    sharedTables,
    hasHttp = false,
    hasTls = false,
    asksForCertificates = false,
    hasRoutes = false,
    asksServers = false,
    verifiesTokens = false,
    reportsErrors = false,
    users = NO_USERS,
  }: {
    readonly sharedTables?: SharedTables | undefined;
    readonly hasHttp?: boolean;
    readonly hasTls?: boolean;
    readonly asksForCertificates?: boolean;
    readonly hasRoutes?: boolean;
    readonly asksServers?: boolean;
    readonly verifiesTokens?: boolean;
    readonly reportsErrors?: boolean;
    readonly users?: UsersText;
  } = {},
): RenderContext {
  return {
    adminSocket: paths.adminSocket,
    peersSocket: paths.peersSocket,
    mirrorSocket: paths.mirrorSocket,
    authSocket: paths.authSocket,
    serverState: paths.serverState,
    socketMode: paths.socketMode,
    maxConnections,
    namespaceConnections: namespaceConnections(settings.maxConnectionsPerNamespace, maxConnections),
    threads: settings.threads,
    graceMs: hasHttp ? 0 : GRACE_MS,
    hardStopAfter: settings.hardStopAfter,
    maxReloads: settings.maxOldWorkers * 4,
    localPeer: sharedTables?.ownName ?? 'headgate',
    ...(sharedTables && { sharedTables }),
    user: settings.haproxyUser,
    group: settings.haproxyGroup,
    certificates: paths.certificates,
    routes: paths.routes,
    pages: paths.pages,
    keys: paths.keys,
    dotSegments: settings.dotSegments ?? 'reject',
    ambiguousPaths: settings.ambiguousPaths ?? 'reject-where-guarded',
    forgetsSessions: asksForCertificates,
    hasRoutes,
    asksServers,
    verifiesTokens,
    reportsErrors,
    countsRoutes: settings.routeMetrics,
    boot: hasTls ? bootId() : '',
    log: logWords(settings.connectionLogTarget, paths.logSocket),
    logFormat: settings.connectionLogFormat,
    aclId,
    users,
  };
}

/** All values of the global section, as one text; equal texts give equal global sections. */
export function globalValues({
  aclId: _,
  users: __,
  formerlyDispatched: ___,
  ...values
}: RenderContext): string {
  return JSON.stringify(values);
}
