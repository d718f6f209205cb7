// Plans how a HAProxy worker gets from its running state to a desired load balancer: by runtime commands, or by a reload
// if commands are not enough. Pure.
// Why: docs/design/decisions/0005-options-reload.md
// Why: docs/design/decisions/0044-no-endpoints-refuse.md

import type { Plan } from '../dataplane/forwarder.ts';
import { guardsMore } from '../model/client-guards.ts';
import type { Certificate, Listener, LoadBalancer, Member, Pool } from '../model/load-balancer.ts';
import {
  allowedLines,
  type Backend,
  backendsOf,
  cookieKeyOf,
  frontendsOf,
  hasSection,
  isForHaproxy,
  isRouted,
  isRoutePool,
  refusesConnections,
  serverKeywords,
  structureOf,
} from './config/listener-config.ts';
import { certificateFile, crtLines, crtLineText, crtListFile } from './config/tls-config.ts';
import { planRows, type RoutesForPlan } from './plan-rows.ts';
import { type MapRow, rowId } from './routes/maps.ts';
import { mapFile } from './routes/route-files.ts';
import { untilReload } from './routes/rows-until-reload.ts';
import { tablesOf } from './routes/tables.ts';
import type { Running, RunningListener, RunningServer } from './running.ts';
import { MAX_COMMAND_BYTES } from './socket/command-text.ts';
import type { Command } from './socket/commands.ts';
import { SPARE_TABLE, type SpareOffer } from './spares.ts';

export type ReloadReason =
  | 'listener-added'
  | 'listener-removed'
  | 'listener-changed'
  | 'certificate-too-long'
  | 'server-renumbered'
  | 'server-changed';

export interface HaproxyPlan extends Plan {
  /** In the order in which they must be sent: additions of capacity first. */
  readonly commands: readonly Command[];
  /** Why commands are not enough; undefined if they are. Commands are sent in any case, because the old worker still serves. */
  readonly reload: ReloadReason | undefined;
  /** Rows of routes that are not needed and not deleted yet: by listener, by table. */
  readonly unneededRows: ReadonlyMap<string, ReadonlyMap<string, readonly MapRow[]>>;
}

/** What a plan must know of the files of certificates. */
export interface CertificatesForPlan {
  readonly folder: string;
  /** HAProxy has refused it: the one before stays. */
  readonly isRefused: (certificate: Certificate) => boolean;
}

/**
 * `withdrawn`: another HAProxy serves it as well, and its listeners here take no more connections, whatever members they have.
 * `left`: it is not desired any more, and requests may still be on their way to it: its pools stay as they are.
 */
export type Serving = 'served' | 'withdrawn' | 'left';

const NO_PLACES: CertificatesForPlan = { folder: '', isRefused: () => false };
const NO_ROUTES: RoutesForPlan = { folder: '/', tablesOf, isDue: () => false };

export interface PlanOptions {
  readonly key: string;
  readonly running: Running;
  /** The load balancer that the worker booted with; undefined if it had none. */
  readonly before: LoadBalancer | undefined;
  /** The desired one; undefined if it is removed or has left. */
  readonly after: LoadBalancer | undefined;
  readonly certificates?: CertificatesForPlan;
  readonly serving?: Serving;
  readonly routes?: RoutesForPlan;
  /** Shared by the plans of one round, so that no two of them use the same spare backend. */
  readonly spares?: SpareOffer;
}

