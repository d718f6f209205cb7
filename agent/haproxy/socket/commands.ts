// The vocabulary of a plan: every change that a running HAProxy can be told over its socket, as typed values.
// Nothing but these values ever becomes text for the socket (command-text.ts), each token checked on the way.

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

/** A new server; HAProxy starts it in maintenance. */
export interface AddServer {
  readonly kind: 'AddServer';
  readonly backend: string;
  readonly server: string;
  readonly address: string;
  readonly port: number;
  /** `id N weight N ...`: the same words that the server's line in the file has after its address. */
  readonly keywords: readonly string[];
}

export interface SetServerState {
  readonly kind: 'SetServerState';
  readonly backend: string;
  readonly server: string;
  readonly state: 'ready' | 'drain' | 'maint';
}

/** A dynamic server's check starts only when told. */
export interface EnableHealth {
  readonly kind: 'EnableHealth';
  readonly backend: string;
  readonly server: string;
}

/** As if it had passed all its checks: only `fall` failed ones in a row take it down, not the first. */
export interface AssumeHealth {
  readonly kind: 'AssumeHealth';
  readonly backend: string;
  readonly server: string;
}

export interface SetServerWeight {
  readonly kind: 'SetServerWeight';
  readonly backend: string;
  readonly server: string;
  /** 0 to 256. */
  readonly weight: number;
}

/** Ends the session persistence of all clients that are tied to a server, so that they come to another one. */
export interface ForgetClients {
  readonly kind: 'ForgetClients';
  readonly backend: string;
  readonly serverId: number;
}

export interface ShutdownSessions {
  readonly kind: 'ShutdownSessions';
  readonly backend: string;
  readonly server: string;
}

/** Only a server in maintenance without connections can be deleted. */
export interface DeleteServer {
  readonly kind: 'DeleteServer';
  readonly backend: string;
  readonly server: string;
}

export interface AddCidr {
  readonly kind: 'AddCidr';
  /** The ACL's unique id, as `-u` in the file. */
  readonly acl: number;
  readonly cidr: string;
}

export interface DeleteCidr {
  readonly kind: 'DeleteCidr';
  readonly acl: number;
  readonly cidr: string;
}
