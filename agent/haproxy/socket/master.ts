// Asks HAProxy's master for its workers, and reloads HAProxy. Uses a new connection to the master socket for each
// question, because a reload closes all connections.

import { existsSync } from 'node:fs';
import { sleep } from '../../base/clock.ts';
import { HeadgateError, messageOf } from '../../base/errors.ts';
import { askOnce } from './ask-once.ts';
import { type Processes, parseShowProc } from './readings.ts';

/** While a reload is under way. */
const POLL_INTERVAL_MS = 5;
const RELOAD_TIMEOUT_MS = 30_000;
/** A master that executes itself again refuses connections for a moment, and a signal to reload may be lost or end it. */
const RESTART_TIMEOUT_MS = 2_000;
/** For the first answer of a new worker. */
const WORKER_TIMEOUT_MS = 200;

export interface ReloadOptions {
  /** For the whole reload: HAProxy retries a taken port for 2 s, and needs about 3 s for 10,000 backends. */
  readonly timeoutMs?: number;
  /** Whether the new worker serves already. Then a master that cannot be reached needs not answer. */
  readonly isServed?: () => boolean;
}

export interface ReloadOutcome {
  /** A new worker serves. Otherwise HAProxy refused the new files, and the old worker continues. */
  readonly ok: boolean;
  /** The pid of the new worker; undefined if there is none, or if the master did not answer. */
  readonly workerPid: number | undefined;
  /** HAProxy's own text; '' before 2.7, which writes it to its standard error only. */
  readonly log: string;
}

/** The master and its workers. Errors: those of askOnce(); RUNTIME_REPLY. */
export async function showProc(
  masterSocketPath: string,
  options: { readonly timeoutMs?: number } = {},
): Promise<Processes> {
  return parseShowProc(await askOnce(masterSocketPath, 'show proc;quit', options));
}

/**
 * Reloads HAProxy, and resolves when the reload has succeeded or failed.
 * Errors: those of askOnce() if the master does not answer; HAPROXY_RELOAD if the reload does not end in time.
 */
export async function reload(masterSocketPath: string, options: ReloadOptions = {}): Promise<ReloadOutcome> {
  const until = deadline(options);
  const before = await firstAnswer(masterSocketPath);
  for (;;) {
    const answer = await askReload(masterSocketPath, until);
    const [, success, log = ''] = /^Success=([01])\n--\n?(.*)$/s.exec(answer) ?? [];
    if (success !== '0') {
      const end = await reloadEnd({
        ...options,
        masterSocketPath,
        masterPid: before.master.pid,
        before,
        until,
      });
      return { ...end, log };
    }
    // 3.1 and newer refuse a reload while another reload is under way, such as one by a signal.
    if (!log.includes('Another reload is still in progress')) return { ok: false, workerPid: undefined, log };
    await sleep(POLL_INTERVAL_MS);
  }
}

/** Reloads by SIGUSR2, for a master that cannot be reached on its socket. Errors: HAPROXY_RELOAD. */
export async function signalReload(
  masterPid: number,
  masterSocketPath: string,
  options: ReloadOptions = {},
): Promise<ReloadOutcome> {
  const until = deadline(options);
  // Without an answer now, the first answer comes after the reload.
  const before = await showProc(masterSocketPath).catch(() => undefined);
  try {
    process.kill(masterPid, 'SIGUSR2');
  } catch (cause) {
    throw new HeadgateError('HAPROXY_RELOAD', `Cannot signal HAProxy's master, process ${masterPid}`, {
      cause,
    });
  }
  return { ...(await reloadEnd({ ...options, masterSocketPath, masterPid, before, until })), log: '' };
}

/** As showProc(), also while the master executes itself again. */
async function firstAnswer(masterSocketPath: string): Promise<Processes> {
  for (const until = performance.now() + RESTART_TIMEOUT_MS; ; await sleep(POLL_INTERVAL_MS)) {
    try {
      return await showProc(masterSocketPath);
    } catch (error) {
      const isRefused = error instanceof HeadgateError && error.code === 'RUNTIME_CONNECT';
      if (!isRefused || !existsSync(masterSocketPath) || performance.now() >= until) throw error;
    }
  }
}

