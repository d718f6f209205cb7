// The commands of a plan: every change that HAProxy's socket can make, as typed values. command-text.ts turns them into
// text, and checks each token.

export type Command =
  | AddServer
  | SetServerState
  | EnableHealth
  | AssumeHealth
  | SetServerWeight
  | ForgetClients
  | ShutdownSessions
  | DeleteServer
  | AddCidr
  | DeleteCidr;

interface ServerCommand<Kind extends string> {
  readonly kind: Kind;
  readonly backend: string;
  readonly server: string;
}

/** HAProxy starts a new server in maintenance. */
export interface AddServer extends ServerCommand<'AddServer'> {
  readonly address: string;
  readonly port: number;
  /** `id N weight N ...`: the words after the address in the server's line of the file. */
  readonly keywords: readonly string[];
}

export interface SetServerState extends ServerCommand<'SetServerState'> {
  readonly state: 'ready' | 'drain' | 'maint';
}

/** Starts the check of a server that was added at runtime. */
export type EnableHealth = ServerCommand<'EnableHealth'>;

/** Treats all checks as passed: after that only `fall` failed checks in a row take the server down, not the first. */
export type AssumeHealth = ServerCommand<'AssumeHealth'>;

export interface SetServerWeight extends ServerCommand<'SetServerWeight'> {
  /** 0 to 256. */
  readonly weight: number;
}

/** Ends the session persistence of a server's clients, so that they get another server. */
export interface ForgetClients {
  readonly kind: 'ForgetClients';
  readonly backend: string;
  readonly serverId: number;
}

export type ShutdownSessions = ServerCommand<'ShutdownSessions'>;

/** Only a server in maintenance without connections can be deleted. */
export type DeleteServer = ServerCommand<'DeleteServer'>;

interface AclCommand<Kind extends string> {
  readonly kind: Kind;
  /** The number after `-u` in the file. */
  readonly acl: number;
  readonly cidr: string;
}

export type AddCidr = AclCommand<'AddCidr'>;
export type DeleteCidr = AclCommand<'DeleteCidr'>;
