// Composes the message of a heartbeat from the texts that run, what HAProxy counts and what the kernel path reports. Pure.
// The numbers of listeners must be those of the controller, and a status must be a word that it knows.

import type { StatRow } from '../../pushed/pushed.ts';
import type { DatagramListener } from '../parts.ts';
import { isInternal, type ReportedText } from '../text/reported-text.ts';

export interface HeartbeatMessage {
  readonly id: string;
  readonly seq: number;
  readonly listeners: Readonly<Record<string, ReportedListener>>;
  readonly pools: Readonly<Record<string, ReportedPool>>;
  readonly ver: 3;
}

export interface ReportedListener {
  readonly status: string;
  readonly stats: ListenerStats;
}

/** Differences since the last heartbeat, but for `conns`. */
export interface ListenerStats {
  readonly tx: number;
  readonly rx: number;
  readonly conns: number;
  readonly totconns: number;
  readonly ereq: number;
}

export interface ReportedPool {
  readonly status: string;
  /** Status by member. */
  readonly members: Readonly<Record<string, string>>;
}

/** A load balancer whose HAProxy answers; its text is the one that runs. */
export interface RunningText {
  readonly text: ReportedText;
  readonly rows: readonly StatRow[];
}

/** Counted since the last heartbeat, by listener. */
export type Differences = ReadonlyMap<string, Omit<ListenerStats, 'conns'>>;

const NOTHING = { tx: 0, rx: 0, totconns: 0, ereq: 0 };

export function composeMessage(
  { id, seq }: { readonly id: string; readonly seq: number },
  running: readonly RunningText[],
  datagrams: readonly DatagramListener[],
  differences: Differences,
): HeartbeatMessage {
  const listeners: Record<string, ReportedListener> = {};
  const pools: Record<string, ReportedPool> = {};
  const stats = (listener: string, conns: number): ListenerStats => ({
    ...(differences.get(listener) ?? NOTHING),
    conns,
  });
  for (const { text, rows } of running) {
    const by = new Map(rows.map((row) => [`${row.get('pxname')} ${row.get('svname')}`, row]));
    for (const listener of text.listeners) {
      const row = by.get(`${listener.id} FRONTEND`);
      if (row === undefined) continue;
      listeners[listener.id] = {
        status: row.get('status') ?? '',
        stats: stats(listener.id, numberOf(row, 'scur')),
      };
    }
    const seen = new Set<string>();
    for (const { name, pool, members } of text.pools) {
      // The controller takes the last one of a pool with several listeners: they would take turns.
      if (seen.has(pool)) continue;
      seen.add(pool);
      const reported: Record<string, string> = {};
      for (const member of members) {
        const row = by.get(`${name} ${member}`);
        if (row !== undefined) reported[member] = memberStatus(row);
      }
      const status = members.length === 0 ? 'UP' : by.get(`${name} BACKEND`)?.get('status');
      if (status !== undefined) pools[name] = { status, members: reported };
    }
  }
  for (const { id: listener, stats: counted, pool } of datagrams) {
    listeners[listener] = { status: 'OPEN', stats: stats(listener, counted.conns) };
    if (pool !== undefined)
      pools[pool.id] = { status: pool.status, members: Object.fromEntries(pool.members) };
  }
  return { id, seq, listeners, pools, ver: 3 };
}

/** HAProxy keeps `UP` for a server with weight 0. */
function memberStatus(row: StatRow): string {
  const status = row.get('status') ?? '';
  return status === 'UP' && row.get('weight') === '0' ? 'DRAIN' : status;
}

/** What HAProxy has counted for each listener since its worker started. */
export function countersOf(rows: readonly StatRow[]): ReadonlyMap<string, Omit<ListenerStats, 'conns'>> {
  const counters = new Map<string, Omit<ListenerStats, 'conns'>>();
  for (const row of rows) {
    const name = row.get('pxname') ?? '';
    if (row.get('svname') !== 'FRONTEND' || isInternal(name)) continue;
    counters.set(name, {
      tx: numberOf(row, 'bout'),
      rx: numberOf(row, 'bin'),
      totconns: numberOf(row, 'stot'),
      ereq: numberOf(row, 'ereq'),
    });
  }
  return counters;
}

function numberOf(row: StatRow, column: string): number {
  return Number(row.get(column) || 0);
}

/**
 * The message without part of its members, from 0 to 1, those first whose status the controller knows without them.
 * Listeners always stay, because their number must be right.
 */
export function withoutMembers(
  message: HeartbeatMessage,
  part: number,
): { readonly message: HeartbeatMessage; readonly left: number } {
  const all = Object.entries(message.pools).flatMap(([pool, { members }]) =>
    Object.entries(members).map(([member, status]) => ({ pool, member, status })),
  );
  const left = Math.min(all.length, Math.ceil(all.length * part));
  const gone = new Set(
    all
      .map((each, at) => ({
        ...each,
        order: (NEEDLESS.has(each.status) ? 0 : all.length) + (all.length - at),
      }))
      .sort((a, b) => a.order - b.order)
      .slice(0, left)
      .map(({ pool, member }) => `${pool} ${member}`),
  );
  const pools = Object.entries(message.pools).map(([pool, { status, members }]) => {
    const kept = Object.entries(members).filter(([member]) => !gone.has(`${pool} ${member}`));
    return [pool, { status, members: Object.fromEntries(kept) }] as const;
  });
  return { message: { ...message, pools: Object.fromEntries(pools) }, left };
}

/** The controller concludes these of a member that is missing. */
const NEEDLESS: ReadonlySet<string> = new Set(['MAINT', 'no check']);
