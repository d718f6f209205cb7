// The commands of a plan: every change that HAProxy's socket can make, as typed values. command-text.ts turns them into
// text, and checks each token.

import type { Certificate } from '../../model/load-balancer.ts';
import type { MapRow } from '../routes/maps.ts';

export type Command =
  | AddServer
  | SetServerState
  | EnableHealth
  | AssumeHealth
  | AssumeFailure
  | SetServerWeight
  | ForgetClients
  | RememberClient
  | ShutdownSessions
  | DeleteServer
  | SetCookieKey
  | AddCidr
  | DeleteCidr
  | FrontendCommand
  | MapEntryCommand
  | ClearMap
  | CertificateCommand
  | CrtListCommand
  | AbortCertificate;

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

/** Gives the server no new connections, until AssumeHealth or, with a check, until this passes. */
export type AssumeFailure = ServerCommand<'AssumeFailure'>;

export interface SetServerWeight extends ServerCommand<'SetServerWeight'> {
  /** 0 to 256. */
  readonly weight: number;
}

/** Gives the servers of a backend, also those that were added, their cookies. */
export interface SetCookieKey {
  readonly kind: 'SetCookieKey';
  readonly backend: string;
  /** The same after a reload, and on the other host. */
  readonly key: string;
}

/** Ends the session persistence of a server's clients, so that they get another server. */
export interface ForgetClients {
  readonly kind: 'ForgetClients';
  readonly backend: string;
  readonly serverId: number;
}

/** Gives a client with session persistence its server. */
export interface RememberClient {
  readonly kind: 'RememberClient';
  readonly backend: string;
  /** The client's address. */
  readonly address: string;
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

/**
 * `SetMapEntry` changes the value of an entry that the map has; `AddMapEntry` must not be sent for one that it has, because
 * HAProxy would have it twice.
 */
export interface MapEntryCommand {
  readonly kind: 'AddMapEntry' | 'SetMapEntry' | 'DeleteMapEntry';
  /** The file in the configuration. */
  readonly map: string;
  readonly key: string;
  /** Not sent with `DeleteMapEntry`. */
  readonly value: string;
  /** The position of a route's row. */
  readonly position?: RowPosition;
}

export interface RowPosition {
  readonly listener: string;
  /** The listener's table that the row belongs to. */
  readonly table: string;
  readonly row: MapRow;
  /** The structure of the pool that gets a spare backend by this row: see structureOf(). */
  readonly structure?: string;
}

export interface RowCommand extends MapEntryCommand {
  readonly position: RowPosition;
}

export function isOfRow(command: Command): command is RowCommand {
  return 'position' in command && command.position !== undefined;
}

export interface ClearMap {
  readonly kind: 'ClearMap';
  readonly map: string;
}

export function isOfCertificate(command: Command): command is CertificateCommand {
  const { kind } = command;
  return kind === 'NewCertificate' || kind === 'StageCertificate' || kind === 'CommitCertificate';
}

/** True for a command that belongs to a change of HAProxy's files of certificates and lists. */
export function isOfTls(command: Command): command is CertificateCommand | CrtListCommand {
  return isOfCertificate(command) || command.kind === 'AddToList' || command.kind === 'RemoveFromList';
}

/**
 * New content of a certificate: `NewCertificate` if the worker does not have the file yet, then `StageCertificate`, which sends
 * the text of the file, then `CommitCertificate`. One at a time, because HAProxy has one transaction.
 */
export interface CertificateCommand {
  readonly kind: 'NewCertificate' | 'StageCertificate' | 'CommitCertificate';
  /** One of the listeners that have it. */
  readonly listener: string;
  /** The path by which HAProxy knows it. */
  readonly file: string;
  readonly certificate: Certificate;
}

/** A listener gets a certificate besides the others, or loses one; not the first, which is its default. */
export interface CrtListCommand {
  readonly kind: 'AddToList' | 'RemoveFromList';
  readonly listener: string;
  readonly list: string;
  readonly file: string;
  readonly certificate: string;
  /** The whole line, if it has options or a filter behind the file. */
  readonly line?: string;
}

/** Ends a transaction that a refused command has left open. */
export interface AbortCertificate {
  readonly kind: 'AbortCertificate';
  readonly file: string;
}

/** Its sockets refuse connections from now on, and accept them again; those that are open continue. A reload enables it. */
export interface FrontendCommand {
  readonly kind: 'DisableFrontend' | 'EnableFrontend';
  readonly listener: string;
  readonly frontend: string;
}

export function isOfFrontend(command: Command): command is FrontendCommand {
  return command.kind === 'DisableFrontend' || command.kind === 'EnableFrontend';
}