/** '' from 2.6, which closes the connection without an answer. */
async function askReload(masterSocketPath: string, until: number): Promise<string> {
  try {
    return await askOnce(masterSocketPath, 'reload', { timeoutMs: left(until) });
  } catch (error) {
    if (error instanceof HeadgateError && error.code === 'RUNTIME_CLOSED') return '';
    throw error instanceof HeadgateError && error.code === 'RUNTIME_TIMEOUT'
      ? unfinished(error.message)
      : error;
  }
}

interface ReloadUnderWay extends ReloadOptions {
  readonly masterSocketPath: string;
  readonly masterPid: number;
  readonly before: Processes | undefined;
  /** On performance.now()'s clock. */
  readonly until: number;
}

/**
 * Waits until the master has counted one reload more than `before`, and then for a new worker or a failed reload. Until
 * the master has counted it, its answer may be about the previous reload. A new master knows nothing of this reload.
 */
async function reloadEnd({
  masterSocketPath,
  masterPid,
  before,
  until,
  isServed = () => false,
}: ReloadUnderWay): Promise<Pick<ReloadOutcome, 'ok' | 'workerPid'>> {
  const known = new Set([...(before?.workers ?? []), ...(before?.oldWorkers ?? [])].map(({ pid }) => pid));
  for (let problem: unknown; ; await sleep(POLL_INTERVAL_MS)) {
    try {
      const { master, workers } = await showProc(masterSocketPath, { timeoutMs: left(until) });
      problem = undefined;
      if (master.pid !== masterPid) throw unfinished('its master has ended, and another master runs');
      if (master.reloads > (before?.master.reloads ?? 0)) {
        const fresh = workers.find(({ pid, reloads }) => reloads === 0 && !known.has(pid));
        if (fresh !== undefined && (await answers(masterSocketPath, fresh.pid))) {
          return { ok: true, workerPid: fresh.pid };
        }
        if (master.failed > 0) return { ok: false, workerPid: undefined };
      }
    } catch (error) {
      if (error instanceof HeadgateError && error.code === 'HAPROXY_RELOAD') throw error;
      if (isServed() && (before === undefined || !existsSync(masterSocketPath)))
        return { ok: true, workerPid: undefined };
      // While the master executes itself again, its socket refuses or closes connections.
      problem = error;
    }
    if (performance.now() >= until) {
      throw unfinished(problem === undefined ? 'there is no new worker' : messageOf(problem));
    }
  }
}

/**
 * 3.1 and newer list a new worker while it still reads the file, which it may refuse. It never answers a question from
 * this time, so it is asked again.
 */
function answers(masterSocketPath: string, pid: number): Promise<boolean> {
  return askWorker(masterSocketPath, pid, { timeoutMs: WORKER_TIMEOUT_MS }).then(
    () => true,
    () => false,
  );
}

/** A worker's `show info`. Errors: those of askOnce(); RUNTIME_REPLY if the worker does not answer. */
export async function askWorker(
  masterSocketPath: string,
  pid: number,
  options: { readonly timeoutMs?: number } = {},
): Promise<string> {
  const text = await askOnce(masterSocketPath, `@!${pid} show info;quit`, options);
  if (text.includes(`Pid: ${pid}`)) return text;
  throw new HeadgateError('RUNTIME_REPLY', `HAProxy's worker ${pid} does not answer`, { retry: 'now' });
}

function unfinished(why: string): HeadgateError {
  return new HeadgateError('HAPROXY_RELOAD', `HAProxy does not finish a reload: ${why}`);
}

function deadline({ timeoutMs = RELOAD_TIMEOUT_MS }: ReloadOptions): number {
  return performance.now() + timeoutMs;
}

function left(until: number): number {
  return Math.max(1, until - performance.now());
}
