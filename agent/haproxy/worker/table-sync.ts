// Session affinity over a reload: the old worker teaches the new one its tables, but only what it has wholly learned
// itself. HAProxy 2.6 counts as learning for 5 s after a cold start, and a worker that is reloaded in that time hands
// on nothing; one that is reloaded while it is being taught a large table may hand on a part (measured).

import { setTimeout as delay } from 'node:timers/promises';
import { GRACE_MS } from '../config/grace.ts';
import type { Worker } from '../worker.ts';

const POLL = 100;
/** Milliseconds between two questions to a worker that was replaced, and for how long it is asked. */
const NUDGE = 10;
const NUDGED_FOR = 3 * GRACE_MS;
/** Seconds; HAProxy itself gives up learning after 5 s without news. */
const OLDEST_LEARNER = 12;
/** PEERS_RESYNC_FINISHED of `show peers`, the same from 2.6 to 3.4: neither local nor remote tables are still to come. */
const FINISHED = 3;

/** Returns once a reload costs nobody's affinity, at once where nobody has any. Errors: those of the connection. */
export async function tablesLearned({ runtime }: Worker): Promise<void> {
  while (!isFinished(await runtime.ask('show peers'))) {
    if (isEmpty(await tablesOf(runtime))) return;
    const uptime = /^Uptime_sec: (\d{1,10})$/m.exec(await runtime.ask('show info'))?.[1];
    if (uptime === undefined || Number(uptime) >= OLDEST_LEARNER) return;
    await delay(POLL);
  }
}

/** Where no other connection can be had, because the sockets have been removed, by the one that there is. */
function tablesOf(runtime: Worker['runtime']): Promise<string> {
  return runtime.ask('show table', { lane: 'bulk' }).catch(() => runtime.ask('show table'));
}

/**
 * Keeps a worker that was replaced awake until it has handed on its tables. Before 3.1 it stops taking connections by a
 * timer, in the middle of its work, and what is to be done next then waits for the next event: nobody comes to it any
 * more, so that clients lose their members for half a second, until it tries again by itself (measured on 2.6.12).
 * Never rejects: one that has ended has handed them on, or cannot any more.
 */
export async function handOnTables({ runtime }: Worker): Promise<void> {
  const until = performance.now() + NUDGED_FOR;
  try {
    while (performance.now() < until) {
      await runtime.ask('show version');
      await delay(NUDGE, undefined, { ref: false });
    }
  } catch {
    // It has ended.
  }
}

/** A text without flags is one of a HAProxy without peers. */
function isFinished(text: string): boolean {
  const flags = /\bflags=0x([0-9a-f]{1,8})\b/.exec(text)?.[1];
  return flags === undefined || (Number.parseInt(flags, 16) & FINISHED) === FINISHED;
}

/** The tables of rates are not handed on anyway. */
function isEmpty(text: string): boolean {
  for (const [, name = '', used] of text.matchAll(/^# table: (\S+), .*\bused:(\d{1,10})$/gm))
    if (!name.endsWith(':rate') && used !== '0') return false;
  return true;
}
