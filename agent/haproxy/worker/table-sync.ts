// Session affinity over a reload: the old worker sends its tables to the new one, but only if it has completely received
// them itself. HAProxy 2.6 waits for tables for 5 s after a cold start; a worker that is reloaded in that time sends none,
// and one that is reloaded while it receives a large table may send a part. Between two HAProxies, the agent copies entries.
// Why: docs/design/decisions/0007-table-peers.md

import { passed, sleep, systemClock } from '../../base/clock.ts';
import type { AffinityClient } from '../../dataplane/moves.ts';
import { isListener } from '../../model/names.ts';
import type { BootedWorker, Worker } from '../booted-worker.ts';
import { isForHaproxy, isRoutePool } from '../config/listener-config.ts';
import { GRACE_MS } from '../config/render-context.ts';
import { parseTable } from '../socket/readings.ts';

const POLL_INTERVAL_MS = 100;
/** Between two commands that keep a replaced worker awake, and for how long they are sent. */
const WAKE_INTERVAL_MS = 10;
const WAKE_FOR_MS = 3 * GRACE_MS;
/** HAProxy gives up waiting for tables after 5 s without news. */
const MAX_SYNC_SECONDS = 12;
/** PEERS_RESYNC_FINISHED of `show peers`, the same from 2.6 to 3.4: no more tables will come. */
const FINISHED = 3;

/** Resolves when a reload keeps all affinity, at once if the tables are empty. Errors: those of the connection. */
export async function tablesLearned({ runtime }: Worker): Promise<void> {
  while (!isFinished(await runtime.ask('show peers'))) {
    if (isEmpty(await tablesOf(runtime))) return;
    const uptime = /^Uptime_sec: (\d{1,10})$/m.exec(await runtime.ask('show info'))?.[1];
    if (uptime === undefined || Number(uptime) >= MAX_SYNC_SECONDS) return;
    await sleep(POLL_INTERVAL_MS);
  }
}

/** On the bulk lane; on the urgent lane if the socket was removed, so that no second connection is possible. */
function tablesOf(runtime: Worker['runtime']): Promise<string> {
  return runtime.ask('show table', { lane: 'bulk' }).catch(() => runtime.ask('show table'));
}

/**
 * Keeps a replaced worker awake until it has sent its tables. Before 3.1 a timer stops its listeners, and the transfer
 * continues only at the next event; without events clients lose their members for half a second. Never rejects.
 */
export async function keepAwakeForTables({ runtime }: Worker): Promise<void> {
  const until = performance.now() + WAKE_FOR_MS;
  try {
    while (performance.now() < until) {
      await runtime.ask('show version');
      await passed(systemClock, WAKE_INTERVAL_MS);
    }
  } catch {
    // It has ended.
  }
}

/** The clients with session affinity of these load balancers. Errors: those of the connection. */
export async function affinityClients(
  { runtime, booted }: BootedWorker,
  keys: Iterable<string>,
): Promise<readonly AffinityClient[]> {
  const listeners = [...keys]
    .flatMap((key) => booted.get(key)?.listeners ?? [])
    .filter((listener) => isForHaproxy(listener) || isRoutePool(listener));
  const names = listeners.filter(({ pool }) => pool.persistence > 0).map(({ name }) => name);
  const tables = await runtime.askAll(
    names.map((name) => `show table ${name}`),
    { lane: 'bulk' },
  );
  return names.flatMap((listener, at) =>
    parseTable(tables[at] ?? '').map((entry) => ({ listener, ...entry })),
  );
}

/** Gives these clients their members, behind all urgent commands. Errors: those of the connection. */
export async function rememberClients(
  { runtime, running }: Worker,
  clients: readonly AffinityClient[],
): Promise<void> {
  const known = clients.filter(({ listener }) => running.has(listener));
  const commands = known.map(({ listener, address, memberId }) => {
    return { kind: 'RememberClient', backend: listener, address, serverId: memberId } as const;
  });
  if (commands.length > 0) await runtime.send(commands, { lane: 'bulk' });
}

/** The output has no flags if HAProxy has no peers. */
function isFinished(text: string): boolean {
  const flags = /\bflags=0x([0-9a-f]{1,8})\b/.exec(text)?.[1];
  return flags === undefined || (Number.parseInt(flags, 16) & FINISHED) === FINISHED;
}

/** Only the tables of session affinity are sent, which have the names of their listeners. */
function isEmpty(text: string): boolean {
  for (const [, name = '', used] of text.matchAll(/^# table: (\S+), .*\bused:(\d{1,10})$/gm))
    if (isListener(name) && used !== '0') return false;
  return true;
}
