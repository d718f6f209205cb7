// Reads the current sessions of one listener and its members: `show stat LISTENER 7 -1`, and the same of its fallback
// backend.

import type { ListenerStats, ServerStats } from '../../dataplane/status.ts';
import { fallbackBackend } from '../../model/names.ts';
import type { Runtime } from '../socket/runtime.ts';
import { positionOf } from './columns.ts';
import { parseStatRows } from './stat-rows.ts';

const [SESSIONS, RATE] = [positionOf('scur'), positionOf('rate')];
const NONE: ServerStats = { sessions: 0, sessionRate: 0 };

/** Errors: those of Runtime.ask(); RUNTIME_REPLY if HAProxy does not have the listener. */
export async function readListenerStats(
  runtime: Pick<Runtime, 'ask'>,
  listener: string,
): Promise<ListenerStats> {
  const ask = (name: string) => runtime.ask(`show stat ${name} 7 -1`, { lane: 'bulk' });
  const own = await ask(listener);
  // While all members are down the fallback backend has the connections.
  const fallback = await ask(fallbackBackend(listener));
  return parseListenerStats(own, ...(fallback.startsWith('#') ? [fallback] : []));
}

/** One answer for each backend of the listener. Errors: RUNTIME_REPLY with HAProxy's text, such as "No such proxy." */
export function parseListenerStats(...answers: readonly string[]): ListenerStats {
  const servers = new Map<string, ServerStats>();
  let frontend: ServerStats | undefined;
  let backends = NONE;
  for (const { name, values } of answers.flatMap(parseStatRows)) {
    const row = { sessions: values[SESSIONS] ?? 0, sessionRate: values[RATE] ?? 0 };
    if (name === 'FRONTEND') frontend = row;
    else if (name === 'BACKEND') backends = sum(backends, row);
    else servers.set(name, sum(servers.get(name) ?? NONE, row));
  }
  // Before 2.8 a listener's frontend and backend have one name, and HAProxy answers with the first of them only.
  return { ...(frontend ?? backends), servers };
}

/** The sum over several workers; nothing without any. */
export function sumOfStats(all: readonly ListenerStats[]): ListenerStats {
  const servers = new Map<string, ServerStats>();
  for (const each of all)
    for (const [name, row] of each.servers) servers.set(name, sum(servers.get(name) ?? NONE, row));
  return { ...all.reduce<ServerStats>(sum, NONE), servers };
}

function sum(one: ServerStats, other: ServerStats): ServerStats {
  return { sessions: one.sessions + other.sessions, sessionRate: one.sessionRate + other.sessionRate };
}
