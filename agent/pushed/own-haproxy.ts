// The HAProxy of one pushed text: starts, changes, reloads and stops it, and starts it again when it ends. One piece of work
// at a time. Never leaves the last text that HAProxy served without trying to serve it again.
// Why: docs/design/decisions/0086-a-pushed-text-is-the-truth.md

import { randomUUID } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { backoffMs } from '../base/backoff.ts';
import { type Clock, passed, sleep, systemClock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import { Fault } from '../base/fault.ts';
import { serial } from '../base/serial.ts';
import { findMaster, isBooting } from '../haproxy/instance/find-master.ts';
import { masterPid, stopHaproxy } from '../haproxy/instance/process.ts';
import { parseInfo } from '../haproxy/socket/readings.ts';
import type { Runtime } from '../haproxy/socket/runtime.ts';
import { DaemonLog } from '../host/daemon-output.ts';
import { makeFolder } from '../host/make-directory.ts';
import { findRunning } from './adopt.ts';
import { type BootRecord, writeRecord } from './boot-record.ts';
import { type Boot, type BootOptions, reload, start, writeBoot, writeText } from './booting.ts';
import { checkText } from './check-text.ts';
import { fileDigests, md5 } from './file-digests.ts';
import { FOLDER_MODE } from './files.ts';
import { LeavingServers } from './leaving-servers.ts';
import { MetricsServer } from './metrics/metrics-server.ts';
import type { PushedHaproxy, PushedStatus, PushResult, StatRow } from './pushed.ts';
import { carriedOut, connectTimeout, type PushedWorker, sendAll } from './pushed-worker.ts';
import { isExportingMetrics } from './second-file.ts';
import { forgetHealth, keepHealth } from './server-health.ts';
import { reportedRows } from './stat-rows.ts';
import { planPush } from './text/plan.ts';
import { type PushedText, readText } from './text/pushed-text.ts';

export interface OwnHaproxyOptions extends BootOptions {
  /**
   * The `server-state-file` of this load balancer, `BASE/LB/servers-state`: another one is not written, and no text may have
   * sockets elsewhere than below BASE.
   */
  readonly serverState: string;
  /** Gets the last rows of a worker that a reload is about to replace. */
  readonly onReplace: (rows: readonly StatRow[]) => void;
  readonly clock?: Clock;
}

/** The wait between two attempts to start HAProxy again. */
const BACKOFF = { firstMs: 50, mostMs: 5_000 };
const REPLACED = 'another worker has replaced it';
const MAX_OUTPUT_BYTES = 256 * 1024;
const POLL_INTERVAL_MS = 50;
const BOOT_TIMEOUT_MS = 30_000;

export class OwnHaproxy implements PushedHaproxy {
  readonly #options: OwnHaproxyOptions;
  readonly #clock: Clock;
  readonly #work = serial();
  readonly #fault = new Fault();
  readonly #metrics: MetricsServer;
  /** HAProxy's messages, of which each reload adds some. */
  readonly #output: DaemonLog;
  #worker: PushedWorker | undefined;
  /** What is started again if HAProxy ends; undefined while nothing should run. */
  #last: PushedText | undefined;
  #cause = '';
  #isClosed = false;

  constructor(options: OwnHaproxyOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    const { metricsSocket: socket, exporterSocket: source } = options.files;
    this.#metrics = new MetricsServer({ socket, source });
    this.#output = new DaemonLog(options.files.log, MAX_OUTPUT_BYTES);
  }

  adopt(): Promise<void> {
    return this.#work.run(async () => {
      const { files } = this.#options;
      if (this.#worker !== undefined) return;
      const pushed = await readFile(files.config, 'utf8').catch(() => undefined);
      if (pushed === undefined) return;
      const worker = await this.#adopt(readText(pushed));
      this.#last = worker?.text;
    });
  }

  check(pushed: string): Promise<void> {
    return this.#work.run(async () => {
      const { files, serverState } = this.#options;
      const text = readText(pushed);
      if (await this.#isServed(text)) return;
      await makeFolder(files.folder, FOLDER_MODE);
      await checkText(text, dirname(dirname(serverState)), this.#options);
    });
  }

  run(pushed: string): Promise<PushResult> {
    return this.#work.run(async () => {
      try {
        const result = await this.#run(pushed);
        this.#fault.clear();
        return result;
      } catch (error) {
        this.#fault.set(messageOf(error));
        throw error;
      }
    });
  }

  stop(): Promise<void> {
    return this.#work.run(async () => {
      const { files, log } = this.#options;
      this.#last = undefined;
      this.#metrics.close();
      this.#release();
      await stopHaproxy(files, 0);
      for (const path of [files.record, files.config, files.second]) await rm(path, { force: true });
      this.#cause = '';
      this.#fault.clear();
      log.info('Stopped HAProxy of a pushed text', { folder: files.folder });
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#metrics.close();
    this.#output.close();
    this.#release();
  }

  async stats(): Promise<readonly StatRow[] | undefined> {
    const worker = this.#worker;
    if (worker === undefined) return undefined;
    try {
      if (parseInfo(await worker.runtime.ask('show info')).stopping) {
        void this.#revive(worker, REPLACED);
        return undefined;
      }
      const answer = await worker.runtime.ask('show stat', { lane: 'bulk' });
      return reportedRows(answer, worker.text);
    } catch {
      return undefined;
    }
  }

  status(): PushedStatus {
    const worker = this.#worker;
    const isKnown = worker !== undefined && worker.doubt === '';
    return {
      isRunning: worker !== undefined,
      text: isKnown ? worker.record.text : '',
      since: isKnown ? new Date(worker.record.since) : undefined,
      cause: this.#cause,
      fault: this.#fault.text,
    };
  }

  /** The same text with the same files. */
  async #isServed({ text }: PushedText): Promise<boolean> {
    const worker = this.#worker;
    if (worker?.doubt !== '' || worker.text.text !== text) return false;
    const known = worker.record.files;
    return [...(await fileDigests(text))].every(
      ([path, digest]) => digest !== '' && known.get(path) === digest,
    );
  }

  async #run(pushed: string): Promise<PushResult> {
    const { files } = this.#options;
    const text = readText(pushed);
    const next = { text, files: await fileDigests(text.text) };
    await makeFolder(files.folder, FOLDER_MODE);
    await this.#reach(text);
    const worker = this.#worker;
    if (worker === undefined) return this.#boot(next, 'HAProxy did not run');
    if (worker.doubt !== '') return this.#boot(next, worker.doubt);
    const {
      text: before,
      record: { files: known },
      leaving,
      runtime,
    } = worker;
    const takesCookies = runtime.worker.capabilities.dynamicServerTakesCookie;
    const running = { text: before, files: known, leaving: leaving.lines, takesCookies };
    const plan = planPush(running, next);
    if (plan.kind === 'reload') return this.#boot(next, plan.cause);
    // Before the commands, because a worker that is booted meanwhile should have them.
    const since = plan.kind === 'none' ? worker.record.since : this.#clock.wall();
    const record = { ...worker.record, text: md5(text.text), since };
    if (text.text !== worker.text.text) writeText(text, files);
    writeRecord(files.record, record);
    if (plan.kind === 'commands') {
      worker.doubt = 'the last commands were not all carried out';
      const refused = await sendAll(worker, plan.commands).catch((error: unknown) => messageOf(error));
      if (refused !== '') return this.#boot(next, refused);
      worker.doubt = '';
    }
    carriedOut(worker, text);
    worker.record = record;
    this.#last = text;
    return plan.kind === 'none' ? 'none' : 'runtime';
  }

  /** Connects to a worker that runs although this agent has no connection to it. */
  async #reach(text: PushedText): Promise<void> {
    const known = this.#worker;
    // The connection keeps a replaced worker alive.
    const info = await known?.runtime.ask('show info').catch(() => undefined);
    if (info !== undefined && !parseInfo(info).stopping) return;
    this.#release();
    const { files } = this.#options;
    const pushed = await readFile(files.config, 'utf8').catch(() => undefined);
    await this.#adopt(pushed === undefined ? text : readText(pushed));
    for (
      const until = this.#clock.monotonic() + BOOT_TIMEOUT_MS;
      this.#worker === undefined && (await isBooting(files)) && this.#clock.monotonic() < until;
      await sleep(POLL_INTERVAL_MS)
    )
      await this.#adopt(pushed === undefined ? text : readText(pushed));
  }

  async #adopt(text: PushedText): Promise<PushedWorker | undefined> {
    const found = await findRunning(text, this.#options);
    if (found === undefined) return undefined;
    const { runtime, record, doubt, leaving } = found;
    const worker = this.#take(runtime, text, record);
    worker.doubt = doubt;
    this.#cause = record.cause;
    for (const { backend, server } of leaving) {
      const lines = text.sections.get(`backend ${backend}`)?.lines ?? [];
      worker.leaving.add(backend, server, connectTimeout(lines));
    }
    await this.#followMetrics(text);
    return worker;
  }

  /** Reloads HAProxy with this text, or starts it if it does not run. After a failure the last text is in force. */
  async #boot(next: Omit<Boot, 'record'> & Pick<BootRecord, 'files'>, cause: string): Promise<'reload'> {
    const { files, log } = this.#options;
    const began = performance.now();
    const before = this.#worker;
    const mark = `headgate-${randomUUID()}`;
    const boot: Boot = {
      text: next.text,
      record: { mark, text: md5(next.text.text), since: this.#clock.wall(), cause, files: next.files },
    };
    const isReload = before !== undefined || (await findMaster(files)) !== undefined;
    try {
      if (before !== undefined) await this.#beforeReload(before, next.text);
      writeBoot(boot, this.#options);
      const runtime = await (isReload ? reload(boot, this.#options) : start(boot, this.#options));
      this.#release();
      this.#take(runtime, next.text, boot.record);
      await this.#followMetrics(next.text);
    } catch (error) {
      const reason = messageOf(error);
      if (this.#fault.set(reason))
        log.error('HAProxy does not serve a pushed text; the last one stays', { cause, error: reason });
      await this.#restore(next.text, before, isReload);
      throw error;
    } finally {
      await forgetHealth(next.text, this.#options.serverState);
    }
    this.#last = next.text;
    this.#cause = cause;
    this.#output.trim((await masterPid(files)) ?? 0);
    const ms = Math.round(performance.now() - began);
    log.info(isReload ? 'Reloaded HAProxy with a pushed text' : 'Started HAProxy with a pushed text', {
      cause,
      worker: this.#worker?.runtime.worker.pid,
      ms,
    });
    return 'reload';
  }

  async #beforeReload(worker: PushedWorker, next: PushedText): Promise<void> {
    const { serverState, onReplace, log } = this.#options;
    const rows = await this.stats();
    if (rows !== undefined) onReplace(rows);
    await keepHealth(worker, next, serverState).catch((error: unknown) =>
      log.warn('Members that are down may get traffic after the reload, until the next checks', {
        error: messageOf(error),
      }),
    );
  }

  /** The files of the last good text, with which a HAProxy that is down is started, unless this text has failed just now. */
  async #restore(failed: PushedText, before: PushedWorker | undefined, isReload: boolean): Promise<void> {
    const { log } = this.#options;
    const text = before?.text ?? this.#last;
    if (text === undefined) return;
    const record = before?.record ?? {
      mark: `headgate-${randomUUID()}`,
      text: md5(text.text),
      since: this.#clock.wall(),
      cause: 'HAProxy did not run',
      files: await fileDigests(text.text),
    };
    try {
      writeBoot({ text, record }, this.#options);
      if (isReload || text.text === failed.text) return;
      this.#take(await start({ text, record }, this.#options), text, record);
      await this.#followMetrics(text);
      this.#last = text;
    } catch (error) {
      log.error('Cannot serve the last pushed text again', { error: messageOf(error) });
    }
  }

  #take(runtime: Runtime, text: PushedText, record: BootRecord): PushedWorker {
    const worker: PushedWorker = {
      runtime,
      text,
      record,
      doubt: '',
      leaving: new LeavingServers({
        clock: this.#clock,
        send: (commands, done) =>
          this.#work.run(async () => {
            if (this.#worker !== worker) return;
            const replies = await runtime.send(commands()).catch(() => undefined);
            if (replies !== undefined) done(replies);
          }),
      }),
    };
    this.#worker = worker;
    void runtime.closed.then((error) => {
      if (this.#worker === worker) void this.#revive(worker, messageOf(error));
    });
    return worker;
  }

  /** Errors: none: members are served without metrics as well. */
  async #followMetrics(text: PushedText): Promise<void> {
    if (!isExportingMetrics(text)) return this.#metrics.close();
    await this.#metrics.listen().catch((error: unknown) => {
      this.#options.log.error('Cannot answer with metrics', { error: messageOf(error) });
    });
  }

  #release(): void {
    const worker = this.#worker;
    this.#worker = undefined;
    worker?.leaving.close();
    worker?.runtime.close();
  }

  /** The worker has ended or does not answer: finds another, or starts HAProxy, until there is one. */
  async #revive(lost: PushedWorker, why: string): Promise<void> {
    const { files, log } = this.#options;
    const isOver = (): boolean => this.#isClosed || this.#last === undefined;
    log.warn('Lost the HAProxy of a pushed text', { why });
    for (let attempt = 1; !isOver(); attempt++) {
      await this.#work.run(async () => {
        if (this.#worker === lost) this.#release();
        const text = this.#last;
        if (this.#worker !== undefined || text === undefined || this.#isClosed) return;
        const found = await this.#adopt(text);
        if (found?.doubt === '' || (found === undefined && (await findMaster(files)) !== undefined)) return;
        const next = { text, files: await fileDigests(text.text) };
        await this.#boot(next, found?.doubt || 'HAProxy had ended').then(
          () => this.#fault.clear(),
          (error: unknown) => this.#fault.set(messageOf(error)),
        );
      });
      if (this.#worker !== undefined) return;
      await passed(this.#clock, backoffMs(attempt, BACKOFF));
    }
  }
}
