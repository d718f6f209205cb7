// Reads the state of a HAProxy worker: all of it when the agent adopts a worker, one listener after a refused command, all
// servers in an audit.

import { Slice } from '../base/slice.ts';
import type { LoadBalancer } from '../model/load-balancer.ts';
import { backendsOf, isForHaproxy, structureOf } from './config/listener-config.ts';
import { Running, type RunningListener, type RunningServer } from './running.ts';
import type { Lane } from './socket/pipeline.ts';
import { parseAcl, parseAclList } from './socket/readings.ts';
import type { Runtime } from './socket/runtime.ts';
import { isAtHome, parseServersState, type ServerState } from './socket/servers-state.ts';
import type { Worker } from './worker.ts';

/**
 * The state of a worker that this agent did not boot. `isKnownFile`: it booted from the structure of `loadBalancers`;
 * otherwise only its servers are read, and every structure is ''. Errors: those of the connection.
 */
export async function readRunning(
  runtime: Runtime,
  loadBalancers: readonly LoadBalancer[],
  isKnownFile: boolean,
  aclId: (listener: string, line: number) => number,
): Promise<Running> {
  const running = new Running();
  if (!isKnownFile) {
    for (const [name, servers] of await readAllServers(runtime))
      running.put(name, { structure: '', allowed: [], servers });
    return running;
  }
  const listeners = loadBalancers.flatMap((each) => each.listeners).filter(isForHaproxy);
  const backends = listeners.flatMap(backendsOf);
  const names = backends.map(({ name }) => name);
  const servers = new Map<string, ReadonlyMap<string, RunningServer>>();
  await readServers(runtime, names, (name, answer) => servers.set(name, serversOf(answer)));
  const aclsFrom = await readAclLines(runtime);
  const reads = backends.map(async ({ name, listener }) => {
    const ids = name === listener.name ? aclsFrom(aclId(name, 0)) : [];
    running.put(name, {
      structure: structureOf(listener),
      allowed: await readAllowed(runtime, ids),
      servers: servers.get(name) ?? new Map(),
    });
  });
  await Promise.all(reads);
  return running;
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
