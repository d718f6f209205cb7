// The readback of a HAProxy worker: all of it when the agent adopts a worker, one listener after a refused command, all servers
// in an audit.

import { Slice } from '../base/slice.ts';
import type { Certificate, Listener, LoadBalancer } from '../model/load-balancer.ts';
import { listenerOfFrontend } from '../model/names.ts';
import type { Worker } from './booted-worker.ts';
import { certificatesIn, tlsListeners } from './config/certificate-files.ts';
import { backendsOf, hasSection, isForHaproxy, isRouted, structureOf } from './config/listener-config.ts';
import { spareProfile } from './config/spare-pools.ts';
import { certificateFile, certificatesOf, crtListFile, nameOfCertificate } from './config/tls-config.ts';
import { MAPS } from './routes/maps.ts';
import type { RowTables } from './routes/patched-tables.ts';
import { mapFile } from './routes/route-files.ts';
import { SEVERAL, UNKNOWN_TABLE } from './routes/running-rows.ts';
import { tablesOf } from './routes/tables.ts';
import { certificateNames, Running, type RunningListener, type RunningServer } from './running.ts';
import type { RowCommand } from './socket/commands.ts';
import type { Lane } from './socket/pipeline.ts';
import {
  disabledFrontends,
  parseAcl,
  parseAclList,
  parseCertificate,
  parseCrtList,
  parseMap,
} from './socket/readings.ts';
import type { Runtime } from './socket/runtime.ts';
import { isAtHome, parseServersState, type ServerState } from './socket/servers-state.ts';
import { Spares } from './spares.ts';

/** Where a worker has its certificates and routes, and which rows each listener should have. */
export interface Folders {
  readonly certificates: string;
  readonly routes: string;
  readonly tablesOf: (listener: Listener) => RowTables;
}

/**
 * The state of a worker that this agent did not boot. `isKnownFile`: it booted from the structure of `loadBalancers`;
 * otherwise only its servers are read, and every structure is ''. Errors: those of the connection.
 */
export async function readRunning(
  runtime: Runtime,
  loadBalancers: readonly LoadBalancer[],
  isKnownFile: boolean,
  aclId: (listener: string, line: number) => number,
  { certificates = '', routes = '/', tablesOf: tables = tablesOf }: Partial<Folders> = {},
): Promise<Running> {
  const running = new Running();
  if (!isKnownFile) {
    for (const [name, servers] of await readAllServers(runtime))
      running.put(name, { structure: '', allowed: [], servers, certificates: new Set(), isDisabled: false });
    return running;
  }
  const listeners = loadBalancers.flatMap((each) => each.listeners).filter(hasSection);
  const backends = listeners.flatMap(backendsOf);
  const names = backends.map(({ name }) => name);
  const servers = new Map<string, ReadonlyMap<string, RunningServer>>();
  await readServers(runtime, names, (name, answer) => servers.set(name, serversOf(answer)));
  const aclsFrom = await readAclLines(runtime);
  const disabled = await readDisabled(runtime);
  const lists = await readCrtLists(runtime, loadBalancers, certificates);
  const routed = listeners.filter(isRouted).map((listener) => ({ name: listener.name, listener }));
  const reads = [...backends, ...routed].map(async ({ name, listener }) => {
    const hasClients = name === listener.name && isForHaproxy(listener);
    const ids = hasClients ? aclsFrom(aclId(name, 0)) : [];
    running.put(name, {
      structure: structureOf(listener),
      allowed: await readAllowed(runtime, ids),
      servers: servers.get(name) ?? new Map(),
      certificates: new Set(name === listener.name ? (lists.get(name) ?? certificateNames(listener)) : []),
      isDisabled: disabled.has(name),
    });
  });
  await Promise.all(reads);
  for (const listener of listeners.filter(isRouted)) running.rows.boot(listener.name, tables(listener));
  await correctRows({ runtime, running }, routes);
  // An earlier agent may have used some.
  const areUnused = running.rows.all('spares').next().done === true;
  if (areUnused) running.spares = new Spares(spareProfile(loadBalancers));
  const all = certificatesIn(loadBalancers);
  for (const [name, certificate] of await readCertificates(runtime, all, certificates))
    running.putCertificate(name, certificate);
  return running;
}

/**
 * Which of these certificates the worker has: undefined for one that differs, nothing for one of which the worker has no file.
 * Errors: those of the connection.
 */
