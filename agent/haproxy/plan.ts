// Plans how a HAProxy worker gets from its running state to a desired load balancer: by runtime commands, or by a reload
// if commands are not enough. Pure.

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
  /** In the order in which they must be sent: additions of capacity first. */
  readonly commands: readonly Command[];
  /** Why commands are not enough; undefined if they are. They are sent in any case, because the old worker still serves. */
  readonly reload: ReloadReason | undefined;
}

/**
 * `before`: the load balancer that the worker booted with, undefined if it had none; `after`: the desired one, undefined
 * if it is removed.
 */
export function planLoadBalancer(
  key: string,
  running: Running,
  before: LoadBalancer | undefined,
  after: LoadBalancer | undefined,
): HaproxyPlan {
  /** Commands that add capacity or clients, and those that remove them. */
  const gain: Command[] = [];
  const loss: Command[] = [];
  let reload: ReloadReason | undefined;
  const desired = new Set<string>();
  for (const listener of after?.listeners ?? []) {
    if (!isForHaproxy(listener)) continue;
    desired.add(listener.name);
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
    if (!desired.has(listener.name) && running.has(listener.name)) reload ??= 'listener-removed';
  }
  const commands = [...gain, ...loss];
  const effort = reload !== undefined ? 'reload' : commands.length > 0 ? 'runtime' : 'none';
  return { key, effort, commands, reload };
}

/** A reason if a server must get another id, address, or a check or none: only a reload can do that. */
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
      // If the structure differs, a reload is due anyway.
      const isSameStructure = current.structure === structureOf(listener);
      if (isSameStructure && isChangedOutside(pool, server)) reload ??= 'server-changed';
      planServer(backend, pool, member, server, gain, loss);
    }
  }
  for (const [server, { state }] of current.servers) {
    if (names.has(server) || state === 'maint' || state === 'gone') continue;
    loss.push({ kind: 'SetServerState', backend, server, state: 'maint' });
  }
  return reload;
}

/** Another process moved the server, or added it with or without a check. */
function isChangedOutside({ monitor }: Pool, { check, isMoved }: RunningServer): boolean {
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
