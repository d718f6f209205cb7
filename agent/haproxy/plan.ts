// Decides how to get from what a HAProxy worker runs to what a load balancer asks for:
// a list of runtime commands where that is enough, a reload where it is not.
// Pure: reads the running state of one worker and one load balancer, returns a plan, touches nothing.

import type { Plan } from '../dataplane/dataplane.ts';
import type { Listener, LoadBalancer, Member, Pool } from '../model/load-balancer.ts';
import {
  allowedLines,
  type Backend,
  backendsOf,
  isForHaproxy,
  serverKeywords,
  structureOf,
} from './config/listener-config.ts';
import type { Running, RunningListener, RunningServer } from './running.ts';
import type { Command } from './socket/commands.ts';

export type ReloadReason =
  | 'listener-added'
  | 'listener-removed'
  | 'listener-changed'
  | 'server-renumbered'
  | 'server-changed';

export interface HaproxyPlan extends Plan {
  /** In the order in which they must be sent: what adds capacity before what takes it away. */
  readonly commands: readonly Command[];
  /** Why commands are not enough; undefined where they are. They are sent all the same: the old worker serves on. */
  readonly reload: ReloadReason | undefined;
}

/**
 * `before` is the load balancer whose listeners this worker may still have, `after` the one that is wanted;
 * undefined where there was or shall be none.
 */
export function planLoadBalancer(
  key: string,
  running: Running,
  before: LoadBalancer | undefined,
  after: LoadBalancer | undefined,
): HaproxyPlan {
  const gain: Command[] = [];
  const loss: Command[] = [];
  let reload: ReloadReason | undefined;
  const wanted = new Set<string>();
  for (const listener of after?.listeners ?? []) {
    if (!isForHaproxy(listener)) continue;
    wanted.add(listener.name);
    const current = running.get(listener.name);
    if (current === undefined) {
      reload = 'listener-added';
      continue;
    }
    if (current.structure !== structureOf(listener)) reload ??= 'listener-changed';
    for (const backend of backendsOf(listener)) {
      const servers = backend.name === listener.name ? current : running.get(backend.name);
      const due = servers === undefined ? 'listener-changed' : planServers(backend, servers, gain, loss);
      reload ??= due;
    }
    planAllowed(listener, current, gain, loss);
  }
  for (const listener of before?.listeners ?? []) {
    if (!wanted.has(listener.name) && running.has(listener.name)) reload ??= 'listener-removed';
  }
  const commands = [...gain, ...loss];
  const effort = reload !== undefined ? 'reload' : commands.length > 0 ? 'runtime' : 'none';
  return { key, effort, commands, reload };
}

/** Gives a reason where a server would have to change its id, its address or its having a check: only a reload can. */
function planServers(
  { name: backend, pool, listener }: Backend,
  current: RunningListener,
  gain: Command[],
  loss: Command[],
): ReloadReason | undefined {
  let reload: ReloadReason | undefined;
  const names = new Set<string>();
  for (const member of pool.members) {
    names.add(member.name);
    const server = current.servers.get(member.name);
    if (server === undefined || server.state === 'gone') {
      if (isIdTaken(current, member)) reload = 'server-renumbered';
      else gain.push(...addServer(backend, pool, member));
    } else if (server.id !== member.id) {
      reload = 'server-renumbered';
    } else {
      const isOurs = current.structure === structureOf(listener);
      if (isOurs && isOther(pool, server)) reload ??= 'server-changed';
      planServer(backend, pool, member, server, gain, loss);
    }
  }
  for (const [server, { state }] of current.servers) {
    if (names.has(server) || state === 'maint' || state === 'gone') continue;
    loss.push({ kind: 'SetServerState', backend, server, state: 'maint' });
  }
  return reload;
}

/** Somebody has moved it, or added it without a check. Where the structure differs a reload is due anyway. */
function isOther({ monitor }: Pool, { check, isMoved }: RunningServer): boolean {
  return isMoved === true || (check === 'none') !== (monitor === undefined);
}

function isIdTaken(current: RunningListener, member: Member): boolean {
  for (const { id, state } of current.servers.values()) if (id === member.id && state !== 'gone') return true;
  return false;
}

function addServer(backend: string, pool: Pool, member: Member): Command[] {
  const { name: server, address, port } = member;
  const keywords = serverKeywords(pool, member, member.weight);
  const commands: Command[] = [{ kind: 'AddServer', backend, server, address, port, keywords }];
  commands.push({ kind: 'SetServerState', backend, server, state: member.state });
  if (pool.monitor !== undefined) commands.push(...enableHealth(backend, server));
  return commands;
}

/** A server that was added begins with the least health, so that the first failed check would be enough. */
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
  // Where whoever added it did not come so far.
  const enable: Command[] =
    monitor !== undefined && current.check === 'off' ? enableHealth(backend, server) : [];
  if (member.state === 'drain') {
    gain.push(...enable);
    const drains = current.state === 'drain' || (current.state === 'ready' && current.weight === 0);
    if (!drains) {
      loss.push({ kind: 'SetServerState', backend, server, state: 'drain' });
      // A client that is tied to it would go on coming: HAProxy drains only those that are not.
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
 * Lets new clients in before it shuts old ones out, so that nobody who is in both lists notices. What is new goes into
 * the first ACL, which takes as many as come; a worker that booted from a file of ours has at least that one.
 */
function planAllowed(listener: Listener, current: RunningListener, gain: Command[], loss: Command[]): void {
  const [first] = current.allowed;
  if (first === undefined) return;
  const missing = new Set(allowedLines(listener).flat());
  const wanted = new Set(missing);
  for (const { id: acl, cidrs } of current.allowed) {
    for (const cidr of cidrs) {
      missing.delete(cidr);
      if (!wanted.has(cidr)) loss.push({ kind: 'DeleteCidr', acl, cidr });
    }
  }
  for (const cidr of missing) gain.push({ kind: 'AddCidr', acl: first.id, cidr });
}
