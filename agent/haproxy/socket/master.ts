// Talks to HAProxy's master process: which workers there are, and reload. Uses the master socket, one connection per
// question, because a reload ends them all.

import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { askOnce } from './ask-once.ts';
import { type Processes, parseShowProc } from './readings.ts';

/** Milliseconds between two looks while a reload is under way. */
const POLL = 20;
/** Milliseconds that a new worker has for a short answer. */
const ANSWER = 200;

export interface ReloadOptions {
  /** Bounds the whole. */
  readonly timeoutMs?: number;
  /** Whether the new worker was seen to serve: then a master whose socket's file is gone need not say so. */
  readonly isServed?: () => boolean;
}

export interface ReloadOutcome {
  /** A new worker serves; otherwise HAProxy refused the new files and the old worker goes on. */
  readonly ok: boolean;
  /** The new worker's, where `ok`, unless the master could not be asked. */
  readonly workerPid: number | undefined;
  /** HAProxy's own words; '' before 2.7, which says them on its standard error only. */
  readonly log: string;
}

/** Errors: those of askOnce(), RUNTIME_REPLY. */
export async function showProc(
  masterSocketPath: string,
  options: { readonly timeoutMs?: number } = {},
): Promise<Processes> {
  return parseShowProc(await askOnce(masterSocketPath, 'show proc;quit', options));
}

/**
 * Loads the files again and returns when that has come to an end. `timeoutMs` bounds the whole: HAProxy tries for
 * 2 s to bind a port that is taken, and needs about 3 s for 10,000 backends.
 * Errors: those of askOnce() where the master cannot be asked, HAPROXY_RELOAD where no end is seen in time.
 */
export async function reload(
  masterSocketPath: string,
  { timeoutMs = 30_000, isServed = never }: ReloadOptions = {},
): Promise<ReloadOutcome> {
  const until = performance.now() + timeoutMs;
  const before = await showProc(masterSocketPath);
  for (;;) {
    const answer = await askReload(masterSocketPath, until);
    const [, success, log = ''] = /^Success=([01])\n--\n?(.*)$/s.exec(answer) ?? [];
    if (success !== '0')
      return { ...(await reloaded(masterSocketPath, before.master.pid, before, until, isServed)), log };
    // 3.1 and newer turn a reload away while another one, by a signal for instance, is under way.
    if (!log.includes('Another reload is still in progress')) return { ok: false, workerPid: undefined, log };
    await delay(POLL);
  }
}

/**
 * The same by SIGUSR2, for a master whose socket's file is gone: the reload brings the file back.
 * Errors: HAPROXY_RELOAD.
 */
export async function signalReload(
  masterPid: number,
  masterSocketPath: string,
  { timeoutMs = 30_000, isServed = never }: ReloadOptions = {},
): Promise<ReloadOutcome> {
  const until = performance.now() + timeoutMs;
  // Without an answer now, the first answer is one from after the reload.
  const before = await showProc(masterSocketPath).catch(() => undefined);
  try {
    process.kill(masterPid, 'SIGUSR2');
  } catch (cause) {
    throw new HeadgateError('HAPROXY_RELOAD', `Cannot signal HAProxy's master, process ${masterPid}`, {
      cause,
    });
  }
  return { ...(await reloaded(masterSocketPath, masterPid, before, until, isServed)), log: '' };
}

/** '' from 2.6, which breaks the connection instead of answering. */
async function askReload(masterSocketPath: string, until: number): Promise<string> {
  try {
    return await askOnce(masterSocketPath, 'reload', { timeoutMs: left(until) });
  } catch (error) {
    if (error instanceof HeadgateError && error.code === 'RUNTIME_CLOSED') return '';
    throw error instanceof HeadgateError && error.code === 'RUNTIME_TIMEOUT' ? endless(error.message) : error;
  }
}

/**
 * Waits for the master to have reloaded once more than `before`, and then for a new worker or the word that the reload
 * failed: until then the master may still speak of the reload before. Another master than that one knows nothing of it.
 */
async function reloaded(
  masterSocketPath: string,
  masterPid: number,
  before: Processes | undefined,
  until: number,
  isServed: () => boolean,
): Promise<Pick<ReloadOutcome, 'ok' | 'workerPid'>> {
  const known = new Set([...(before?.workers ?? []), ...(before?.oldWorkers ?? [])].map(({ pid }) => pid));
  for (let problem: unknown; ; await delay(POLL)) {
    try {
      const { master, workers } = await showProc(masterSocketPath, { timeoutMs: left(until) });
      problem = undefined;
      if (master.pid !== masterPid) throw endless('its master has ended, and another one runs');
      if (master.reloads > (before?.master.reloads ?? 0)) {
        const fresh = workers.find(({ pid, reloads }) => reloads === 0 && !known.has(pid));
        if (fresh !== undefined && (await answers(masterSocketPath, fresh.pid))) {
          return { ok: true, workerPid: fresh.pid };
        }
        if (master.failed > 0) return { ok: false, workerPid: undefined };
      }
    } catch (error) {
      if (error instanceof HeadgateError && error.code === 'HAPROXY_RELOAD') throw error;
      if (isServed() && !existsSync(masterSocketPath)) return { ok: true, workerPid: undefined };
      // While the master executes itself afresh its socket refuses or breaks connections.
      problem = error;
    }
    if (performance.now() >= until) {
      throw endless(problem === undefined ? 'no new worker is there' : messageOf(problem));
    }
  }
}

/**
 * From 3.1 on a new worker is listed while it still reads the file, which it may yet refuse. Asked then it never
 * answers, not even later, so it is asked anew.
 */
function answers(masterSocketPath: string, pid: number): Promise<boolean> {
  return askWorker(masterSocketPath, pid, { timeoutMs: ANSWER }).then(
    () => true,
    () => false,
  );
}

/** What a worker says of itself (`show info`). Errors: those of askOnce(), RUNTIME_REPLY where it says nothing. */
export async function askWorker(
  masterSocketPath: string,
  pid: number,
  options: { readonly timeoutMs?: number } = {},
): Promise<string> {
  const text = await askOnce(masterSocketPath, `@!${pid} show info;quit`, options);
  if (text.includes(`Pid: ${pid}`)) return text;
  throw new HeadgateError('RUNTIME_REPLY', `HAProxy's worker ${pid} does not answer`, { retry: 'now' });
}

function never(): boolean {
  return false;
}

function endless(why: string): HeadgateError {
  return new HeadgateError('HAPROXY_RELOAD', `HAProxy does not come to the end of a reload: ${why}`);
}

function left(until: number): number {
  return Math.max(1, until - performance.now());
}