export function planLoadBalancer(options: PlanOptions): HaproxyPlan {
  const { key, running, before, after, serving = 'served' } = options;
  const { certificates: places = NO_PLACES, routes = NO_ROUTES, spares = running.spares.offer() } = options;
  /** Commands that add capacity or clients, and those that remove them. */
  const gain: Command[] = [];
  const loss: Command[] = [];
  /** Rows that say what clients must prove now. */
  const guards: Command[] = [];
  let reload: ReloadReason | undefined;
  let waits = false;
  const unneededRows = new Map<string, ReadonlyMap<string, readonly MapRow[]>>();
  const desired = new Set<string>();
  for (const listener of after?.listeners ?? []) {
    if (!hasSection(listener)) continue;
    desired.add(listener.name);
    const current = running.get(listener.name);
    const spare = current === undefined ? spares(listener) : running.spares.given(listener.name);
    if (spare !== undefined) planSpare(listener, spare, running, routes.folder, gain);
    if (current === undefined) {
      if (spare === undefined) reload = 'listener-added';
      else
        for (const member of listener.pool.members)
          gain.push(...addServer(listener.name, listener.pool, member, places.folder));
      continue;
    }
    if (current.structure !== structureOf(listener)) reload ??= 'listener-changed';
    // Before the servers that are added with it.
    const forMembers = listener.pool.tls?.certificate;
    if (forMembers !== undefined) {
      const due = planCertificate(listener.name, forMembers, running, places, gain);
      reload ??= due;
    }
    const isShut = serving === 'withdrawn' || running.unguarded.has(listener.name);
    const refuses = isShut || refusesConnections(listener);
    // Before its last server goes, and below after its first one has come.
    if (isForHaproxy(listener) && refuses && !current.isDisabled)
      loss.push({ kind: 'DisableFrontend', listener: listener.name, frontend: frontendsOf(listener)[0] });
    for (const backend of backendsOf(listener)) {
      const servers = backend.name === listener.name ? current : running.get(backend.name);
      const due =
        servers === undefined ? 'listener-changed' : planServers(backend, servers, places.folder, gain, loss);
      reload ??= due;
    }
    // Clients may still connect to the old frontend of a listener that the kernel serves from now on.
    if (isForHaproxy(listener)) {
      planAllowed(listener, current, gain, loss);
      if (!refuses && current.isDisabled)
        for (const frontend of frontendsOf(listener))
          gain.push({ kind: 'EnableFrontend', listener: listener.name, frontend });
    }
    const booted = before?.listeners.find(({ name }) => name === listener.name);
    if (guardsMore(listener.tls, booted?.tls)) {
      // The worker does not ask its clients for certificates there: its rows stay until the reload, with which it does.
      reload ??= 'listener-changed';
    } else if (isRouted(listener)) {
      const now = untilReload(listener, booted);
      const { unneeded, waitsForPools } = planRows(now, running, routes, gain, loss, guards);
      unneededRows.set(listener.name, unneeded);
      waits ||= waitsForPools;
    }
    // A line that asks for the certificates of clients stays until the worker that knows the authority of the next one.
    const isSame = current.structure === structureOf(listener);
    const ofCertificates = planCertificates(listener, current, running, places, gain, isSame ? loss : []);
    reload ??= ofCertificates;
  }
  for (const listener of before?.listeners ?? []) {
    if (desired.has(listener.name) || !running.has(listener.name)) continue;
    // A pool without routes gets no traffic: its backend stays until the next reload, without servers.
    if (!isRoutePool(listener)) reload ??= 'listener-removed';
    else if (serving !== 'left') loss.push(...removeServers(listener.name, running.get(listener.name)));
  }
  // A spare backend is without servers until the pool is there again.
  for (const name of running.spares.poolsOf(key)) {
    if (!desired.has(name) && serving !== 'left') loss.push(...removeServers(name, running.get(name)));
  }
  const commands = [...gain, ...loss, ...guards];
  // The load balancers of the pools request the reload.
  const effort = reload !== undefined || waits ? 'reload' : commands.length > 0 ? 'runtime' : 'none';
  return { key, effort, waits: waits && reload === undefined, commands, reload, unneededRows };
}

/** A reason if a server must get another id, address, or a check or none: only a reload can do that. */
function planServers(
  { name: backend, pool, listener }: Backend,
  current: RunningListener,
  folder: string,
  gain: Command[],
  loss: Command[],
): ReloadReason | undefined {
  let reload: ReloadReason | undefined;
  let isAdded = false;
  const names = new Set<string>();
  for (const member of pool.members) {
    names.add(member.name);
    const server = current.servers.get(member.name);
    if (server === undefined || server.state === 'gone') {
      if (isIdTaken(current, member)) reload = 'server-renumbered';
      else {
        gain.push(...addServer(backend, pool, member, folder));
        isAdded = true;
      }
    } else if (server.id !== member.id) {
      reload = 'server-renumbered';
    } else {
      // If the structure differs, a reload is due anyway.
      const isSameStructure = current.structure === structureOf(listener);
      if (isSameStructure && isChangedOutside(pool, server)) reload ??= 'server-changed';
      planServer(backend, pool, member, server, gain, loss);
    }
  }
  // A server that was added has no cookie until the key is set.
  if (pool.cookie !== '' && isAdded)
    gain.push({ kind: 'SetCookieKey', backend, key: cookieKeyOf(backend, pool) });
  loss.push(...removeServers(backend, current, names));
  return reload;
}

/** All but those with these names. */
function removeServers(
  backend: string,
  current: RunningListener | undefined,
  kept: ReadonlySet<string> = new Set(),
): Command[] {
  const others = [...(current?.servers ?? [])].filter(
    ([server, { state }]) => !kept.has(server) && state !== 'maint' && state !== 'gone',
  );
  return others.map(([server]) => ({ kind: 'SetServerState', backend, server, state: 'maint' }));
}

/** The row that leads from a pool to its spare backend, before its servers and the rows that lead to the pool. */
function planSpare(pool: Listener, row: MapRow, running: Running, folder: string, gain: Command[]): void {
  const { name } = pool;
  if (running.rows.rowsOf(name, SPARE_TABLE).get(rowId(row))?.value === row.value) return;
  const position = { listener: name, table: SPARE_TABLE, row, structure: structureOf(pool) };
  gain.push({ kind: 'AddMapEntry', map: mapFile(folder, row.map), key: row.key, value: row.value, position });
}

/** Another process moved the server, or added it with or without a check. */
function isChangedOutside({ monitor }: Pool, { check, isMoved }: RunningServer): boolean {
  return isMoved === true || (check === 'none') !== (monitor === undefined);
}

function isIdTaken(current: RunningListener, member: Member): boolean {
  for (const { id, state } of current.servers.values()) if (id === member.id && state !== 'gone') return true;
  return false;
}