export async function readCertificates(
  runtime: Runtime,
  certificates: readonly Certificate[],
  folder: string,
): Promise<ReadonlyMap<string, Certificate | undefined>> {
  const byName = new Map(certificates.map((each) => [each.name, each]));
  const questions = [...byName.keys()].map((name) => `show ssl cert ${certificateFile(folder, name)}`);
  const answers = await runtime.askAll(questions, { lane: 'bulk' });
  const found = new Map<string, Certificate | undefined>();
  for (const [at, [name, certificate]] of [...byName].entries()) {
    const shown = parseCertificate(answers[at] ?? '');
    const isSame = shown?.sha1 === certificate.sha1 && shown.chainLength === certificate.chainLength;
    found.set(name, isSame ? certificate : undefined);
  }
  return found;
}

/** The listeners whose sockets refuse connections. Errors: those of the connection. */
export async function readDisabled(runtime: Runtime): Promise<ReadonlySet<string>> {
  const frontends = disabledFrontends(await runtime.ask('show stat -1 1 -1', { lane: 'bulk' }));
  return new Set([...frontends].map(listenerOfFrontend));
}

/** The names of certificates in the crt-lists of listeners. */
async function readCrtLists(
  runtime: Runtime,
  loadBalancers: readonly LoadBalancer[],
  folder: string,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const listeners = [...tlsListeners(loadBalancers)];
  const questions = listeners.map(({ name }) => `show ssl crt-list ${crtListFile(folder, name)}`);
  const answers = await runtime.askAll(questions, { lane: 'bulk' });
  return new Map(
    listeners.map(({ name, tls }, at) => {
      const own = new Map(certificatesOf(tls).map((each) => [certificateFile(folder, each.name), each.name]));
      const files = parseCrtList(answers[at] ?? '');
      return [name, files.flatMap((file) => own.get(file) ?? nameOfCertificate(file))];
    }),
  );
}

/** Reads the servers and allowed clients of one listener into `running`, if `isCurrent` holds when the answers arrive. */
export async function readListener(
  { runtime, running }: Worker,
  name: string,
  isCurrent: () => boolean = () => true,
): Promise<void> {
  const current = running.get(name);
  if (current === undefined) return;
  const ids = current.allowed.map(({ id }) => id);
  const [state, allowed] = await Promise.all([
    runtime.ask(`show servers state ${name}`),
    readAllowed(runtime, ids),
  ]);
  if (isCurrent())
    running.put(name, { ...(running.get(name) ?? current), allowed, servers: serversOf(state) });
}

/**
 * Reads `show servers state` of these listeners, behind all urgent commands. One command per listener: while HAProxy 2.6
 * or 3.0 answers one about all of them, no server can be added. `take` gets the answers one by one, so that they are
 * never in memory together; `onBatch` is called after every 64 of them. Errors: those of the connection.
 */
export async function readServers(
  runtime: Runtime,
  listeners: readonly string[],
  take: (listener: string, answer: string) => void,
  onBatch: () => void = () => undefined,
): Promise<void> {
  const slice = new Slice();
  for (let at = 0; at < listeners.length; at += COMMANDS_PER_BATCH) {
    const some = listeners.slice(at, at + COMMANDS_PER_BATCH);
    const questions = some.map((name) => `show servers state ${name}`);
    const answers = await runtime.askAll(questions, { lane: 'bulk' });
    for (const [index, name] of some.entries()) {
      take(name, answers[index] ?? '');
      if (slice.isOver) await slice.breathe();
    }
    onBatch();
  }
}

const COMMANDS_PER_BATCH = 64;

/** The servers in an answer of `show servers state LISTENER`, by name; none if the worker lacks the listener. */
export function serversOf(answer: string): ReadonlyMap<string, RunningServer> {
  const servers = new Map<string, RunningServer>();
  for (const row of parseServersState(answer)) servers.set(row.server, serverOf(row));
  return servers;
}

function serverOf(row: ServerState): RunningServer {
  const { id, weight, state } = row;
  const known = { id, weight, state, check: checkOf(row) };
  // In an unknown file a name may not contain the address; the first reload replaces it.
  return isAtHome(row) ? known : { ...known, isMoved: true };
}

function checkOf({ check }: ServerState): RunningServer['check'] {
  return check === 'paused' ? 'on' : check;
}

/** All backends with servers, of a worker that booted from an unknown file. */
async function readAllServers(runtime: Runtime): Promise<ReadonlyMap<string, Map<string, RunningServer>>> {
  const slice = new Slice();
  const backends = new Map<string, Map<string, RunningServer>>();
  for (const row of parseServersState(await runtime.ask('show servers state', { lane: 'bulk' }))) {
    const servers = backends.get(row.backend) ?? new Map<string, RunningServer>();
    servers.set(row.server, serverOf(row));
    backends.set(row.backend, servers);
    if (slice.isOver) await slice.breathe();
  }
  return backends;
}

/**
 * Finds the ids of a listener's ACLs by the first one: they are in the lines that follow it in the file. Only the worker
 * knows how many its file had, and their ids.
 */
async function readAclLines(runtime: Runtime): Promise<(first: number) => readonly number[]> {
  const slice = new Slice();
  const lineOf = new Map<number, number>();
  const idAt = new Map<number, number>();
  for (const { id, line } of parseAclList(await runtime.ask('show acl', { lane: 'bulk' }))) {
    lineOf.set(id, line);
    idAt.set(line, id);
    if (slice.isOver) await slice.breathe();
  }
  return (first) => {
    const ids = [first];
    let line = lineOf.get(first) ?? Number.NaN;
    for (let id = idAt.get(++line); id !== undefined; id = idAt.get(++line)) ids.push(id);
    return ids;
  };
}

/** The CIDRs of ACLs, in the order of `ids`. */
export async function readAllowed(
  runtime: Runtime,
  ids: readonly number[],
  lane: Lane = 'urgent',
): Promise<RunningListener['allowed']> {
  const questions = ids.map((id) => `show acl #${id}`);
  const answers = await runtime.askAll(questions, { lane });
  return ids.map((id, at) => ({ id, cidrs: new Set(parseAcl(answers[at] ?? '')) }));
}

/**
 * Reads all maps of routes and corrects the record of their rows. A map whose record changes meanwhile is left out.
 * Returns the differences in words, by listener. Errors: those of the connection.
 */
export async function correctRows(
  { runtime, running }: Worker,
  folder: string,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const differences = new Map<string, string[]>();
  const [anyListener] = running.rows.listeners();
  if (anyListener === undefined) return differences;
  for (const map of MAPS) {
    const before = running.rows.changes;
    const text = await runtime.ask(`show map ${mapFile(folder, map)}`, { lane: 'bulk' });
    const found = await valuesByKey(text);
    // An answer of the bulk lane may overtake replies to commands.
    await runtime.ask('show version');
    if (running.rows.changes !== before) continue;
    const differ = (listener: string, what: string): void => {
      differences.get(listener)?.push(what) ?? differences.set(listener, [what]);
    };
    for (const { listener, table, row } of running.rows.all(map)) {
      const value = found.get(row.key);
      found.delete(row.key);
      if (value === row.value) continue;
      if (value === undefined) running.rows.remove(listener, table, row);
      else running.rows.put(listener, table, { ...row, value });
      differ(listener, `the row ${map} ${row.key} ${inWords(value)}`);
    }
    for (const [key, value] of found) {
      running.rows.put(anyListener, UNKNOWN_TABLE, { map, key, value });
      differ(anyListener, `the row ${map} ${key} was added by another process`);
    }
  }
  return differences;
}

function inWords(value: string | undefined): string {
  if (value === undefined) return 'is missing';
  return value === SEVERAL ? 'is there several times' : `has the value ${value}`;
}

async function valuesByKey(text: string): Promise<Map<string, string>> {
  const slice = new Slice();
  const found = new Map<string, string>();
  for (const { key, value } of parseMap(text)) {
    found.set(key, found.has(key) ? SEVERAL : value);
    if (slice.isOver) await slice.breathe();
  }
  return found;
}

/** Corrects the record of the rows of refused commands. */
export async function rereadRows(
  { runtime, running }: Worker,
  commands: readonly RowCommand[],
): Promise<void> {
  for (const { map, position } of commands) {
    const { listener, table, row } = position;
    const rows = parseMap(await runtime.ask(`show map ${map}`, { lane: 'bulk' }));
    const [found, ...others] = [...rows].filter(({ key }) => key === row.key);
    if (found === undefined) running.rows.remove(listener, table, row);
    else running.rows.put(listener, table, { ...row, value: others.length > 0 ? SEVERAL : found.value });
  }
}