function addServer(backend: string, pool: Pool, member: Member, folder: string): Command[] {
  const { name: server, address, port } = member;
  const keywords = serverKeywords(pool, member, member.weight, folder);
  const commands: Command[] = [{ kind: 'AddServer', backend, server, address, port, keywords }];
  commands.push({ kind: 'SetServerState', backend, server, state: member.state });
  if (pool.monitor !== undefined) commands.push(...enableHealth(backend, server));
  return commands;
}

/** An added server starts with the lowest health, at which the first failed check would take it down. */
function enableHealth(backend: string, server: string): Command[] {
  return [
    { kind: 'EnableHealth', backend, server },
    { kind: 'AssumeHealth', backend, server },
  ];
}

function planServer(
  backend: string,
  { persistence, monitor }: Pool,
  member: Member,
  current: RunningServer,
  gain: Command[],
  loss: Command[],
): void {
  const server = member.name;
  // The agent that added the server may have ended before it enabled the check.
  const enable: Command[] =
    monitor !== undefined && current.check === 'off' ? enableHealth(backend, server) : [];
  if (member.state === 'drain') {
    gain.push(...enable);
    const drains = current.state === 'drain' || (current.state === 'ready' && current.weight === 0);
    if (!drains) {
      loss.push({ kind: 'SetServerState', backend, server, state: 'drain' });
      // HAProxy does not drain clients with session affinity.
      if (persistence > 0) loss.push({ kind: 'ForgetClients', backend, serverId: member.id });
    }
    return;
  }
  if (current.weight !== member.weight)
    gain.push({ kind: 'SetServerWeight', backend, server, weight: member.weight });
  if (current.state !== 'ready') gain.push({ kind: 'SetServerState', backend, server, state: 'ready' });
  gain.push(...enable);
}

/**
 * Adds CIDRs before it removes others, so that clients in both lists are never refused. New CIDRs go into the first ACL,
 * which takes any number; a worker that booted from a file of the agent has at least that one.
 */
function planAllowed(listener: Listener, current: RunningListener, gain: Command[], loss: Command[]): void {
  const [first] = current.allowed;
  if (first === undefined) return;
  const missing = new Set(allowedLines(listener).flat());
  const desired = new Set(missing);
  for (const { id: acl, cidrs } of current.allowed) {
    for (const cidr of cidrs) {
      missing.delete(cidr);
      if (!desired.has(cidr)) loss.push({ kind: 'DeleteCidr', acl, cidr });
    }
  }
  for (const cidr of missing) gain.push({ kind: 'AddCidr', acl: first.id, cidr });
}

/** Room for the words of the command that carries a certificate. */
const MAX_CERTIFICATE_BYTES = MAX_COMMAND_BYTES - 1024;

/** The content of a certificate. A reason if it does not fit into a command. */
function planCertificate(
  listener: string,
  certificate: Certificate,
  running: Running,
  { folder, isRefused }: CertificatesForPlan,
  gain: Command[],
): ReloadReason | undefined {
  const { name, fingerprint, bytes } = certificate;
  const known = running.certificate(name);
  if (known?.fingerprint === fingerprint || isRefused(certificate)) return undefined;
  if (bytes > MAX_CERTIFICATE_BYTES) return 'certificate-too-long';
  const file = certificateFile(folder, name);
  if (known === undefined) gain.push({ kind: 'NewCertificate', listener, file, certificate });
  gain.push({ kind: 'StageCertificate', listener, file, certificate });
  gain.push({ kind: 'CommitCertificate', listener, file, certificate });
  return undefined;
}

/** A certificate is in the worker before its line in the crt-list. A reason if it does not fit into a command. */
function planCertificates(
  { name: listener, tls }: Listener,
  current: RunningListener,
  running: Running,
  places: CertificatesForPlan,
  gain: Command[],
  loss: Command[],
): ReloadReason | undefined {
  const { folder, isRefused } = places;
  if (tls === undefined || current.certificates.size === 0) return undefined;
  const list = crtListFile(folder, listener);
  const desired = new Set<string>();
  let reload: ReloadReason | undefined;
  for (const line of crtLines(tls)) {
    const { certificate } = line;
    const { name } = certificate;
    desired.add(name);
    const due = planCertificate(listener, certificate, running, places, gain);
    reload ??= due;
    if (current.certificates.has(name)) continue;
    const isThere = running.certificate(name) !== undefined || !isRefused(certificate);
    if (isThere && reload === undefined) {
      const file = certificateFile(folder, name);
      const text = crtLineText(folder, line);
      const words = text === file ? {} : { line: text };
      gain.push({ kind: 'AddToList', listener, list, file, certificate: name, ...words });
    }
  }
  // The default one cannot be removed; another default is another structure.
  const [byDefault] = current.certificates;
  for (const name of current.certificates) {
    if (desired.has(name) || name === byDefault) continue;
    loss.push({
      kind: 'RemoveFromList',
      listener,
      list,
      file: certificateFile(folder, name),
      certificate: name,
    });
  }
  return reload;
}
